//! Estimates of the cost of stages.

mod probe;
mod sizes;
mod speed;

pub use probe::{StepProbe, training_bytes};
pub use speed::Speed;

use f2_lm::config::{ConfigLayers, TrainConfig};

use crate::stages::Purpose;
use crate::{Corpora, CorpusRole, Error, Plan, Stages};
use sizes::Sizes;

/// The cost of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Seconds on this device.
    pub seconds: f64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// The estimated cost of each stage at a given speed.
pub fn estimates(
    plan: &Plan,
    stages: &Stages,
    corpora: &Corpora,
    speed: &Speed,
) -> Result<Vec<Estimate>, Error> {
    let config = configuration(plan)?;
    let main = Sizes::new(plan, &config, &corpora.main)?;
    let pretraining = corpora.pretraining.as_ref();
    let pretraining = pretraining.map(|source| Sizes::new(plan, &config, source)).transpose()?;
    let of = |role: CorpusRole| match (role, &pretraining) {
        (CorpusRole::Pretraining, Some(sizes)) => sizes,
        _ => &main,
    };
    let estimate = |purpose: &Purpose| match purpose {
        Purpose::Prepare(role) => of(*role).preparing(),
        Purpose::Classes(..) => Estimate { seconds: 0.1, bytes: 20_000 },
        Purpose::Train(subject) => of(subject.corpus()).training(plan, *subject, speed),
        Purpose::Perplexity(subject) => of(subject.corpus()).perplexity(speed),
        Purpose::Generate(..) => main.generating(speed),
        Purpose::Score(_, subjects)
        | Purpose::ScoreSeed(_, _, subjects)
        | Purpose::ScoreTrials(subjects)
        | Purpose::ScoreTransfer(_, subjects) => main.scoring(plan, subjects.len()),
    };
    Ok(stages.0.iter().map(|stage| estimate(&stage.purpose)).collect())
}

/// The plan's settings for training from scratch.
fn configuration(plan: &Plan) -> Result<TrainConfig, Error> {
    let settings = plan.training.settings.iter().map(|(key, value)| (key, value.to_string()));
    let settings: Vec<(&String, String)> = settings.collect();
    let settings = settings.iter().map(|(key, value)| (&***key, &**value, "training.settings"));
    Ok(ConfigLayers::new().preset(plan.training.preset).set(settings)?.resolve()?.config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CorpusSource, PlanPreset, TestTokens, stages};
    use f2_lm::config::ObjectiveName;

    /// A text of this many zero bytes.
    fn text(folder: &tempfile::TempDir, name: &str, bytes: u64) -> CorpusSource {
        let path = folder.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        CorpusSource::Text(vec![path])
    }

    fn minutes(preset: PlanPreset, corpora: &Corpora, speed: &Speed) -> f64 {
        let plan = preset.plan();
        let stages = stages(&plan, corpora, TestTokens::default());
        let all = estimates(&plan, &stages, corpora, speed).unwrap();
        all.iter().map(|estimate| estimate.seconds).sum::<f64>() / 60.0
    }

    /// Seconds per step of 16 × 1,024 tokens, as measured on one H200.
    fn h200(scale: f64) -> Speed {
        let steps = [
            (ObjectiveName::Mle, 0.0174),
            (ObjectiveName::Face, 0.0185),
            (ObjectiveName::Unlikelihood, 0.0180),
            (ObjectiveName::UnlikelihoodSequence, 0.1411),
            (ObjectiveName::F2, 0.0144),
        ];
        let steps = steps.map(|(model, seconds)| (model, scale * seconds)).to_vec();
        Speed { operations: 3.9e14, steps, start: 2.0 }
    }

    #[test]
    fn the_plans_for_an_h200_take_the_minutes_they_promise() {
        let folder = tempfile::tempdir().unwrap();
        let articles = text(&folder, "articles.txt", 205 << 20);
        let english = Corpora { main: articles, pretraining: None };
        let minutes_of_english = minutes(PlanPreset::H200, &english, &h200(1.0));
        assert!((18.0..25.0).contains(&minutes_of_english), "{minutes_of_english}");
        let songs = text(&folder, "songs.txt", 60 << 20);
        let news = text(&folder, "news.txt", 40 << 20);
        let lyrics = Corpora { main: songs, pretraining: Some(news) };
        // A step of 16 × 512 tokens is half as long.
        let minutes_of_lyrics = minutes(PlanPreset::LyricsH200, &lyrics, &h200(0.5));
        assert!((6.0..12.0).contains(&minutes_of_lyrics), "{minutes_of_lyrics}");
    }

    #[test]
    fn epochs_become_steps_of_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let one = Corpora { main: text(&folder, "one.txt", 100 << 20), pretraining: None };
        let two = Corpora { main: text(&folder, "two.txt", 200 << 20), pretraining: None };
        let speed = Speed::assumed(1e13);
        let [one, two] = [one, two].map(|corpora| minutes(PlanPreset::Paper, &corpora, &speed));
        assert!((1.8..2.1).contains(&(two / one)), "{one} {two}");
    }
}
