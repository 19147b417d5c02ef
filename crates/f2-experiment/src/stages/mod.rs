//! A plan as commands, in the order they can run.

pub(crate) mod commands;
mod stage;

pub use stage::{Part, Purpose, Stage, Subject, Word};

use f2_report::results::{ClassRule, Decoding};

use crate::{Model, Plan, TextSource};
use commands::Commands;

/// Commands in an order in which each finds what it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages(pub Vec<Stage>);

/// Lays out a plan. `device` are further flags of the commands that need a device.
pub fn stages(plan: &Plan, source: &TextSource, device: &[Word]) -> Stages {
    let mut laid = Commands::new(plan, source, device);
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
        let mut needed: Vec<bool> = self
            .0
            .iter()
            .map(|stage| parts.is_empty() || stage.part.is_some_and(|part| parts.contains(&part)))
            .collect();
        for place in (0..self.0.len()).rev().filter(|_| !parts.is_empty()) {
            if needed[place] {
                self.0[place].reads().for_each(|read| needed[read] = true);
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanPreset;

    fn laid_out(preset: PlanPreset) -> Stages {
        stages(&preset.plan(), &TextSource::Text(vec!["novel.txt".into()]), &[])
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
    fn one_part_needs_only_its_own_stages() {
        let stages = laid_out(PlanPreset::Tiny);
        let needed = stages.needed_for(&[Part::Decoupling]);
        let names = stages.0.iter().zip(needed).filter(|(_, needed)| *needed);
        let names: Vec<&str> = names.map(|(stage, _)| stage.name.as_str()).collect();
        let all = ["prepare", "classes-greedy", "train-f2", "generate-f2-joint-3", "score-joint-3"];
        assert_eq!(names, all);
    }
}
