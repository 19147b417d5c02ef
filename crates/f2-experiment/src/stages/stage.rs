//! A stage: a task, its place in the experiment, and the files it makes.

use std::path::PathBuf;

use f2_classes::Method;
use f2_report::results::Decoding;

use super::{CorpusRole, DeviceFlags, PaperPart, Subject, Task};

/// One task of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name, unique in an experiment.
    pub name: String,
    /// Its purpose, by which its results are found.
    pub purpose: Purpose,
    /// The part of the paper it completes, where it completes one.
    pub part: Option<PaperPart>,
    /// Its work.
    pub task: Task<Place>,
    /// Files and folders it makes: they are there, and not empty, when it is done.
    pub makes: Vec<&'static str>,
}

/// The purpose of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// The corpus of a role.
    Prepare(CorpusRole),
    /// The classes of a corpus by a method, as many as given.
    Classes(CorpusRole, Method, Option<usize>),
    /// A trained model.
    Train(Subject),
    /// Its perplexity on the test split.
    Perplexity(Subject),
    /// Its texts.
    Generate(Subject, Decoding),
    /// Scores of models that decode alike.
    Score(Decoding, Vec<Subject>),
    /// Scores of models of one further seed.
    ScoreSeed(u64, Decoding, Vec<Subject>),
    /// Scores of F² models with other classes.
    ScoreTrials(Vec<Subject>),
    /// Scores of F² from scratch and transferred.
    ScoreTransfer(Decoding, Vec<Subject>),
}

/// Where a file or folder of a stage lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// With the user; told apart by its content.
    Outside(PathBuf),
    /// In what another stage makes.
    Made {
        /// The number of the stage.
        stage: usize,
        /// The path in that stage's folder.
        name: &'static str,
    },
    /// In what this stage makes.
    Own(&'static str),
}

impl Stage {
    /// Whether it makes a corpus out of text.
    pub fn prepares(&self) -> bool {
        matches!(self.task, Task::Prepare(_))
    }

    /// The numbers of the stages whose results it reads.
    pub fn reads(&self) -> Vec<usize> {
        let mut read = Vec::new();
        self.task.map(|place| {
            if let Place::Made { stage, .. } = place {
                read.push(*stage);
            }
        });
        read
    }

    /// The command, with names for places that are not known yet.
    pub fn shown(&self, flags: &DeviceFlags) -> String {
        let task = self.task.map(|place| match place {
            Place::Outside(path) => path.clone().into_os_string(),
            Place::Made { stage, name } => format!("{{{stage}}}/{name}").into(),
            Place::Own(name) => format!("{{}}/{name}").into(),
        });
        let words = task.command(flags);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        format!("{}: f2 {}", self.name, words.join(" "))
    }
}
