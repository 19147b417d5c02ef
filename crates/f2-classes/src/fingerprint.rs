//! The fingerprint that binds classes to the counts they were made from.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Identifies a list of rank counts: the SHA-256, in hexadecimal, of the original counts (including
/// zeros) by rank, as 64-bit little-endian integers.
///
/// Classes store it, so that classes of another corpus are refused.
///
/// ```
/// use f2_classes::CountsFingerprint;
///
/// let print = CountsFingerprint::of(&[3, 2, 1]);
/// assert_ne!(print, CountsFingerprint::of(&[3, 2, 1, 0]));
/// assert_eq!(print.to_string().len(), 64);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CountsFingerprint(String);

impl CountsFingerprint {
    /// The fingerprint of counts listed by rank.
    pub fn of(rank_counts: &[u64]) -> Self {
        let mut hash = Sha256::new();
        for count in rank_counts {
            hash.update(count.to_le_bytes());
        }
        Self(format!("{:x}", hash.finalize()))
    }
}

impl fmt::Display for CountsFingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen from `printf '\x01\0\0\0\0\0\0\0' | sha256sum`.
    #[test]
    fn is_the_sha256_of_little_endian_words() {
        let expected = "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8";
        assert_eq!(CountsFingerprint::of(&[1]).to_string(), expected);
    }
}
