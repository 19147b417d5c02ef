//! The training runs: settings, curves, perplexity and cost.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{ReadError, regular_file};
use f2_lm::run::{Event, RunFolder, read_events};
use f2_report::results::{Decoding, RunResult, TrainingCost};
use serde_json::Value;

use super::Made;
use crate::Error;
use crate::stages::layout::files;
use crate::stages::{Purpose, Subject};

/// The largest number of points of a training curve, about the resolution of a figure.
const CURVE_POINTS: usize = 400;

impl Made<'_> {
    /// The runs of the models of the tables, in their order.
    pub(super) fn runs(self) -> Result<Vec<RunResult>, Error> {
        let mut runs = Vec::new();
        for (stage, ..) in self.done() {
            if let Purpose::Train(subject @ Subject::Model(_)) = &stage.purpose {
                runs.extend(self.run(*subject)?);
            }
        }
        Ok(runs)
    }

    /// The run of a model under its name in tables, if it is completed.
    pub(super) fn run(self, subject: Subject) -> Result<Option<RunResult>, Error> {
        let Some(folder) = self.folder(&Purpose::Train(subject)) else { return Ok(None) };
        let mut run = read_run(&subject.title(Decoding::Given), &folder.join(files::RUN))?;
        let wall_seconds = self.seconds(&Purpose::Train(subject));
        run.cost = run.cost.map(|cost| TrainingCost { wall_seconds, ..cost });
        run.perplexity = self.perplexity(subject)?;
        Ok(Some(run))
    }

    /// The perplexity of a model on the test split, if it was computed.
    pub(super) fn perplexity(self, subject: Subject) -> Result<Option<f64>, Error> {
        let Some(folder) = self.folder(&Purpose::Perplexity(subject)) else { return Ok(None) };
        let path = folder.join(files::PERPLEXITY);
        let result: Value = serde_json::from_str(&f2_files::read_text(regular_file(&path)?)?)
            .map_err(|error| Error::damaged(&path, &error))?;
        Ok(result["token_perplexity"].as_f64())
    }
}

/// Reads the run in a folder; `name` is its name in tables.
pub fn read_run(name: &str, folder: &Path) -> Result<RunResult, Error> {
    let run = RunFolder::open(folder)?;
    let log = run.events();
    let events = read_events(&log).map_err(ReadError::of(&log))?;
    // After an interruption, a step can occur twice in the log; the later one counts.
    let (mut training, mut validation) = (BTreeMap::new(), BTreeMap::new());
    let mut costs = BTreeMap::new();
    let (mut steps, mut seconds) = (0, 0.0);
    let validation_perplexity = used_loss(&events).map(f64::exp);
    for event in events {
        match event {
            Event::Step {
                step, loss, tokens, seconds: so_far, step_seconds, operations, ..
            } => {
                training.insert(step, loss);
                costs.insert(step, (tokens, step_seconds, operations));
                (steps, seconds) = (step, so_far);
            }
            Event::Evaluated { step, loss, .. } => drop(validation.insert(step, loss)),
            _ => {}
        }
    }
    Ok(RunResult {
        name: name.to_owned(),
        parameters: run.manifest.parameters,
        device: run.manifest.device.clone(),
        steps,
        seconds,
        perplexity: None,
        validation_perplexity,
        settings: settings(&run.config_path())?,
        training: thinned(&training.into_iter().collect::<Vec<_>>()),
        validation: validation.into_iter().collect(),
        cost: total(&costs),
    })
}

/// The validation loss of the checkpoint that is used: the last one recorded as best, or, if there
/// is none, as in fine-tuning, the last one.
fn used_loss(events: &[Event]) -> Option<f64> {
    let evaluated = || {
        events.iter().filter_map(|event| match event {
            Event::Evaluated { loss, best, .. } => Some((*loss, *best)),
            _ => None,
        })
    };
    let best = evaluated().rfind(|(_, best)| *best);
    best.or_else(|| evaluated().next_back()).map(|(loss, _)| loss)
}

/// The cost of all steps, from the cumulative target tokens, and the seconds and operations of
/// each.
fn total(steps: &BTreeMap<u64, (u64, f64, f64)>) -> Option<TrainingCost> {
    let (_, &(tokens, ..)) = steps.last_key_value()?;
    Some(TrainingCost {
        tokens,
        step_seconds: steps.values().map(|(_, seconds, _)| seconds).sum(),
        operations: steps.values().map(|(.., operations)| operations).sum(),
        wall_seconds: None,
    })
}

/// Thins a curve to means over at most [`CURVE_POINTS`] stretches.
fn thinned(points: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let stretch = points.len().div_ceil(CURVE_POINTS).max(1);
    let mean = |points: &[(u64, f64)]| {
        let sum: f64 = points.iter().map(|(_, loss)| loss).sum();
        (points[points.len() - 1].0, sum / points.len() as f64)
    };
    points.chunks(stretch).map(mean).collect()
}

/// All settings of a `config.toml` by name.
fn settings(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let text = f2_files::read_text(path)?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| Error::damaged(path, &error.message()))?;
    let mut settings = BTreeMap::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(section) => settings.extend(
                section.into_iter().map(|(key, value)| (format!("{name}.{key}"), plain(&value))),
            ),
            value => drop(settings.insert(name, plain(&value))),
        }
    }
    Ok(settings)
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use f2_lm::config::ObjectiveName;

    use super::*;

    /// The report does not depend on the objectives and has the names of some.
    #[test]
    fn a_run_starts_from_the_model_its_objective_names() {
        for objective in ObjectiveName::ALL {
            let name = ("objective.name".to_owned(), objective.as_str().to_owned());
            let run = RunResult { settings: [name].into(), ..RunResult::default() };
            assert_eq!(run.starts_from(), objective.starts_from().map(ObjectiveName::title));
        }
    }

    #[test]
    fn the_perplexity_is_that_of_the_checkpoint_that_is_used() {
        let evaluated = |step, loss: f64, best| Event::Evaluated {
            step,
            loss,
            perplexity: loss.exp(),
            tokens: 9,
            best,
        };
        let events = [evaluated(1, 5.0, true), evaluated(2, 4.0, true), evaluated(3, 4.2, false)];
        assert_eq!(used_loss(&events), Some(4.0));
        let fine_tuned = [evaluated(1, 4.0, false), evaluated(2, 4.4, false)];
        assert_eq!(used_loss(&fine_tuned), Some(4.4));
        assert_eq!(used_loss(&[]), None);
    }

    #[test]
    fn a_long_curve_is_thinned_to_its_means() {
        let points: Vec<(u64, f64)> = (1..=800).map(|step| (step, step as f64)).collect();
        let thin = thinned(&points);
        assert_eq!(thin.len(), 400);
        assert_eq!((thin[0], thin[399]), ((2, 1.5), (800, 799.5)));
        assert_eq!(thinned(&points[..3]), points[..3]);
    }
}
