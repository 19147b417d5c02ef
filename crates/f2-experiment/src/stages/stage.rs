//! A stage: a task, its purpose in the experiment, and the files it writes.

use std::path::PathBuf;

use f2_classes::Method;
use f2_report::results::Decoding;

use super::{CorpusRole, DeviceFlags, PaperPart, Subject, Task};

/// One task of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name, unique in an experiment.
    pub name: String,
    /// Its purpose, which identifies its results.
    pub purpose: Purpose,
    /// The part of the paper it completes, if any.
    pub part: Option<PaperPart>,
    /// Its task.
    pub task: Task<Place>,
    /// The files and folders it writes, which exist and are not empty once it is completed.
    pub makes: Vec<&'static str>,
}

/// The purpose of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// The corpus of a role.
    Prepare(CorpusRole),
    /// The classes of a corpus by a method, with the number of classes if it is given.
    Classes(CorpusRole, Method, Option<usize>),
    /// A trained model.
    Train(Subject),
    /// The perplexity of a model on the test split.
    Perplexity(Subject),
    /// The generated texts of a model.
    Generate(Subject, Decoding),
    /// Scores of models with the same decoding.
    Score(Decoding, Vec<Subject>),
    /// Scores of the models trained from one of the further seeds.
    ScoreSeed(u64, Decoding, Vec<Subject>),
    /// Scores of F² models with other classes.
    ScoreTrials(Vec<Subject>),
    /// Scores of F² from scratch and transferred.
    ScoreTransfer(Decoding, Vec<Subject>),
}

/// The location of a file or folder that a stage reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The user's file or folder; identified by its content.
    Outside(PathBuf),
    /// In the folder of another stage.
    Made {
        /// The number of the stage.
        stage: usize,
        /// The path in that stage's folder.
        name: &'static str,
    },
    /// In the folder of this stage.
    Own(&'static str),
}

impl Stage {
    /// Whether it prepares a corpus from text.
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

    /// The command, with placeholders such as `{3}` for the folders of stages.
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
