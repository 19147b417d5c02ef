//! A plan as a list of stages in topological order.

mod command;
mod corpus_place;
mod kind;
pub(crate) mod layout;
mod part;
mod stage;
mod subject;
mod task;

pub use command::DeviceFlags;
pub use kind::TaskKind;
pub use part::PaperPart;
pub use stage::{Place, Purpose, Stage};
pub use subject::{CorpusRole, Subject};
pub use task::{
    ClassesTask, GenerateTask, PerplexityTask, PrepareTask, ScoreTask, Task, TokenizerSource,
    TrainTask,
};

use f2_classes::Method;
use f2_lm::config::ObjectiveName;
use f2_report::results::Decoding;

use crate::{Corpora, Plan};
use layout::Layout;

/// Stages in topological order: each reads only earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(pub Vec<Stage>);

/// The sizes of the test splits in tokens, once they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestTokens {
    /// The main corpus.
    pub main: Option<u64>,
    /// The corpus a model is transferred to.
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

/// The stages of a plan.
pub fn stages(plan: &Plan, corpora: &Corpora, test_tokens: TestTokens) -> Stages {
    let mut layout = Layout::new(plan, corpora, test_tokens);
    let subjects: Vec<Subject> = plan.models.iter().map(|model| Subject::Model(*model)).collect();
    let main = Decoding::TopK { k: plan.generation.k };
    for subject in &subjects {
        layout.train(*subject);
        layout.perplexity(*subject);
    }
    layout.score(main, &subjects, PaperPart::Main);
    if plan.generation.greedy {
        layout.score(Decoding::Greedy, &subjects, PaperPart::Greedy);
    }
    for &k in plan.generation.other_k.iter().filter(|k| **k != plan.generation.k) {
        layout.score(Decoding::TopK { k }, &subjects, PaperPart::TopK);
    }
    if plan.has(ObjectiveName::F2) {
        lay_out_ablations(&mut layout, plan);
    }
    lay_out_seeds(&mut layout, plan);
    if corpora.pretraining.is_some() {
        layout.score_transfer();
    }
    layout.finish()
}

fn lay_out_ablations(layout: &mut Layout<'_>, plan: &Plan) {
    let (k, f2) = (plan.generation.k, [Subject::Model(ObjectiveName::F2)]);
    if plan.generation.joint {
        layout.score(Decoding::Joint { k }, &f2, PaperPart::Decoupling);
    }
    for &p in plan.generation.class_nuclei.iter().filter(|p| **p < 1.0) {
        layout.score(Decoding::ClassNucleus { k, p }, &f2, PaperPart::Nucleus);
    }
    if plan.generation.authors_program {
        layout.score_authors_program();
    }
    let methods = plan.ablation.methods.iter().filter(|method| **method != Method::Greedy);
    let methods: Vec<Subject> = methods.map(|method| Subject::Classes(*method, None)).collect();
    layout.score_trials(&methods, PaperPart::Methods);
    let of_k = |numbers: &[usize], methods: [Method; 2]| -> Vec<Subject> {
        let subjects = |&k: &usize| methods.map(|method| Subject::Classes(method, Some(k)));
        numbers.iter().flat_map(subjects).collect()
    };
    let mefmax = of_k(&plan.ablation.mefmax_k, [Method::Greedy, Method::Exact]);
    let equal = of_k(&plan.ablation.equal_k, [Method::EqualTokens, Method::EqualFrequency]);
    layout.score_trials(&[mefmax, equal].concat(), PaperPart::Classes);
}

/// Adds the models of the tables with further seeds, decoded as in the main and greedy tables.
fn lay_out_seeds(layout: &mut Layout<'_>, plan: &Plan) {
    let main = Decoding::TopK { k: plan.generation.k };
    let greedy = plan.generation.greedy.then_some(Decoding::Greedy);
    for further in 1..plan.seeds {
        let subjects = plan.models.iter().map(|model| Subject::Repeated(*model, further));
        let subjects: Vec<Subject> = subjects.collect();
        for decoding in [Some(main), greedy].into_iter().flatten() {
            layout.score_seed(plan.seed + further, decoding, &subjects);
        }
    }
}

impl Stages {
    /// Which stages these parts need; all stages if `parts` is empty.
    pub fn needed_for(&self, parts: &[PaperPart]) -> Vec<bool> {
        let wanted = |part: PaperPart| {
            let beside = part == PaperPart::Main && parts.iter().any(|part| part.is_beside_main());
            parts.is_empty() || parts.contains(&part) || beside
        };
        let mut needed: Vec<bool> =
            self.0.iter().map(|stage| stage.part.is_some_and(wanted)).collect();
        for number in (0..self.0.len()).rev() {
            if needed[number] {
                self.0[number].reads().into_iter().for_each(|read| needed[read] = true);
            }
        }
        // Tables include the perplexity of the models.
        for (number, stage) in self.0.iter().enumerate() {
            if matches!(stage.purpose, Purpose::Perplexity(_)) {
                let trained = |read: &usize| matches!(self.0[*read].purpose, Purpose::Train(_));
                needed[number] |= stage.reads().iter().any(|read| needed[*read] && trained(read));
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CorpusSource, PlanPreset};

    fn laid_out_as(plan: &Plan) -> Stages {
        let [main, other] =
            ["novel.txt", "news.txt"].map(|name| CorpusSource::Text(vec![name.into()]));
        let pretraining = plan.transfer.as_ref().map(|_| other);
        stages(plan, &Corpora { main, pretraining }, TestTokens::default())
    }

    fn laid_out(preset: PlanPreset) -> Stages {
        laid_out_as(&preset.plan())
    }

    fn commands(Stages(stages): &Stages) -> Vec<String> {
        stages.iter().map(|stage| stage.shown(&DeviceFlags::default())).collect()
    }

    #[test]
    fn the_demo_is_a_dozen_commands() {
        insta::assert_snapshot!(commands(&laid_out(PlanPreset::Demo)).join("\n"));
    }

    #[test]
    fn lyrics_are_cut_and_decoded_as_the_paper_prints_them() {
        let commands = commands(&laid_out(PlanPreset::Lyrics));
        let of = |name: &str| {
            let line = commands.iter().find(|line| line.starts_with(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{name} is missing"))
        };
        for name in ["generate-f2-top-20", "generate-f2-greedy", "generate-f2-joint-20"] {
            let generate = of(name);
            assert!(generate.contains(" --protocol lyrics --prefix 50 --continuation 100 "));
            assert!(!generate.contains("--streams"), "{generate}");
        }
        let trial = of("generate-f2-equal-tokens-4-top-20");
        assert!(trial.contains("--top-k 20 "), "{trial}");
        assert!(of("generate-transferred-top-20").contains("--protocol lyrics"));
    }

    #[test]
    fn the_authors_program_is_its_classes_with_its_decoding() {
        let commands = commands(&laid_out(PlanPreset::Paper));
        let of = |start: &str| commands.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!(of("train-f2-author: "), 1, "trained once for both parts");
        let generate = "generate-f2-author-authors-3: ";
        let line = commands.iter().find(|line| line.starts_with(generate)).unwrap();
        assert!(line.contains("--top-k 3 --class-top-p 0.9 --small-class fill"), "{line}");
    }

    #[test]
    fn mefmax_is_tried_with_other_numbers_of_classes() {
        let mut plan = PlanPreset::Tiny.plan();
        plan.ablation.mefmax_k = vec![40];
        let commands = commands(&laid_out_as(&plan));
        for method in ["greedy", "exact"] {
            let of = |start: String| commands.iter().find(|line| line.starts_with(&start));
            let classes = of(format!("classes-{method}-40: ")).unwrap();
            assert!(classes.contains(&format!("--method {method} --k 40 ")), "{classes}");
            assert!(of(format!("train-f2-{method}-40: ")).is_some());
        }
    }

    #[test]
    fn further_seeds_train_every_model_again() {
        let plan = Plan { seeds: 3, seed: 5, ..PlanPreset::Tiny.plan() };
        let commands = commands(&laid_out_as(&plan));
        for (seed, further) in [(6, 1), (7, 2)] {
            for model in &plan.models {
                let name = format!("train-{}-seed-{further}: ", model.as_str());
                let line = commands.iter().find(|line| line.starts_with(&name)).unwrap();
                assert!(line.contains(&format!("--seed {seed} ")), "{line}");
            }
            assert!(commands.iter().any(|line| {
                line.starts_with(&format!("score-seed-{seed}-greedy: "))
                    && line.contains("/texts.jsonl --refs")
            }));
        }
        // Fine-tuning starts from the model with the same seed.
        let from = |name: &str| commands.iter().position(|line| line.starts_with(name)).unwrap();
        let tuned = &commands[from("train-face-seed-2: ")];
        assert!(tuned.contains(&format!("--init {{{}}}/run", from("train-mle-seed-2: "))));
    }

    #[test]
    fn a_stage_reads_only_what_was_made_before_it() {
        for preset in PlanPreset::ALL {
            let Stages(stages) = laid_out(preset);
            for (number, stage) in stages.iter().enumerate() {
                assert!(stage.reads().iter().all(|read| *read < number), "{}", stage.name);
                let same = stages.iter().filter(|other| other.name == stage.name).count();
                assert_eq!(same, 1, "{}", stage.name);
            }
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
        let names = |parts: &[PaperPart]| -> Vec<&str> {
            let needed = stages.0.iter().zip(stages.needed_for(parts));
            needed.filter(|(_, needed)| *needed).map(|(stage, _)| stage.name.as_str()).collect()
        };
        let greedy = names(&[PaperPart::Greedy]);
        assert!(greedy.contains(&"train-face") && greedy.contains(&"perplexity-f2"), "{greedy:?}");
        assert!(!greedy.contains(&"score-top-3") && !greedy.contains(&"train-f2-exact"));
        let decoupling = names(&[PaperPart::Decoupling]);
        assert!(decoupling.contains(&"score-joint-3") && decoupling.contains(&"score-top-3"));
        assert_eq!(names(&[]).len(), stages.0.len());
    }
}
