//! Chosen classes with their scores: `classes.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::efficiency::efficiency;
use crate::objective::{class_efficiency, mean_efficiency};
use crate::{ClassesError, CountsFingerprint, FrequencyClasses, Method, RankCounts};

/// The version of `classes.json` written and read here.
const VERSION: u64 = 1;

/// The classes a method chose, their scores, and the other K it tried: the content of
/// `classes.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassSelection {
    method: Method,
    unseen: u64,
    counts: CountsFingerprint,
    classes: FrequencyClasses,
    objective: f64,
    class_efficiency: f64,
    summaries: Vec<ClassSummary>,
    curve: Vec<Trial>,
}

/// One class of a selection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// Its first rank.
    pub start: usize,
    /// The rank after its last.
    pub end: usize,
    /// How many tokens it holds.
    pub tokens: usize,
    /// Its share of all occurrences.
    pub mass: f64,
    /// How evenly its tokens share that mass: U(V).
    pub efficiency: f64,
}

/// A number of classes that was tried, and its mean efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// How many classes.
    pub k: usize,
    /// Eq. 5.
    pub objective: f64,
}

/// `classes.json`, field by field.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u64,
    method: Method,
    k: usize,
    ends: Vec<usize>,
    objective: f64,
    class_efficiency: f64,
    classes: Vec<ClassSummary>,
    curve: Vec<Trial>,
    unseen: u64,
    counts_sha256: CountsFingerprint,
}

/// Parsed first, so that another version is reported as such and not as a missing field.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl ClassSelection {
    pub(crate) fn new(
        method: Method,
        counts: &RankCounts,
        classes: FrequencyClasses,
        curve: Vec<Trial>,
    ) -> Self {
        Self {
            method,
            unseen: counts.unseen_floor(),
            counts: counts.fingerprint().clone(),
            objective: mean_efficiency(counts, &classes),
            class_efficiency: class_efficiency(counts, &classes),
            summaries: summaries(counts, &classes),
            classes,
            curve,
        }
    }

    /// How the classes were cut.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The count assigned to unseen tokens.
    pub fn unseen_floor(&self) -> u64 {
        self.unseen
    }

    /// The fingerprint of the counts the classes were made from.
    pub fn counts_fingerprint(&self) -> &CountsFingerprint {
        &self.counts
    }

    /// The classes.
    pub fn classes(&self) -> &FrequencyClasses {
        &self.classes
    }

    /// The classes without their scores.
    pub fn into_classes(self) -> FrequencyClasses {
        self.classes
    }

    /// Eq. 5 of the classes, for any method.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// How evenly the classes share the mass: U(C).
    pub fn class_efficiency(&self) -> f64 {
        self.class_efficiency
    }

    /// Every class, in order.
    pub fn summaries(&self) -> &[ClassSummary] {
        &self.summaries
    }

    /// Eq. 5 for every K that was tried, in order.
    pub fn curve(&self) -> &[Trial] {
        &self.curve
    }

    /// Writes `classes.json`.
    pub fn save(&self, path: &Path) -> Result<(), ClassesError> {
        let text = serde_json::to_string_pretty(&self.document())
            .map_err(|source| ClassesError::Json { path: path.to_path_buf(), source })?;
        Ok(f2_files::write_text_atomically(path, &(text + "\n"))?)
    }

    /// Reads a `classes.json`.
    pub fn load(path: &Path) -> Result<Self, ClassesError> {
        let json = |source| ClassesError::Json { path: path.to_path_buf(), source };
        let text = f2_files::read_text(path)?;
        let Versioned { version } = serde_json::from_str(&text).map_err(json)?;
        if version != VERSION {
            let (path, found) = (path.to_path_buf(), version);
            return Err(ClassesError::Version { path, found, expected: VERSION });
        }
        Self::from_document(serde_json::from_str(&text).map_err(json)?, path)
    }

    fn document(&self) -> Document {
        Document {
            version: VERSION,
            method: self.method,
            k: self.classes.len(),
            ends: self.classes.ends().to_vec(),
            objective: self.objective,
            class_efficiency: self.class_efficiency,
            classes: self.summaries.clone(),
            curve: self.curve.clone(),
            unseen: self.unseen,
            counts_sha256: self.counts.clone(),
        }
    }

    fn from_document(document: Document, path: &Path) -> Result<Self, ClassesError> {
        if document.ends.len() != document.k {
            let (k, found) = (document.k, document.ends.len());
            return Err(ClassesError::WrongK { path: path.to_path_buf(), k, found });
        }
        Ok(Self {
            classes: FrequencyClasses::new(document.ends).map_err(|error| error.in_file(path))?,
            method: document.method,
            unseen: document.unseen,
            counts: document.counts_sha256,
            objective: document.objective,
            class_efficiency: document.class_efficiency,
            summaries: document.classes,
            curve: document.curve,
        })
    }
}

fn summaries(counts: &RankCounts, classes: &FrequencyClasses) -> Vec<ClassSummary> {
    let summary = |ranks: std::ops::Range<usize>| {
        let members = &counts.counts()[ranks.clone()];
        ClassSummary {
            start: ranks.start,
            end: ranks.end,
            tokens: members.len(),
            mass: members.iter().sum::<u64>() as f64 / counts.total() as f64,
            efficiency: efficiency(members),
        }
    };
    classes.ranges().map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select;

    fn saved() -> (tempfile::TempDir, std::path::PathBuf, ClassSelection) {
        let counts = RankCounts::new(&[10, 9, 5, 3, 2, 1, 0]).unwrap().with_unseen(1).unwrap();
        let selection = select(&counts, Method::Exact, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classes.json");
        selection.save(&path).unwrap();
        (folder, path, selection)
    }

    fn refusal(path: &Path, from: &str, to: &str) -> String {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
        ClassSelection::load(path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_saved_is_what_loads() {
        let (_folder, path, selection) = saved();
        assert_eq!(ClassSelection::load(&path).unwrap(), selection);
        assert_eq!(FrequencyClasses::load(&path).unwrap(), *selection.classes());
    }

    #[test]
    fn a_file_of_another_version_is_named_as_such() {
        let (_folder, path, _) = saved();
        let reason = refusal(&path, "\"version\": 1", "\"version\": 9");
        assert!(reason.ends_with("has format version 9; this program reads version 1"), "{reason}");
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let (_folder, path, selection) = saved();
        let k = format!("\"k\": {},\n  \"ends\"", selection.classes().len());
        let reason = refusal(&path, &k, "\"k\": 7,\n  \"ends\"");
        assert!(reason.ends_with("class ends are listed for k = 7"), "{reason}");
    }
}
