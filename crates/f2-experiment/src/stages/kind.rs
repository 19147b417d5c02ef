//! The kinds of tasks, and the revisions of their results.

/// A kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Text to corpus.
    Prepare,
    /// Counts to classes.
    Classes,
    /// Corpus to model.
    Train,
    /// Perplexity on the test split.
    Perplexity,
    /// Continuations of prefixes.
    Generate,
    /// Scores of texts.
    Score,
}

impl TaskKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Prepare, Self::Classes, Self::Train, Self::Perplexity, Self::Generate, Self::Score];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Classes => "classes",
            Self::Train => "train",
            Self::Perplexity => "perplexity",
            Self::Generate => "generate",
            Self::Score => "score",
        }
    }

    /// The revision of its results, a part of every key. Must be increased when the same task gives
    /// different results than before, so that results of earlier versions are not reused.
    pub fn revision(self) -> u32 {
        match self {
            Self::Classes | Self::Train | Self::Prepare => 1,
            // Since revision 2: only whole windows and documents; the further metrics.
            Self::Perplexity | Self::Generate | Self::Score => 2,
        }
    }
}
