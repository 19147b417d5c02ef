//! Length and hash of a file, by which damage is found.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Length and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

impl FileRecord {
    /// Reads a file through.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        let mut bytes = 0;
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                return Ok(Self { bytes, sha256: format!("{:x}", hash.finalize()) });
            }
            hash.update(&chunk[..read]);
            bytes += read as u64;
        }
    }

    /// The record of content that is at hand.
    pub fn of_bytes(content: &[u8]) -> Self {
        let sha256 = format!("{:x}", Sha256::digest(content));
        Self { bytes: content.len() as u64, sha256 }
    }

    /// The difference between the file that was found and this expected one, in words.
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
            Some(format!("it has {} bytes instead of {}", found.bytes, self.bytes))
        } else if self.sha256 != found.sha256 {
            Some(format!("its content changed: SHA-256 {}, not {}", found.sha256, self.sha256))
        } else {
            None
        }
    }
}
