use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::{RESULTS_VERSION, Results};

/// Why results cannot be read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file is not there or cannot be read.
    #[error(transparent)]
    Read(#[from] f2_files::ReadError),
    /// It is not what a report is made from.
    #[error("{path} does not hold results: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another version wrote it.
    #[error(
        "{path} has version {found} of the results, this program reads version {RESULTS_VERSION}"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// All that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Results {
    /// Reads a `results.json`.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = f2_files::read_text(path)?;
        let broken = |error: serde_json::Error| LoadError::Broken {
            path: path.to_path_buf(),
            reason: error.to_string(),
        };
        let Versioned { version } = serde_json::from_str(&text).map_err(broken)?;
        if version != RESULTS_VERSION {
            return Err(LoadError::Version { path: path.to_path_buf(), found: version });
        }
        serde_json::from_str(&text).map_err(broken)
    }

    /// The text of a `results.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain text and numbers") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Results, LoadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, text).unwrap();
        Results::load(&path)
    }

    #[test]
    fn results_come_back_as_they_were_written() {
        let mut results = Results::new("Title");
        results.remarks.push("a remark".to_owned());
        assert_eq!(load(&results.to_json()).unwrap(), results);
    }

    #[test]
    fn another_version_is_named_whatever_else_it_holds() {
        let error = load(r#"{"version": 7, "anything": []}"#).unwrap_err().to_string();
        assert!(error.contains("version 7"), "{error}");
        assert!(matches!(load("{}"), Err(LoadError::Broken { .. })));
    }
}
