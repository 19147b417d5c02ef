//! A task as the equivalent command of `f2`, for display.

use std::ffi::OsString;

use f2_report::results::Decoding;

use super::task::{
    ClassesTask, GenerateTask, PerplexityTask, PrepareTask, ScoreTask, Task, TokenizerSource,
    TrainTask,
};

/// The words of a command.
type Words = Vec<OsString>;

/// The flags for threads and device, for the verbs that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFlags {
    /// The number of threads, which does not affect results.
    pub threads: Vec<OsString>,
    /// The device and its precision.
    pub device: Vec<OsString>,
}

impl DeviceFlags {
    fn all(&self) -> impl Iterator<Item = OsString> {
        self.threads.iter().chain(&self.device).cloned()
    }

    /// The part of stage keys for the device.
    pub fn key(&self) -> String {
        let words: Vec<_> = self.device.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

impl Task<OsString> {
    /// The words of the command, the verb first. Printed results are redirected to a file with `>`.
    pub fn command(&self, flags: &DeviceFlags) -> Words {
        match self {
            Self::Prepare(task) => prepare(task, flags),
            Self::Classes(task) => classes(task),
            Self::Train(task) => train(task, flags),
            Self::Perplexity(task) => perplexity(task, flags),
            Self::Generate(task) => generate(task, flags),
            Self::Score(task) => score(task),
        }
    }
}

fn add(words: &mut Words, flag: &str, value: &impl ToString) {
    words.extend([flag.into(), value.to_string().into()]);
}

fn add_path(words: &mut Words, flag: &str, path: &OsString) {
    words.extend([flag.into(), path.clone()]);
}

fn prepare(task: &PrepareTask<OsString>, flags: &DeviceFlags) -> Words {
    let mut words = vec!["prepare".into()];
    words.extend(task.texts.iter().cloned());
    match &task.tokenizer {
        TokenizerSource::Learnt(size) => add(&mut words, "--vocab-size", size),
        TokenizerSource::File(file) => add_path(&mut words, "--tokenizer", file),
    }
    if let Some(documents) = &task.documents {
        add(&mut words, "--documents", documents);
    }
    if task.start_of_text {
        words.push("--start-of-text".into());
    }
    words.extend(flags.threads.iter().cloned());
    add_path(&mut words, "--out", &task.out);
    words
}

fn classes(task: &ClassesTask<OsString>) -> Words {
    let mut words = vec!["classes".into(), task.corpus.clone()];
    add(&mut words, "--method", &task.method.name());
    if let Some(k) = task.k {
        add(&mut words, "--k", &k);
    }
    add_path(&mut words, "--out", &task.out);
    words
}

fn train(task: &TrainTask<OsString>, flags: &DeviceFlags) -> Words {
    let mut words = vec!["train".into(), task.corpus.clone()];
    if !task.resume {
        if let Some(preset) = &task.preset {
            add(&mut words, "--preset", &preset.name());
        }
        add(&mut words, "--objective", &task.model.as_str());
        add(&mut words, "--seed", &task.seed);
        if let Some(steps) = task.steps {
            add(&mut words, "--steps", &steps);
        }
        for (key, value) in &task.settings {
            add(&mut words, "--set", &format!("{key}={value}"));
        }
        if let Some(init) = &task.init {
            add_path(&mut words, "--init", init);
        }
    }
    if let Some(classes) = &task.classes {
        add_path(&mut words, "--classes", classes);
    }
    words.extend(flags.all());
    add_path(&mut words, if task.resume { "--resume" } else { "--out" }, &task.out);
    words
}

fn perplexity(task: &PerplexityTask<OsString>, flags: &DeviceFlags) -> Words {
    let mut words = vec!["perplexity".into(), task.model.clone(), task.corpus.clone()];
    words.push("--json".into());
    words.extend(flags.all());
    add_path(&mut words, ">", &task.out);
    words
}

fn generate(task: &GenerateTask<OsString>, flags: &DeviceFlags) -> Words {
    let mut words = vec!["generate".into(), task.model.clone()];
    add_path(&mut words, "--corpus", &task.corpus);
    add(&mut words, "--protocol", &task.protocol.as_str());
    if let Some(streams) = task.streams {
        add(&mut words, "--streams", &streams);
    }
    add(&mut words, "--prefix", &task.prefix);
    add(&mut words, "--continuation", &task.continuation);
    if let Some(texts) = task.texts {
        add(&mut words, "--texts", &texts);
    }
    add(&mut words, "--seed", &task.seed);
    // Ignores the decoding that the model was tuned to.
    add(&mut words, "--decoding", &"none");
    strategy(&mut words, task.decoding, task.factorised);
    words.extend(flags.all());
    add_path(&mut words, "--references", &task.references);
    add_path(&mut words, "--out", &task.out);
    words
}

/// The flags of a decoding. Those for classes are omitted for a plain softmax.
fn strategy(words: &mut Words, decoding: Decoding, factorised: bool) {
    let k = match decoding {
        Decoding::Given => return,
        Decoding::Greedy => return words.push("--greedy".into()),
        Decoding::TopK { k }
        | Decoding::Joint { k }
        | Decoding::ClassNucleus { k, .. }
        | Decoding::AuthorsProgram { k } => k,
    };
    add(words, "--top-k", &k);
    match decoding {
        Decoding::Joint { .. } if factorised => words.push("--joint".into()),
        Decoding::ClassNucleus { p, .. } if factorised => add(words, "--class-top-p", &p),
        Decoding::AuthorsProgram { .. } if factorised => {
            add(words, "--class-top-p", &Decoding::AUTHORS_CLASS_NUCLEUS);
            add(words, "--small-class", &"fill");
        }
        _ => {}
    }
}

fn score(task: &ScoreTask<OsString>) -> Words {
    let mut words: Words = vec!["eval".into(), "--hyps".into()];
    words.extend(task.texts.iter().cloned());
    add_path(&mut words, "--refs", &task.references);
    add_path(&mut words, "--counts", &task.counts);
    add(
        &mut words,
        "--metrics",
        &if task.corpus.is_some() { "paper,texts,training" } else { "paper,texts" },
    );
    if let Some(corpus) = &task.corpus {
        add_path(&mut words, "--corpus", corpus);
    }
    words.push("--names".into());
    words.extend(task.names.iter().map(OsString::from));
    if task.bootstrap > 0 {
        add(&mut words, "--bootstrap", &task.bootstrap);
    }
    words.push("--json".into());
    add_path(&mut words, ">", &task.out);
    words
}
