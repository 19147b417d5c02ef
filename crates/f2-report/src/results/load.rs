//! Reading and writing `results.json`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::{RESULTS_VERSION, Results};

/// Why results cannot be read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file does not exist or cannot be read.
    #[error(transparent)]
    Read(#[from] f2_files::ReadError),
    /// The file does not contain results.
    #[error("{path} does not hold results: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file has another version.
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

/// The field common to all versions.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Results {
    /// Reads a `results.json`.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = f2_files::read_text(f2_files::regular_file(path)?)?;
        let broken = |error: serde_json::Error| LoadError::Broken {
            path: path.to_path_buf(),
            reason: error.to_string(),
        };
        let Versioned { version } = serde_json::from_str(&text).map_err(broken)?;
        if version != RESULTS_VERSION {
            return Err(LoadError::Version { path: path.to_path_buf(), found: version });
        }
        let results: Self = serde_json::from_str(&text).map_err(broken)?;
        match results.contradiction() {
            None => Ok(results),
            Some(reason) => Err(LoadError::Broken { path: path.to_path_buf(), reason }),
        }
    }

    /// Describes lists that should have equal lengths but do not.
    fn contradiction(&self) -> Option<String> {
        let unequal = self.classes.iter().find(|classes| {
            let lengths = [classes.masses.len(), classes.efficiencies.len()];
            classes.tokens.is_empty() || lengths.iter().any(|&n| n != classes.tokens.len())
        });
        let own = unequal.map(|classes| {
            format!(
                "the classes of {} have {} sizes, {} masses and {} efficiencies",
                classes.method,
                classes.tokens.len(),
                classes.masses.len(),
                classes.efficiencies.len()
            )
        });
        own.or_else(|| self.studies.iter().find_map(Self::contradiction))
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
    fn classes_whose_lists_differ_in_length_are_refused() {
        let mut results = Results::new("Title");
        results.classes.push(crate::results::ClassesResult {
            method: "greedy".to_owned(),
            tokens: vec![1, 2],
            masses: vec![0.5, 0.3, 0.2],
            efficiencies: vec![1.0, 0.9],
            ..Default::default()
        });
        let mut study = Results::new("Several corpora");
        study.studies.push(results.clone());
        for results in [results, study] {
            let error = load(&results.to_json()).unwrap_err().to_string();
            assert!(error.contains("greedy have 2 sizes, 3 masses and 2 efficiencies"), "{error}");
        }
    }

    #[test]
    fn another_version_is_named_whatever_else_it_holds() {
        let error = load(r#"{"version": 7, "anything": []}"#).unwrap_err().to_string();
        assert!(error.contains("version 7"), "{error}");
        assert!(matches!(load("{}"), Err(LoadError::Broken { .. })));
    }
}
