use std::path::PathBuf;

use f2_report::results::{ClassRule, Decoding};

use super::{Part, Purpose, Stage, Stages, Subject, Word};
use crate::{Model, Plan, TextSource};

/// What the stages' files are called.
pub(crate) mod files {
    pub(crate) const CORPUS: &str = "corpus";
    pub(crate) const CORPUS_MANIFEST: &str = "corpus/manifest.json";
    pub(crate) const CORPUS_COUNTS: &str = "corpus/counts.json";
    pub(crate) const CLASSES: &str = "classes.json";
    pub(crate) const RUN: &str = "run";
    pub(crate) const RUN_CHECKPOINTS: &str = "run/checkpoints";
    pub(crate) const TEXTS: &str = "texts.jsonl";
    pub(crate) const REFERENCES: &str = "references.jsonl";
}

/// Adds commands one after the other, each once.
pub(super) struct Commands<'a> {
    plan: &'a Plan,
    device: &'a [Word],
    /// The corpus folder where it was given, else the first stage makes it.
    corpus: Option<PathBuf>,
    /// Streams the test split is cut into.
    streams: usize,
    stages: Vec<Stage>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        source: &TextSource,
        test_tokens: Option<u64>,
        device: &'a [Word],
    ) -> Self {
        let (corpus, stages) = match source {
            TextSource::Corpus(folder) => (Some(folder.clone()), Vec::new()),
            TextSource::Text(paths) => (None, vec![prepare(plan, paths)]),
        };
        let streams = plan.generation.streams_of(test_tokens);
        Self { plan, device, corpus, streams, stages }
    }

    pub(super) fn finish(self) -> Stages {
        Stages(self.stages)
    }

    fn corpus(&self) -> Word {
        match &self.corpus {
            Some(folder) => Word::Outside(folder.clone()),
            None => Word::Made { stage: 0, name: files::CORPUS },
        }
    }

    fn counts(&self) -> Word {
        match &self.corpus {
            Some(folder) => Word::Outside(folder.join("counts.json")),
            None => Word::Made { stage: 0, name: files::CORPUS_COUNTS },
        }
    }

    /// The place of the stage with this purpose, which is added if there is none.
    fn place(&mut self, purpose: &Purpose, add: impl FnOnce(&mut Self) -> Stage) -> usize {
        if let Some(place) = self.stages.iter().position(|stage| stage.purpose == *purpose) {
            return place;
        }
        let stage = add(self);
        self.stages.push(stage);
        self.stages.len() - 1
    }

    fn classes(&mut self, rule: ClassRule, k: Option<usize>) -> usize {
        let purpose = Purpose::Classes(rule, k);
        self.place(&purpose.clone(), |laid| {
            let mut words = vec!["classes".into(), laid.corpus()];
            words.extend(["--method", rule.name()].map(Word::from));
            words.extend(k.into_iter().flat_map(|k| [Word::from("--k"), k.to_string().into()]));
            words.extend(["--out".into(), Word::Makes(files::CLASSES)]);
            let name = k.map_or_else(String::new, |k| format!("-{k}"));
            let name = format!("classes-{}{name}", rule.name());
            stage(name, purpose, words, vec![files::CLASSES])
        })
    }

    pub(super) fn train(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Train(subject);
        self.place(&purpose.clone(), |laid| {
            let (model, classes) = match subject {
                Subject::Model(Model::F2) => (Model::F2, Some((ClassRule::Greedy, None))),
                Subject::Model(model) => (model, None),
                Subject::Classes(rule, k) => (Model::F2, Some((rule, k))),
            };
            let mut given = Vec::new();
            if let Some((rule, k)) = classes {
                let stage = laid.classes(rule, k);
                given.extend(["--classes".into(), Word::Made { stage, name: files::CLASSES }]);
            }
            let start = model.starts_from().map(|start| laid.train(Subject::Model(start)));
            let mut words = vec!["train".into(), laid.corpus()];
            words.extend(laid.settings(model));
            if let Some(stage) = start {
                words.extend(["--init".into(), Word::Made { stage, name: files::RUN }]);
            }
            words.extend(given.iter().cloned());
            words.extend(laid.device.iter().cloned());
            words.extend(["--out".into(), Word::Makes(files::RUN)]);
            let mut resume = vec!["train".into(), laid.corpus()];
            resume.extend(["--resume".into(), Word::Makes(files::RUN)]);
            resume.extend(given);
            resume.extend(laid.device.iter().cloned());
            let name = format!("train-{}", subject.name());
            let stage = stage(name, purpose, words, vec![files::RUN_CHECKPOINTS]);
            Stage { resume: Some(resume), ..stage }
        })
    }

    /// Flags of training. Fine-tuning takes the settings of the model it starts from, and a
    /// learning rate of its own.
    fn settings(&self, model: Model) -> Vec<Word> {
        let Plan { training, seed, .. } = self.plan;
        let from_scratch = model.starts_from().is_none();
        let mut words: Vec<Word> = Vec::new();
        if from_scratch {
            words.extend(["--preset".into(), training.preset.as_str().into()]);
        }
        words.extend(["--objective", model.objective(), "--seed"].map(Word::from));
        words.push(seed.to_string().into());
        let fine_tuning = (!from_scratch).then_some(training.fine_tuning_steps);
        if let Some(steps) = fine_tuning.or(training.steps) {
            words.extend(["--steps".into(), steps.to_string().into()]);
        }
        for (key, value) in training.settings.iter().filter(|_| from_scratch) {
            words.extend(["--set".into(), format!("{key}={value}").into()]);
        }
        words
    }

    pub(super) fn perplexity(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Perplexity(subject);
        self.place(&purpose.clone(), |laid| {
            let run = Word::Made { stage: laid.train(subject), name: files::RUN };
            let mut words = vec!["perplexity".into(), run, laid.corpus(), "--json".into()];
            words.extend(laid.device.iter().cloned());
            let stage = stage(format!("perplexity-{}", subject.name()), purpose, words, Vec::new());
            let part = matches!(subject, Subject::Model(_)).then_some(Part::Main);
            Stage { part, ..stage }
        })
    }

    fn generate(&mut self, subject: Subject, decoding: Decoding) -> usize {
        let purpose = Purpose::Generate(subject, decoding);
        self.place(&purpose.clone(), |laid| {
            let run = Word::Made { stage: laid.train(subject), name: files::RUN };
            let mut words = vec!["generate".into(), run, "--corpus".into(), laid.corpus()];
            words.extend(["--protocol", "paper"].map(Word::from));
            let generation = &laid.plan.generation;
            for (flag, value) in [
                ("--streams", laid.streams),
                ("--prefix", generation.prefix),
                ("--continuation", generation.continuation),
            ] {
                words.extend([flag.into(), value.to_string().into()]);
            }
            words.extend(["--seed".into(), laid.plan.seed.to_string().into()]);
            words.extend(strategy(subject, decoding));
            words.extend(laid.device.iter().cloned());
            words.extend(["--references".into(), Word::Makes(files::REFERENCES)]);
            words.extend(["--out".into(), Word::Makes(files::TEXTS)]);
            let name = format!("generate-{}-{}", subject.name(), decoding_name(decoding));
            stage(name, purpose, words, vec![files::TEXTS, files::REFERENCES])
        })
    }

    /// Scores models that decode in the same way.
    pub(super) fn score(&mut self, decoding: Decoding, subjects: &[Subject], part: Part) {
        let name = format!("score-{}", decoding_name(decoding));
        let purpose = Purpose::Score(decoding, subjects.to_vec());
        self.add_score(name, purpose, decoding, subjects, part);
    }

    /// Scores F² models with other classes, as the main table decodes.
    pub(super) fn score_trials(&mut self, subjects: &[Subject], part: Part) {
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

    fn add_score(
        &mut self,
        name: String,
        purpose: Purpose,
        decoding: Decoding,
        subjects: &[Subject],
        part: Part,
    ) {
        let texts: Vec<usize> =
            subjects.iter().map(|subject| self.generate(*subject, decoding)).collect();
        let Some(&first) = texts.first() else { return };
        let mut words: Vec<Word> = vec!["eval".into(), "--hyps".into()];
        words.extend(texts.iter().map(|&stage| Word::Made { stage, name: files::TEXTS }));
        words.extend(["--refs".into(), Word::Made { stage: first, name: files::REFERENCES }]);
        words.extend(["--counts".into(), self.counts(), "--names".into()]);
        words.extend(subjects.iter().map(|subject| subject.title().into()));
        match self.plan.evaluation.bootstrap {
            0 => {}
            draws => words.extend(["--bootstrap".into(), draws.to_string().into()]),
        }
        words.push("--json".into());
        let stage = stage(name, purpose, words, Vec::new());
        self.stages.push(Stage { part: Some(part), ..stage });
    }
}

fn stage(name: String, purpose: Purpose, words: Vec<Word>, makes: Vec<&'static str>) -> Stage {
    Stage { name, purpose, part: None, words, resume: None, makes }
}

fn prepare(plan: &Plan, paths: &[PathBuf]) -> Stage {
    let mut words: Vec<Word> = vec!["prepare".into()];
    words.extend(paths.iter().cloned().map(Word::Outside));
    words.extend(["--vocab-size".into(), plan.vocabulary.to_string().into()]);
    words.extend(["--out".into(), Word::Makes(files::CORPUS)]);
    stage("prepare".to_owned(), Purpose::Prepare, words, vec![files::CORPUS_MANIFEST])
}

fn strategy(subject: Subject, decoding: Decoding) -> Vec<Word> {
    let top_k = |k: usize| vec!["--top-k".into(), k.to_string().into()];
    let f2 = !matches!(subject, Subject::Model(model) if model != Model::F2);
    match decoding {
        Decoding::Given => Vec::new(),
        Decoding::Greedy => vec!["--greedy".into()],
        Decoding::Joint { k } if f2 => [top_k(k), vec!["--joint".into()]].concat(),
        Decoding::ClassNucleus { k, p } if f2 => {
            [top_k(k), vec!["--class-top-p".into(), p.to_string().into()]].concat()
        }
        Decoding::TopK { k } | Decoding::Joint { k } | Decoding::ClassNucleus { k, .. } => top_k(k),
    }
}

fn decoding_name(decoding: Decoding) -> String {
    match decoding {
        Decoding::Given => "given".to_owned(),
        Decoding::Greedy => "greedy".to_owned(),
        Decoding::TopK { k } => format!("top-{k}"),
        Decoding::Joint { k } => format!("joint-{k}"),
        Decoding::ClassNucleus { k, p } => format!("top-{k}-nucleus-{p}"),
    }
}
