//! Length and hash of a file, to detect damage.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::regular_file;

/// Length and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

impl FileRecord {
    /// The record of a file, which is read completely and must be a regular one.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::of_content(open(path)?)
    }

    fn of_content(mut content: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        let mut bytes = 0;
        loop {
            let read = content.read(&mut chunk)?;
            if read == 0 {
                return Ok(Self { bytes, sha256: format!("{:x}", hash.finalize()) });
            }
            hash.update(&chunk[..read]);
            bytes += read as u64;
        }
    }

    /// How the file at a path, which must be a regular one, differs from this expected one; `None`
    /// if it does not. A file of another length is not read.
    pub fn difference_at(&self, path: &Path) -> io::Result<Option<String>> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        if length != self.bytes {
            return Ok(Some(self.other_length(length)));
        }
        let found = Self::of_content(file.take(self.bytes.saturating_add(1)))?;
        Ok(self.difference(&found))
    }

    fn other_length(&self, found: u64) -> String {
        format!("it has {found} bytes instead of {}", self.bytes)
    }

    /// The record of content in memory.
    pub fn of_bytes(content: &[u8]) -> Self {
        let sha256 = format!("{:x}", Sha256::digest(content));
        Self { bytes: content.len() as u64, sha256 }
    }

    /// How the file that was found differs from this expected one; `None` if it does not.
    ///
    /// ```
    /// use f2_files::FileRecord;
    ///
    /// let whole = FileRecord::of_bytes(b"[3, 2, 1]");
    /// assert_eq!(whole.difference(&whole), None);
    /// let cut = whole.difference(&FileRecord::of_bytes(b"[3, 2"));
    /// assert_eq!(cut.unwrap(), "it has 5 bytes instead of 9");
    /// ```
    pub fn difference(&self, found: &Self) -> Option<String> {
        if self.bytes != found.bytes {
            Some(self.other_length(found.bytes))
        } else if self.sha256 != found.sha256 {
            Some(format!("its content changed: SHA-256 {}, not {}", found.sha256, self.sha256))
        } else {
            None
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::open(regular_file(path).map_err(|error| error.source)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_length_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        // A sparse file of a terabyte.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let expected = FileRecord::of_bytes(b"[3, 2, 1]");
        let difference = expected.difference_at(&path).unwrap().unwrap();
        assert_eq!(difference, "it has 1099511627776 bytes instead of 9");
        for (content, differs) in [("[3, 2, 1]", false), ("[3, 2, 0]", true)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(expected.difference_at(&path).unwrap().is_some(), differs);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_not_read() {
        let endless = Path::new("/dev/zero");
        assert!(FileRecord::of(endless).is_err());
        assert!(FileRecord::of_bytes(b"").difference_at(endless).is_err());
    }
}
