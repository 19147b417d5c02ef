//! Builds the list of stages.

use f2_classes::Method;
use f2_lm::config::ObjectiveName;
use f2_lm::decode::ProtocolName;
use f2_report::results::Decoding;

use super::task::{ClassesTask, GenerateTask, PerplexityTask, ScoreTask, Task, TrainTask};
use super::{CorpusRole, PaperPart, Place, Purpose, Stage, Stages, Subject, TestTokens};
use crate::{Corpora, Plan};

/// The names of the stages' files.
pub(crate) mod files {
    pub(crate) use f2_corpus::names::CLASSES;

    pub(crate) const CORPUS: &str = "corpus";
    pub(crate) const CORPUS_MANIFEST: &str = "corpus/manifest.json";
    pub(crate) const CORPUS_COUNTS: &str = "corpus/counts.json";
    pub(crate) const CORPUS_TOKENIZER: &str = "corpus/tokenizer.json";
    pub(crate) const RUN: &str = "run";
    pub(crate) const RUN_CHECKPOINTS: &str = "run/checkpoints";
    pub(crate) const PERPLEXITY: &str = "perplexity.json";
    pub(crate) const TEXTS: &str = "texts.jsonl";
    pub(crate) const REFERENCES: &str = "references.jsonl";
    pub(crate) const SCORES: &str = "scores.json";
}

/// The stages built so far, with their plan and corpora.
pub(super) struct Layout<'a> {
    pub(super) plan: &'a Plan,
    pub(super) corpora: &'a Corpora,
    test_tokens: TestTokens,
    stages: Vec<Stage>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(plan: &'a Plan, corpora: &'a Corpora, test_tokens: TestTokens) -> Self {
        Self { plan, corpora, test_tokens, stages: Vec::new() }
    }

    pub(super) fn finish(self) -> Stages {
        Stages(self.stages)
    }

    /// The number of the stage with this purpose, which is added if there is none.
    pub(super) fn number(
        &mut self,
        purpose: &Purpose,
        add: impl FnOnce(&mut Self) -> Stage,
    ) -> usize {
        if let Some(number) = self.stages.iter().position(|stage| stage.purpose == *purpose) {
            return number;
        }
        let stage = add(self);
        self.stages.push(stage);
        self.stages.len() - 1
    }

    fn classes(&mut self, role: CorpusRole, method: Method, k: Option<usize>) -> usize {
        let purpose = Purpose::Classes(role, method, k);
        self.number(&purpose.clone(), |layout| {
            let corpus = layout.corpus(role).folder();
            let task = ClassesTask { corpus, method, k, out: Place::Own(files::CLASSES) };
            let of = if role == CorpusRole::Target { "-target" } else { "" };
            let many = k.map_or_else(String::new, |k| format!("-{k}"));
            let name = format!("classes{of}-{}{many}", method.name());
            stage(name, purpose, Task::Classes(task), vec![files::CLASSES])
        })
    }

    pub(super) fn train(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Train(subject);
        self.number(&purpose.clone(), |layout| {
            let corpus = layout.corpus(subject.corpus()).folder();
            let classes = subject.classes().map(|(method, k)| {
                let stage = layout.classes(subject.corpus(), method, k);
                Place::Made { stage, name: files::CLASSES }
            });
            let init = subject.starts_from().map(|start| {
                let stage = layout.train(start);
                Place::Made { stage, name: files::RUN }
            });
            let Plan { training, .. } = layout.plan;
            // Fine-tuning inherits the settings of the model it starts from, except for the
            // learning rate; a transfer uses those of training from scratch.
            let own_settings = !subject.is_fine_tuned();
            let settings = training.settings.iter().filter(|_| own_settings);
            let task = TrainTask {
                corpus,
                preset: own_settings.then_some(training.preset),
                model: subject.model(),
                seed: subject.seed(layout.plan),
                steps: subject.steps(layout.plan),
                settings: settings.map(|(key, value)| (key.clone(), value.to_string())).collect(),
                init,
                classes,
                resume: false,
                out: Place::Own(files::RUN),
            };
            let name = format!("train-{}", subject.name());
            stage(name, purpose, Task::Train(task), vec![files::RUN_CHECKPOINTS])
        })
    }

    pub(super) fn perplexity(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Perplexity(subject);
        self.number(&purpose.clone(), |layout| {
            let task = PerplexityTask {
                model: Place::Made { stage: layout.train(subject), name: files::RUN },
                corpus: layout.corpus(subject.corpus()).folder(),
                out: Place::Own(files::PERPLEXITY),
            };
            let name = format!("perplexity-{}", subject.name());
            let stage = stage(name, purpose, Task::Perplexity(task), vec![files::PERPLEXITY]);
            let part = matches!(subject, Subject::Model(_)).then_some(PaperPart::Main);
            Stage { part, ..stage }
        })
    }

    fn generate(&mut self, subject: Subject, decoding: Decoding) -> usize {
        let purpose = Purpose::Generate(subject, decoding);
        self.number(&purpose.clone(), |layout| {
            let generation = &layout.plan.generation;
            let protocol = layout.plan.protocol();
            let streams = generation.streams_of(layout.test_tokens.of(subject.corpus()));
            let task = GenerateTask {
                model: Place::Made { stage: layout.train(subject), name: files::RUN },
                corpus: layout.corpus(subject.corpus()).folder(),
                protocol,
                streams: (protocol == ProtocolName::Paper).then_some(streams),
                prefix: generation.prefix,
                continuation: generation.continuation,
                texts: generation.texts,
                decoding,
                factorised: subject.model() == ObjectiveName::F2,
                seed: subject.seed(layout.plan),
                references: Place::Own(files::REFERENCES),
                out: Place::Own(files::TEXTS),
            };
            let name = format!("generate-{}-{}", subject.name(), decoding_name(decoding));
            stage(name, purpose, Task::Generate(task), vec![files::TEXTS, files::REFERENCES])
        })
    }

    /// Scores models with the same decoding.
    pub(super) fn score(&mut self, decoding: Decoding, subjects: &[Subject], part: PaperPart) {
        let name = format!("score-{}", decoding_name(decoding));
        let purpose = Purpose::Score(decoding, subjects.to_vec());
        self.add_score(name, purpose, decoding, subjects, part);
    }

    /// Scores the models trained from one of the further seeds.
    pub(super) fn score_seed(&mut self, seed: u64, decoding: Decoding, subjects: &[Subject]) {
        for subject in subjects {
            self.perplexity(*subject);
        }
        let name = format!("score-seed-{seed}-{}", decoding_name(decoding));
        let purpose = Purpose::ScoreSeed(seed, decoding, subjects.to_vec());
        self.add_score(name, purpose, decoding, subjects, PaperPart::Seeds);
    }

    /// Scores F² as trained and decoded by the authors' program.
    pub(super) fn score_authors_program(&mut self) {
        let subject = Subject::Classes(Method::Author, None);
        self.perplexity(subject);
        let decoding = Decoding::AuthorsProgram { k: self.plan.generation.k };
        self.score(decoding, &[subject], PaperPart::Authors);
    }

    /// Scores F² models with other classes, with the decoding of the main table.
    pub(super) fn score_trials(&mut self, subjects: &[Subject], part: PaperPart) {
        if subjects.is_empty() {
            return;
        }
        for subject in subjects {
            self.perplexity(*subject);
        }
        let decoding = Decoding::TopK { k: self.plan.generation.k };
        let purpose = Purpose::ScoreTrials(subjects.to_vec());
        self.add_score(format!("score-{}", part.name()), purpose, decoding, subjects, part);
    }

    /// Scores F² from scratch and transferred, with the decoding of the main table.
    pub(super) fn score_transfer(&mut self) {
        let subjects = [Subject::FromScratch, Subject::Transferred];
        for subject in [Subject::Pretrained].iter().chain(&subjects) {
            self.perplexity(*subject);
        }
        let decoding = Decoding::TopK { k: self.plan.generation.k };
        let purpose = Purpose::ScoreTransfer(decoding, subjects.to_vec());
        let name = "score-transfer".to_owned();
        self.add_score(name, purpose, decoding, &subjects, PaperPart::Transfer);
    }

    fn add_score(
        &mut self,
        name: String,
        purpose: Purpose,
        decoding: Decoding,
        subjects: &[Subject],
        part: PaperPart,
    ) {
        let texts: Vec<usize> =
            subjects.iter().map(|subject| self.generate(*subject, decoding)).collect();
        let Some((&first, of)) = texts.first().zip(subjects.first()) else { return };
        let made = |stage: usize, name: &'static str| Place::Made { stage, name };
        let task = ScoreTask {
            counts: self.corpus(of.corpus()).counts(),
            corpus: (part == PaperPart::Main).then(|| self.corpus(of.corpus()).folder()),
            texts: texts.iter().map(|&stage| made(stage, files::TEXTS)).collect(),
            names: subjects.iter().map(|subject| subject.title(decoding)).collect(),
            references: made(first, files::REFERENCES),
            bootstrap: self.plan.evaluation.bootstrap,
            out: Place::Own(files::SCORES),
        };
        let stage = stage(name, purpose, Task::Score(task), vec![files::SCORES]);
        self.stages.push(Stage { part: Some(part), ..stage });
    }
}

pub(super) fn stage(
    name: String,
    purpose: Purpose,
    task: Task<Place>,
    makes: Vec<&'static str>,
) -> Stage {
    Stage { name, purpose, part: None, task, makes }
}

fn decoding_name(decoding: Decoding) -> String {
    match decoding {
        Decoding::Given => "given".to_owned(),
        Decoding::Greedy => "greedy".to_owned(),
        Decoding::TopK { k } => format!("top-{k}"),
        Decoding::Joint { k } => format!("joint-{k}"),
        Decoding::ClassNucleus { k, p } => format!("top-{k}-nucleus-{p}"),
        Decoding::AuthorsProgram { k } => format!("authors-{k}"),
    }
}

#[cfg(test)]
mod tests {
    use f2_corpus::names::{COUNTS, MANIFEST, TOKENIZER};
    use f2_lm::run::CHECKPOINTS;

    use super::files;

    #[test]
    fn files_are_named_as_their_crates_name_them() {
        for (path, folder, name) in [
            (files::CORPUS_MANIFEST, files::CORPUS, MANIFEST),
            (files::CORPUS_COUNTS, files::CORPUS, COUNTS),
            (files::CORPUS_TOKENIZER, files::CORPUS, TOKENIZER),
            (files::RUN_CHECKPOINTS, files::RUN, CHECKPOINTS),
        ] {
            assert_eq!(path, format!("{folder}/{name}"));
        }
    }
}
