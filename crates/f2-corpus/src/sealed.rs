//! JSON files with a version and a checksum of themselves, and records of the files beside them.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{FileRecord, ReadError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The content of a sealed file.
pub(crate) trait Sealed: Serialize + DeserializeOwned {
    /// Refuses versions that this program cannot read.
    fn check_version(version: u32) -> std::result::Result<(), String>;

    /// The checksum as it was read.
    fn checksum(&self) -> &str;

    /// Parses the text of a file and verifies its checksum.
    fn from_json(text: &str) -> std::result::Result<Self, String> {
        let broken = |error: serde_json::Error| error.to_string();
        let Versioned { version } = serde_json::from_str(text).map_err(broken)?;
        Self::check_version(version)?;
        let content: Self = serde_json::from_str(text).map_err(broken)?;
        if f2_files::is_sealed(text, content.checksum()) {
            Ok(content)
        } else {
            Err("its content does not match its checksum".to_owned())
        }
    }

    /// Writes the file; the checksum must be empty.
    fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("it always has a JSON form");
        Ok(f2_files::write_text_atomically(path, &f2_files::seal(&text))?)
    }
}

/// Parsed first, so that another version is reported as such and not as a missing field.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Records of files in a folder, by name.
pub(crate) fn recorded_files(
    folder: &Path,
    names: impl IntoIterator<Item = String>,
) -> Result<BTreeMap<String, FileRecord>> {
    let record = |name: String| {
        let path = folder.join(&name);
        let record = FileRecord::of(&path).map_err(ReadError::of(&path))?;
        Ok((name, record))
    };
    names.into_iter().map(record).collect()
}
