use std::io;
use std::path::PathBuf;

/// What can go wrong between a configuration and a trained model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    WriteFile {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A configuration file is not TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    ConfigSyntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser met.
        reason: String,
    },
    /// A key no configuration has.
    #[error("unknown setting `{key}` ({place}){}", offer(nearest.as_deref()))]
    UnknownKey {
        /// The key as it was written.
        key: String,
        /// Where it was written.
        place: String,
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// A value its key cannot take.
    #[error("setting `{key}` ({place}): {reason}")]
    ConfigValue {
        /// The key.
        key: String,
        /// Where the value was given.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A split does not hold what a step needs.
    #[error("the {split} split has {tokens} tokens; windows of {sequence} need at least {needed}")]
    SplitTooShort {
        /// Which split.
        split: &'static str,
        /// Its tokens.
        tokens: u64,
        /// The fewest that would do.
        needed: u64,
        /// The length of a window.
        sequence: usize,
    },
}

fn offer(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}
