//! Tasks: the parameters of a stage's work, from which the request of its verb is built.

use std::collections::BTreeMap;
use std::convert::Infallible;

use f2_classes::Method;
use f2_lm::config::{ObjectiveName, Preset};
use f2_lm::decode::ProtocolName;
use f2_report::results::Decoding;
use serde::{Serialize, Serializer};

use super::TaskKind;

/// The work of a stage. `P` is a path: a [`Place`](super::Place) in a stage, a `PathBuf` on disk, a
/// description of the content in a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum Task<P> {
    /// Text to corpus.
    Prepare(PrepareTask<P>),
    /// Counts to classes.
    Classes(ClassesTask<P>),
    /// Corpus to model.
    Train(TrainTask<P>),
    /// Perplexity on the test split.
    Perplexity(PerplexityTask<P>),
    /// Continuations of the test split's prefixes.
    Generate(GenerateTask<P>),
    /// Scores of generated texts.
    Score(ScoreTask<P>),
}

/// A text to prepare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrepareTask<P> {
    /// Files and folders.
    pub texts: Vec<P>,
    /// The tokenizer.
    pub tokenizer: TokenizerSource<P>,
    /// How documents are separated, as in `f2 prepare --documents`.
    pub documents: Option<String>,
    /// Whether every document is preceded by a start symbol.
    pub start_of_text: bool,
    /// The corpus folder.
    pub out: P,
}

/// The source of a tokenizer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenizerSource<P> {
    /// Learned from the text, with this vocabulary size.
    Learnt(usize),
    /// A `tokenizer.json`.
    File(P),
}

/// Classes to compute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassesTask<P> {
    /// The corpus with the counts.
    pub corpus: P,
    /// The method.
    #[serde(rename = "rule")]
    pub method: Method,
    /// The number of classes; `None` if the method chooses it.
    pub k: Option<usize>,
    /// The file of classes.
    pub out: P,
}

/// A model to train.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainTask<P> {
    /// The corpus.
    pub corpus: P,
    /// The preset to start from; `None` for the settings of the initial model.
    #[serde(serialize_with = "preset_name")]
    pub preset: Option<Preset>,
    /// The objective.
    pub model: ObjectiveName,
    /// The seed of initial weights, text order and dropout.
    pub seed: u64,
    /// The number of steps; `None` for the limit of the settings.
    pub steps: Option<u64>,
    /// Further settings by name.
    pub settings: BTreeMap<String, String>,
    /// The model to initialise from; `None` for random weights.
    pub init: Option<P>,
    /// The classes of an F² model.
    pub classes: Option<P>,
    /// Whether to resume an interrupted run.
    pub resume: bool,
    /// The run folder.
    pub out: P,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn preset_name<S: Serializer>(preset: &Option<Preset>, serializer: S) -> Result<S::Ok, S::Error> {
    preset.map(Preset::name).serialize(serializer)
}

/// A perplexity to compute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerplexityTask<P> {
    /// The run.
    pub model: P,
    /// The corpus.
    pub corpus: P,
    /// The file for the result.
    pub out: P,
}

/// Prefixes to continue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GenerateTask<P> {
    /// The run.
    pub model: P,
    /// The corpus whose test split contains the prefixes.
    pub corpus: P,
    /// How prefixes are cut from the test split.
    #[serde(serialize_with = "protocol_name")]
    pub protocol: ProtocolName,
    /// The number of streams, for the protocol that has them.
    pub streams: Option<usize>,
    /// The length of a prefix in tokens.
    pub prefix: usize,
    /// The length of a continuation in tokens.
    pub continuation: usize,
    /// The largest number of texts.
    pub texts: Option<usize>,
    /// The decoding.
    pub decoding: Decoding,
    /// Whether the model has frequency classes.
    pub factorised: bool,
    /// The seed of sampling.
    pub seed: u64,
    /// The file for the references.
    pub references: P,
    /// The file for the texts.
    pub out: P,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn protocol_name<S: Serializer>(name: &ProtocolName, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_str().serialize(serializer)
}

/// Texts to score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreTask<P> {
    /// The texts of each model.
    pub texts: Vec<P>,
    /// The models' names.
    pub names: Vec<String>,
    /// The references.
    pub references: P,
    /// Token counts of the training split.
    pub counts: P,
    /// The corpus whose training split is searched for n-grams; `None` to skip these metrics.
    pub corpus: Option<P>,
    /// The number of bootstrap replicates; 0 for no intervals.
    pub bootstrap: usize,
    /// The file for the scores.
    pub out: P,
}

impl<P> Task<P> {
    /// Its kind.
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Prepare(_) => TaskKind::Prepare,
            Self::Classes(_) => TaskKind::Classes,
            Self::Train(_) => TaskKind::Train,
            Self::Perplexity(_) => TaskKind::Perplexity,
            Self::Generate(_) => TaskKind::Generate,
            Self::Score(_) => TaskKind::Score,
        }
    }

    /// Whether it runs on the device that the user chose, which then affects its result.
    pub fn needs_device(&self) -> bool {
        matches!(self, Self::Train(_) | Self::Perplexity(_) | Self::Generate(_))
    }

    /// The same task with other paths.
    pub fn map<Q>(&self, mut path: impl FnMut(&P) -> Q) -> Task<Q> {
        let Ok(task) = self.try_map(|each| Ok::<_, Infallible>(path(each)));
        task
    }

    /// The same task with other paths, or the first error.
    pub fn try_map<Q, E>(&self, mut path: impl FnMut(&P) -> Result<Q, E>) -> Result<Task<Q>, E> {
        let path = &mut path;
        Ok(match self {
            Self::Prepare(task) => Task::Prepare(task.try_map(path)?),
            Self::Classes(task) => Task::Classes(ClassesTask {
                corpus: path(&task.corpus)?,
                method: task.method,
                k: task.k,
                out: path(&task.out)?,
            }),
            Self::Train(task) => Task::Train(task.try_map(path)?),
            Self::Perplexity(task) => Task::Perplexity(PerplexityTask {
                model: path(&task.model)?,
                corpus: path(&task.corpus)?,
                out: path(&task.out)?,
            }),
            Self::Generate(task) => Task::Generate(task.try_map(path)?),
            Self::Score(task) => Task::Score(ScoreTask {
                texts: task.texts.iter().map(&mut *path).collect::<Result<_, E>>()?,
                names: task.names.clone(),
                references: path(&task.references)?,
                counts: path(&task.counts)?,
                corpus: task.corpus.as_ref().map(&mut *path).transpose()?,
                bootstrap: task.bootstrap,
                out: path(&task.out)?,
            }),
        })
    }
}

impl<P> PrepareTask<P> {
    fn try_map<Q, E>(
        &self,
        path: &mut impl FnMut(&P) -> Result<Q, E>,
    ) -> Result<PrepareTask<Q>, E> {
        Ok(PrepareTask {
            texts: self.texts.iter().map(&mut *path).collect::<Result<_, E>>()?,
            tokenizer: match &self.tokenizer {
                TokenizerSource::Learnt(size) => TokenizerSource::Learnt(*size),
                TokenizerSource::File(file) => TokenizerSource::File(path(file)?),
            },
            documents: self.documents.clone(),
            start_of_text: self.start_of_text,
            out: path(&self.out)?,
        })
    }
}

impl<P> TrainTask<P> {
    fn try_map<Q, E>(&self, path: &mut impl FnMut(&P) -> Result<Q, E>) -> Result<TrainTask<Q>, E> {
        Ok(TrainTask {
            corpus: path(&self.corpus)?,
            preset: self.preset,
            model: self.model,
            seed: self.seed,
            steps: self.steps,
            settings: self.settings.clone(),
            init: self.init.as_ref().map(&mut *path).transpose()?,
            classes: self.classes.as_ref().map(&mut *path).transpose()?,
            resume: self.resume,
            out: path(&self.out)?,
        })
    }
}

impl<P> GenerateTask<P> {
    fn try_map<Q, E>(
        &self,
        path: &mut impl FnMut(&P) -> Result<Q, E>,
    ) -> Result<GenerateTask<Q>, E> {
        Ok(GenerateTask {
            model: path(&self.model)?,
            corpus: path(&self.corpus)?,
            protocol: self.protocol,
            streams: self.streams,
            prefix: self.prefix,
            continuation: self.continuation,
            texts: self.texts,
            decoding: self.decoding,
            factorised: self.factorised,
            seed: self.seed,
            references: path(&self.references)?,
            out: path(&self.out)?,
        })
    }
}
