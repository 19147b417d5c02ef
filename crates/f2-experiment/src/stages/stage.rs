use std::path::PathBuf;

use f2_report::results::{ClassRule, Decoding};

use super::{CorpusRole, Subject};

/// One command of `f2`, what it reads and what it makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name, unique in an experiment.
    pub name: String,
    /// What it does, for whoever gathers the results.
    pub purpose: Purpose,
    /// The part of the paper it completes, where it completes one.
    pub part: Option<Part>,
    /// The command: the verb first.
    pub words: Vec<Word>,
    /// The command that goes on where an earlier one was stopped.
    pub resume: Option<Vec<Word>>,
    /// Files and folders it makes: they are there, and not empty, when it is done.
    pub makes: Vec<&'static str>,
}

/// What a stage does.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// Text to corpus.
    Prepare(CorpusRole),
    /// Counts to classes.
    Classes(CorpusRole, ClassRule, Option<usize>),
    /// Corpus to model.
    Train(Subject),
    /// Perplexity on the test split.
    Perplexity(Subject),
    /// Continuations of the test split's prefixes.
    Generate(Subject, Decoding),
    /// Scores of several models.
    Score(Decoding, Vec<Subject>),
    /// Scores of F² models with other classes.
    ScoreTrials(Vec<Subject>),
    /// Scores of F² from scratch and transferred.
    ScoreTransfer(Decoding, Vec<Subject>),
}

/// A part of the paper that can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The main table, the bands and the samples.
    Main,
    /// The greedy table and the matches.
    Greedy,
    /// The tables of other k.
    TopK,
    /// Decoupled decoding on and off.
    Decoupling,
    /// Nuclei of classes.
    Nucleus,
    /// Classes cut by plain rules, over K.
    Classes,
    /// The MefMax methods side by side.
    Methods,
    /// A pretrained model transferred to the text.
    Transfer,
}

impl Part {
    /// Every part, in the order of the report.
    pub const ALL: [Self; 8] = [
        Self::Main,
        Self::Greedy,
        Self::TopK,
        Self::Decoupling,
        Self::Nucleus,
        Self::Classes,
        Self::Methods,
        Self::Transfer,
    ];

    /// Whether it takes something away, to be read beside the main table.
    pub fn is_ablation(self) -> bool {
        !matches!(self, Self::Main | Self::Greedy | Self::TopK | Self::Transfer)
    }

    /// The name it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Greedy => "greedy",
            Self::TopK => "top-k",
            Self::Decoupling => "decoupling",
            Self::Nucleus => "nucleus",
            Self::Classes => "classes",
            Self::Methods => "methods",
            Self::Transfer => "transfer",
        }
    }
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// As it stands.
    Plain(String),
    /// As it stands, but of no consequence for what comes out: a number of threads.
    Aside(String),
    /// A file or folder of the user's, told apart by its content.
    Outside(PathBuf),
    /// A file or folder that another stage makes.
    Made {
        /// The place of the stage.
        stage: usize,
        /// Its path in that stage's folder.
        name: &'static str,
    },
    /// A file or folder that this stage makes.
    Makes(&'static str),
}

impl<T: Into<String>> From<T> for Word {
    fn from(text: T) -> Self {
        Self::Plain(text.into())
    }
}

impl Stage {
    /// Whether it makes a corpus out of text.
    pub fn prepares(&self) -> bool {
        matches!(self.purpose, Purpose::Prepare(_))
    }

    /// The places of the stages whose work it reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> {
        self.words.iter().filter_map(|word| match word {
            Word::Made { stage, .. } => Some(*stage),
            _ => None,
        })
    }

    /// The command, with names for places that are not known yet.
    pub fn shown(&self) -> String {
        let word = |word: &Word| match word {
            Word::Plain(text) | Word::Aside(text) => text.clone(),
            Word::Outside(path) => path.display().to_string(),
            Word::Made { stage, name } => format!("{{{stage}}}/{name}"),
            Word::Makes(name) => format!("{{}}/{name}"),
        };
        let words: Vec<String> = self.words.iter().map(word).collect();
        format!("{}: f2 {}", self.name, words.join(" "))
    }
}
