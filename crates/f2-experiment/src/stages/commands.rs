use f2_report::results::{ClassRule, Decoding};

use super::{CorpusRole, Part, Purpose, Stage, Stages, Subject, TestTokens, Word};
use crate::{Model, Plan, Texts};

/// What the stages' files are called.
pub(crate) mod files {
    pub(crate) const CORPUS: &str = "corpus";
    pub(crate) const CORPUS_MANIFEST: &str = "corpus/manifest.json";
    pub(crate) const CORPUS_COUNTS: &str = "corpus/counts.json";
    pub(crate) const CORPUS_TOKENIZER: &str = "corpus/tokenizer.json";
    pub(crate) const CLASSES: &str = "classes.json";
    pub(crate) const RUN: &str = "run";
    pub(crate) const RUN_CHECKPOINTS: &str = "run/checkpoints";
    pub(crate) const TEXTS: &str = "texts.jsonl";
    pub(crate) const REFERENCES: &str = "references.jsonl";
}

/// Adds commands one after the other, each once.
pub(super) struct Commands<'a> {
    pub(super) plan: &'a Plan,
    pub(super) texts: &'a Texts,
    test_tokens: TestTokens,
    device: &'a [Word],
    stages: Vec<Stage>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        texts: &'a Texts,
        test_tokens: TestTokens,
        device: &'a [Word],
    ) -> Self {
        Self { plan, texts, test_tokens, device, stages: Vec::new() }
    }

    pub(super) fn finish(self) -> Stages {
        Stages(self.stages)
    }

    /// The place of the stage with this purpose, which is added if there is none.
    pub(super) fn place(
        &mut self,
        purpose: &Purpose,
        add: impl FnOnce(&mut Self) -> Stage,
    ) -> usize {
        if let Some(place) = self.stages.iter().position(|stage| stage.purpose == *purpose) {
            return place;
        }
        let stage = add(self);
        self.stages.push(stage);
        self.stages.len() - 1
    }

    fn classes(&mut self, role: CorpusRole, rule: ClassRule, k: Option<usize>) -> usize {
        let purpose = Purpose::Classes(role, rule, k);
        self.place(&purpose.clone(), |laid| {
            let mut words = vec!["classes".into(), laid.corpus(role).folder()];
            words.extend(["--method", rule.name()].map(Word::from));
            words.extend(k.into_iter().flat_map(|k| [Word::from("--k"), k.to_string().into()]));
            words.extend(["--out".into(), Word::Makes(files::CLASSES)]);
            let of = if role == CorpusRole::Target { "-target" } else { "" };
            let many = k.map_or_else(String::new, |k| format!("-{k}"));
            let name = format!("classes{of}-{}{many}", rule.name());
            stage(name, purpose, words, vec![files::CLASSES])
        })
    }

    pub(super) fn train(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Train(subject);
        self.place(&purpose.clone(), |laid| {
            let corpus = laid.corpus(subject.corpus()).folder();
            let mut given = Vec::new();
            if let Some((rule, k)) = subject.classes() {
                let stage = laid.classes(subject.corpus(), rule, k);
                given.extend(["--classes".into(), Word::Made { stage, name: files::CLASSES }]);
            }
            let start = subject.starts_from().map(|start| laid.train(start));
            let mut words = vec!["train".into(), corpus.clone()];
            words.extend(laid.settings(subject));
            if let Some(stage) = start {
                words.extend(["--init".into(), Word::Made { stage, name: files::RUN }]);
            }
            words.extend(given.iter().cloned());
            words.extend(laid.device.iter().cloned());
            words.extend(["--out".into(), Word::Makes(files::RUN)]);
            let mut resume = vec!["train".into(), corpus];
            resume.extend(["--resume".into(), Word::Makes(files::RUN)]);
            resume.extend(given);
            resume.extend(laid.device.iter().cloned());
            let name = format!("train-{}", subject.name());
            let stage = stage(name, purpose, words, vec![files::RUN_CHECKPOINTS]);
            Stage { resume: Some(resume), ..stage }
        })
    }

    /// Flags of training. Fine-tuning takes the settings of the model it starts from, and a
    /// learning rate of its own; a transfer has those of training from scratch.
    fn settings(&self, subject: Subject) -> Vec<Word> {
        let Plan { training, seed, .. } = self.plan;
        let own_settings = !subject.is_fine_tuned();
        let mut words: Vec<Word> = Vec::new();
        if own_settings {
            words.extend(["--preset".into(), training.preset.as_str().into()]);
        }
        words.extend(["--objective", subject.model().objective(), "--seed"].map(Word::from));
        words.push(seed.to_string().into());
        if let Some(steps) = subject.steps(self.plan) {
            words.extend(["--steps".into(), steps.to_string().into()]);
        }
        for (key, value) in training.settings.iter().filter(|_| own_settings) {
            words.extend(["--set".into(), format!("{key}={value}").into()]);
        }
        words
    }

    pub(super) fn perplexity(&mut self, subject: Subject) -> usize {
        let purpose = Purpose::Perplexity(subject);
        self.place(&purpose.clone(), |laid| {
            let run = Word::Made { stage: laid.train(subject), name: files::RUN };
            let corpus = laid.corpus(subject.corpus()).folder();
            let mut words = vec!["perplexity".into(), run, corpus, "--json".into()];
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
            let corpus = laid.corpus(subject.corpus()).folder();
            let mut words = vec!["generate".into(), run, "--corpus".into(), corpus];
            words.extend(["--protocol", "paper"].map(Word::from));
            let generation = &laid.plan.generation;
            for (flag, value) in [
                ("--streams", generation.streams_of(laid.test_tokens.of(subject.corpus()))),
                ("--prefix", generation.prefix),
                ("--continuation", generation.continuation),
            ] {
                words.extend([flag.into(), value.to_string().into()]);
            }
            if let Some(texts) = generation.texts {
                words.extend(["--texts".into(), texts.to_string().into()]);
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

    /// Scores F² from scratch and transferred, as the main table decodes.
    pub(super) fn score_transfer(&mut self) {
        let subjects = [Subject::FromScratch, Subject::Transferred];
        for subject in [Subject::Pretrained].iter().chain(&subjects) {
            self.perplexity(*subject);
        }
        let decoding = Decoding::TopK { k: self.plan.generation.k };
        let purpose = Purpose::ScoreTransfer(decoding, subjects.to_vec());
        self.add_score("score-transfer".to_owned(), purpose, decoding, &subjects, Part::Transfer);
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
        let Some((&first, of)) = texts.first().zip(subjects.first()) else { return };
        let counts = self.corpus(of.corpus()).counts();
        let mut words: Vec<Word> = vec!["eval".into(), "--hyps".into()];
        words.extend(texts.iter().map(|&stage| Word::Made { stage, name: files::TEXTS }));
        words.extend(["--refs".into(), Word::Made { stage: first, name: files::REFERENCES }]);
        words.extend(["--counts".into(), counts, "--names".into()]);
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

pub(super) fn stage(
    name: String,
    purpose: Purpose,
    words: Vec<Word>,
    makes: Vec<&'static str>,
) -> Stage {
    Stage { name, purpose, part: None, words, resume: None, makes }
}

fn strategy(subject: Subject, decoding: Decoding) -> Vec<Word> {
    let top_k = |k: usize| vec!["--top-k".into(), k.to_string().into()];
    let f2 = subject.model() == Model::F2;
    match decoding {
        Decoding::Given => Vec::new(),
        Decoding::Greedy => vec!["--greedy".into()],
        Decoding::Joint { k } if f2 => [top_k(k), vec!["--joint".into()]].concat(),
        Decoding::ClassNucleus { k, p } if f2 => {
            [top_k(k), vec!["--class-top-p".into(), p.to_string().into()]].concat()
        }
        Decoding::AuthorsProgram { k } if f2 => {
            let authors = ["--class-top-p", "0.9", "--small-class", "fill"].map(Word::from);
            [top_k(k), authors.to_vec()].concat()
        }
        Decoding::TopK { k }
        | Decoding::Joint { k }
        | Decoding::ClassNucleus { k, .. }
        | Decoding::AuthorsProgram { k } => top_k(k),
    }
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
