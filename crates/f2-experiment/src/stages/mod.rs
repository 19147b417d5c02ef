//! A plan as commands, in the order they can run.

pub(crate) mod commands;
mod corpora;
mod stage;
mod subject;

pub use stage::{Part, Purpose, Stage, Word};
pub use subject::{CorpusRole, Subject};

use f2_report::results::{ClassRule, Decoding};

use crate::{Model, Plan, Texts};
use commands::Commands;

/// Commands in an order in which each finds what it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(pub Vec<Stage>);

/// The sizes of test splits, once they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestTokens {
    /// That of the main corpus.
    pub main: Option<u64>,
    /// That of the corpus a model is transferred to.
    pub target: Option<u64>,
}

impl TestTokens {
    fn of(self, role: CorpusRole) -> Option<u64> {
        match role {
            CorpusRole::Main => self.main,
            CorpusRole::Target => self.target,
            CorpusRole::Pretraining => None,
        }
    }
}

/// Lays out a plan. `device` are further flags of the commands that need a device.
pub fn stages(plan: &Plan, texts: &Texts, test_tokens: TestTokens, device: &[Word]) -> Stages {
    let mut laid = Commands::new(plan, texts, test_tokens, device);
    let subjects: Vec<Subject> = plan.models.iter().map(|model| Subject::Model(*model)).collect();
    let main = Decoding::TopK { k: plan.generation.k };
    for subject in &subjects {
        laid.train(*subject);
        laid.perplexity(*subject);
    }
    laid.score(main, &subjects, Part::Main);
    if plan.generation.greedy {
        laid.score(Decoding::Greedy, &subjects, Part::Greedy);
    }
    for &k in plan.generation.other_k.iter().filter(|k| **k != plan.generation.k) {
        laid.score(Decoding::TopK { k }, &subjects, Part::TopK);
    }
    if plan.has(Model::F2) {
        lay_out_ablations(&mut laid, plan);
    }
    if texts.pretraining.is_some() {
        laid.score_transfer();
    }
    laid.finish()
}

fn lay_out_ablations(laid: &mut Commands<'_>, plan: &Plan) {
    let (k, f2) = (plan.generation.k, [Subject::Model(Model::F2)]);
    if plan.generation.joint {
        laid.score(Decoding::Joint { k }, &f2, Part::Decoupling);
    }
    for &p in plan.generation.class_nuclei.iter().filter(|p| **p < 1.0) {
        laid.score(Decoding::ClassNucleus { k, p }, &f2, Part::Nucleus);
    }
    let methods = plan.ablation.methods.iter().filter(|rule| **rule != ClassRule::Greedy);
    let methods: Vec<Subject> = methods.map(|rule| Subject::Classes(*rule, None)).collect();
    laid.score_trials(&methods, Part::Methods);
    let equal = plan.ablation.equal_k.iter().flat_map(|&k| {
        [ClassRule::EqualTokens, ClassRule::EqualFrequency]
            .map(|rule| Subject::Classes(rule, Some(k)))
    });
    laid.score_trials(&equal.collect::<Vec<_>>(), Part::Classes);
}

impl Stages {
    /// Which stages these parts need; all stages where no part is named.
    pub fn needed_for(&self, parts: &[Part]) -> Vec<bool> {
        let wanted = |part: Part| {
            // Ablations are read beside the main table.
            let beside = part == Part::Main && parts.iter().any(|part| part.is_ablation());
            parts.is_empty() || parts.contains(&part) || beside
        };
        let mut needed: Vec<bool> =
            self.0.iter().map(|stage| stage.part.is_some_and(wanted)).collect();
        for place in (0..self.0.len()).rev() {
            if needed[place] {
                self.0[place].reads().for_each(|read| needed[read] = true);
            }
        }
        // A model that is scored has its perplexity in the table.
        for (place, stage) in self.0.iter().enumerate() {
            if matches!(stage.purpose, Purpose::Perplexity(_)) {
                needed[place] |= stage
                    .reads()
                    .any(|read| needed[read] && matches!(self.0[read].purpose, Purpose::Train(_)));
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanPreset, TextSource};

    fn laid_out(preset: PlanPreset) -> Stages {
        let [main, other] =
            ["novel.txt", "news.txt"].map(|name| TextSource::Text(vec![name.into()]));
        let texts = Texts { main, pretraining: preset.plan().transfer.map(|_| other) };
        stages(&preset.plan(), &texts, TestTokens::default(), &[])
    }

    #[test]
    fn the_demo_is_a_dozen_commands() {
        let Stages(stages) = laid_out(PlanPreset::Demo);
        let lines: Vec<String> = stages.iter().map(Stage::shown).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_stage_reads_only_what_was_made_before_it() {
        let Stages(stages) = laid_out(PlanPreset::Paper);
        for (place, stage) in stages.iter().enumerate() {
            assert!(stage.reads().all(|read| read < place), "{}", stage.name);
            let same = stages.iter().filter(|other| other.name == stage.name).count();
            assert_eq!(same, 1, "{}", stage.name);
        }
    }

    #[test]
    fn a_short_test_split_is_cut_into_fewer_streams() {
        let plan = PlanPreset::Demo.plan();
        let of = |tokens| plan.generation.streams_of(Some(tokens));
        assert_eq!((of(269_551), of(15_000), of(149)), (256, 100, 1));
    }

    #[test]
    fn a_part_needs_its_own_stages_and_no_other_ones() {
        let stages = laid_out(PlanPreset::Tiny);
        let names = |parts: &[Part]| -> Vec<&str> {
            let needed = stages.0.iter().zip(stages.needed_for(parts));
            needed.filter(|(_, needed)| *needed).map(|(stage, _)| stage.name.as_str()).collect()
        };
        let greedy = names(&[Part::Greedy]);
        assert!(greedy.contains(&"train-face") && greedy.contains(&"perplexity-f2"), "{greedy:?}");
        assert!(!greedy.contains(&"score-top-3") && !greedy.contains(&"train-f2-exact"));
        let decoupling = names(&[Part::Decoupling]);
        assert!(decoupling.contains(&"score-joint-3") && decoupling.contains(&"score-top-3"));
        assert_eq!(names(&[]).len(), stages.0.len());
    }
}
