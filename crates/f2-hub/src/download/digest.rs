//! The hashes that the hub announces.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The hash of a file, computed as it arrives.
pub(super) enum Running {
    /// Large files: SHA-256 of the content.
    Large(Sha256),
    /// Other files, hashed as Git objects: SHA-1 of a header with the length, then the content.
    Git(Sha1),
}

impl Running {
    /// For a file with this announced hash; `None` if the kind of the hash is unknown.
    pub(super) fn of(announced: &str, bytes: u64) -> Option<Self> {
        match announced.len() {
            _ if !announced.chars().all(|c| c.is_ascii_hexdigit()) => None,
            64 => Some(Self::Large(Sha256::new())),
            40 => Some(Self::Git(Sha1::new_with_prefix(format!("blob {bytes}\0")))),
            _ => None,
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Large(hash) => hash.update(bytes),
            Self::Git(hash) => hash.update(bytes),
        }
    }

    pub(super) fn finish(self) -> String {
        match self {
            Self::Large(hash) => hex(&hash.finalize()),
            Self::Git(hash) => hex(&hash.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `git hash-object` and `sha256sum`.
    #[test]
    fn hashes_are_those_of_git_and_of_large_files() {
        let hash = |announced: &str| {
            let mut hash = Running::of(announced, 6).unwrap();
            hash.update(b"hel");
            hash.update(b"lo\n");
            hash.finish()
        };
        assert_eq!(hash(&"0".repeat(40)), "ce013625030ba8dba906f756967f9e9ca394464a");
        let large = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        assert_eq!(hash(&"0".repeat(64)), large);
        assert!(Running::of("../../x", 6).is_none() && Running::of(&"z".repeat(40), 6).is_none());
    }
}
