//! Errors of configuring, training, generating and scoring.

use std::path::PathBuf;

use f2_files::{LockError, ReadError, WriteError};

use crate::config::Origin;
use crate::memory::Purpose;
use crate::run::Differences;

/// An error of configuring, training, writing or scoring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file or folder could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another process is using the run.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A configuration file is not TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    ConfigSyntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// An unknown key.
    #[error("unknown setting `{key}` ({place}){}", offer(nearest.as_deref()))]
    UnknownKey {
        /// The key as it was written.
        key: String,
        /// Where it was written.
        place: String,
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// A value that is invalid for its key.
    #[error("setting `{key}` ({place}): {reason}")]
    ConfigValue {
        /// The key.
        key: String,
        /// Where the value was given.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A split is too short for a step.
    #[error("the {split} split has {tokens} tokens; windows of {sequence} need at least {needed}")]
    SplitTooShort {
        /// Which split.
        split: &'static str,
        /// Its tokens.
        tokens: u64,
        /// The fewest that suffice.
        needed: u64,
        /// The length of a window.
        sequence: usize,
    },
    /// A batch of documents cannot be filled.
    #[error(
        "the train split has {found} documents (or pieces of longer ones) of at least {shortest} \
         tokens; a step takes {needed}"
    )]
    TooFewDocuments {
        /// How many there are.
        found: usize,
        /// How many a step takes.
        needed: usize,
        /// The fewest tokens a document may have.
        shortest: usize,
    },
    /// A document of a corpus of pairs that is not a pair.
    #[error("document {document} of the split is not a pair: it has no target after a separator")]
    NoTarget {
        /// Which, from 1.
        document: usize,
    },
    /// Windows that would span several pairs.
    #[error("with pairs, each row is one pair: `batch.order` must be \"documents\"")]
    OrderOfPairs,
    /// An objective that has no meaning on pairs.
    #[error(
        "the objective {objective} continues pieces of running text, but the corpus consists of pairs"
    )]
    ObjectiveOfPairs {
        /// Its name.
        objective: &'static str,
    },
    /// A model trained on pairs, and a corpus of running text.
    #[error(
        "{} holds no pairs, and the model in {} was trained on pairs",
        corpus.display(),
        model.display()
    )]
    NoPairs {
        /// The corpus.
        corpus: PathBuf,
        /// The model.
        model: PathBuf,
    },
    /// A corpus of pairs, and a model of running text.
    #[error(
        "{} holds pairs, and the model in {} was not trained on pairs",
        corpus.display(),
        model.display()
    )]
    NotTrainedOnPairs {
        /// The corpus.
        corpus: PathBuf,
        /// The model.
        model: PathBuf,
    },
    /// No document is long enough to be scored.
    #[error(
        "none of the {documents} documents of the text has at least {shortest} tokens, and \
         shorter ones are not scored"
    )]
    DocumentsTooShort {
        /// How many documents there are.
        documents: usize,
        /// The fewest tokens of one that is scored.
        shortest: usize,
    },
    /// The vocabulary set by hand is not the corpus's.
    #[error("setting `model.vocabulary` ({place}) is {asked}, but the corpus has {corpus} tokens")]
    VocabularyMismatch {
        /// Where the number was given.
        place: String,
        /// The number.
        asked: usize,
        /// The corpus's own.
        corpus: usize,
    },
    /// A token outside the vocabulary.
    #[error("the text holds token {token}; the model's vocabulary has {vocabulary}")]
    TokenOutside {
        /// The token.
        token: u32,
        /// The size of the vocabulary.
        vocabulary: usize,
    },
    /// There are no frequency classes.
    #[error("there are no frequency classes at {}", path.display())]
    NoClasses {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// Frequency classes were named for a model that has none.
    #[error("a plain softmax has no frequency classes")]
    ClassesOfNoUse,
    /// Frequency classes of another corpus.
    #[error(
        "{} and {} do not belong together: the classes were made from counts {found}, the corpus \
         has counts {expected}",
        classes.display(),
        corpus.display()
    )]
    ClassesMismatch {
        /// The classes' file.
        classes: PathBuf,
        /// The fingerprint of the counts they were made from.
        found: String,
        /// The corpus.
        corpus: PathBuf,
        /// The fingerprint of its counts.
        expected: String,
    },
    /// A run's classes have changed.
    #[error(
        "the frequency classes in {} are not those this run was started with: SHA-256 {found}, not \
         {expected}",
        path.display()
    )]
    ClassesChanged {
        /// The classes' file.
        path: PathBuf,
        /// Its SHA-256.
        found: String,
        /// That of the run's.
        expected: String,
    },
    /// A run's corpus has changed.
    #[error(
        "the corpus in {} is not the one this run was trained on: it has {found}, the run \
         {expected}",
        path.display()
    )]
    CorpusChanged {
        /// The corpus.
        path: PathBuf,
        /// Its fingerprints.
        found: String,
        /// Those of the run.
        expected: String,
    },
    /// An objective that fine-tunes has nothing to start from.
    #[error("the objective {objective} fine-tunes a trained model, and none is named")]
    NoInitialModel {
        /// The objective.
        objective: &'static str,
    },
    /// A model to start from has other parameters.
    #[error(
        "training cannot start from the model in {}: its `{key}` is {found}, the run's {needed}",
        path.display()
    )]
    InitialModelMismatch {
        /// The model's folder.
        path: PathBuf,
        /// The setting that differs.
        key: &'static str,
        /// The source of the run's value; `None` for a default.
        origin: Option<Origin>,
        /// The model's value.
        found: String,
        /// The run's.
        needed: String,
    },
    /// A model to start from has another head.
    #[error(
        "training cannot start from the model in {}: its head has {found}, the run's {needed}",
        path.display()
    )]
    InitialClasses {
        /// The model's folder.
        path: PathBuf,
        /// The model's classes, in words.
        found: String,
        /// The run's.
        needed: String,
    },
    /// A model to start from has another vocabulary.
    #[error(
        "the model in {} and the corpus in {} do not belong together, their tokenizers differ: \
         {reason}",
        model.display(),
        corpus.display()
    )]
    InitialVocabulary {
        /// The model's folder.
        model: PathBuf,
        /// The corpus.
        corpus: PathBuf,
        /// How they differ.
        reason: String,
    },
    /// The model a run started from has changed.
    #[error(
        "the model in {} is not the one this run was started from: SHA-256 {found}, not {expected}",
        path.display()
    )]
    InitialModelChanged {
        /// The model's folder.
        path: PathBuf,
        /// The SHA-256 of its parameters.
        found: String,
        /// That of the run's.
        expected: String,
    },
    /// Early stopping without a validation split.
    #[error("`evaluation.patience` needs a validation split; the corpus has none")]
    NothingToWatch,
    /// More ranks than there is work for.
    #[error("{ranks} ranks are too many: a step has {rows} windows to share")]
    TooManyRanks {
        /// How many ranks.
        ranks: usize,
        /// The windows of a step.
        rows: usize,
    },
    /// Micro-batches do not divide the shards.
    #[error(
        "a step of {shards} shards has {rows} windows in each, which cannot be split into \
         `batch.micro` = {micro}"
    )]
    MicroBatch {
        /// Windows of a micro-batch.
        micro: usize,
        /// How many shards.
        shards: usize,
        /// Windows of a shard.
        rows: usize,
    },
    /// No limit ends the run.
    #[error("no limit is set: the run would never end")]
    Endless,
    /// A folder holds a run already.
    #[error("{} already holds a run", path.display())]
    RunExists {
        /// The folder.
        path: PathBuf,
    },
    /// A folder holds something else.
    #[error("{} cannot hold a run: there is a {name} in it already", path.display())]
    FolderTaken {
        /// The folder.
        path: PathBuf,
        /// The file that would be overwritten.
        name: &'static str,
    },
    /// A folder that should hold a run does not.
    #[error("{} holds no run: there is no config.toml in it", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that should hold a model does not.
    #[error("{} holds no model: {reason}", path.display())]
    NotAModel {
        /// The folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A corpus and a model that do not share a tokenizer.
    #[error(
        "{} was prepared with another tokenizer than that of {}: {reason}",
        corpus.display(),
        model.display()
    )]
    ForeignCorpus {
        /// The corpus.
        corpus: PathBuf,
        /// The model.
        model: PathBuf,
        /// How they differ.
        reason: String,
    },
    /// A file of the run is not what it should be.
    #[error("{} is damaged: {reason}", path.display())]
    BadRun {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A checkpoint is damaged, or not of this model.
    #[error("the checkpoint file {} cannot be used: {reason}", path.display())]
    BadCheckpoint {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Settings differ from those the run was trained with.
    #[error("this run was trained with other settings: {differences}")]
    ConfigChanged {
        /// The settings that differ and may not.
        differences: Differences,
    },
    /// Settings that determine the parameters differ.
    #[error("settings that determine the model's shape cannot change within a run: {differences}")]
    ShapeChanged {
        /// The settings that differ.
        differences: Differences,
    },
    /// The available memory is too small.
    #[error(
        "{purpose} needs {} of memory; {} are available",
        gigabytes(*needed),
        gigabytes(*available)
    )]
    TooLittleMemory {
        /// The purpose.
        purpose: Purpose,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        available: u64,
    },
    /// Training diverged: the loss is no longer finite.
    #[error(
        "the loss or its gradient was not finite for {in_a_row} steps in a row, up to step {step}"
    )]
    NotFinite {
        /// Steps done.
        step: u64,
        /// How many in a row.
        in_a_row: u32,
        /// The step of the newest checkpoint from before, if there is one.
        kept: Option<u64>,
    },
    /// The parameters are no longer finite.
    #[error("the parameters are no longer finite numbers (`{name}`): they are not saved")]
    ParametersNotFinite {
        /// The first parameter that is not.
        name: String,
    },
    /// A decoding strategy that the model cannot follow.
    #[error("{option}: {reason}")]
    Strategy {
        /// The option at fault.
        option: &'static str,
        /// The reason.
        reason: String,
    },
    /// A test protocol of documents finds none that is long enough.
    #[error("{}", without_long_documents(*documents, *longest, *window))]
    ShortDocuments {
        /// How many documents there are.
        documents: usize,
        /// The tokens of the longest.
        longest: u64,
        /// The number of tokens that a document must exceed.
        window: u64,
    },
    /// A test protocol of documents finds a single one.
    #[error("the split is one document of {tokens} tokens")]
    OneDocument {
        /// Its length.
        tokens: u64,
    },
    /// A text too short to take its perplexity.
    #[error("the text has {tokens} tokens, and nothing to predict after them")]
    TooFewTokens {
        /// How many it has.
        tokens: u64,
    },
    /// An empty prompt.
    #[error("prompt {} is empty: the model needs at least one token to continue", prompt + 1)]
    EmptyPrompt {
        /// Which prompt, from 0.
        prompt: usize,
    },
    /// A model whose probabilities are NaN.
    #[error("the model's probabilities are not numbers: its parameters are damaged")]
    NoProbabilities,
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] f2_corpus::Error),
    /// The frequency classes cannot be read.
    #[error(transparent)]
    Classes(#[from] f2_classes::ClassesError),
    /// The connection between the ranks failed.
    #[error(transparent)]
    Ranks(#[from] f2_ranks::Error),
    /// The device failed.
    #[error(transparent)]
    Engine(#[from] f2_engine::Error),
}

impl Error {
    /// The error of threads that cannot be started.
    pub fn without_threads(threads: usize, reason: &std::io::Error) -> Self {
        Self::Engine(f2_engine::Error::Threads { threads, reason: reason.to_string() })
    }
}

fn without_long_documents(documents: usize, longest: u64, window: u64) -> String {
    if documents == 0 {
        return "the split has no documents".to_owned();
    }
    format!(
        "none of the split's {documents} documents has more than {window} tokens; the longest has \
         {longest}"
    )
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

fn offer(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}
