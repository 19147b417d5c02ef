//! The first 64 bytes of a shard, all numbers little endian:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `F2TOKENS` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | bytes per token, 2 or 4 |
//! | 16 | 8 | number of tokens |
//! | 24 | 8 | number of documents |
//! | 32 | 4 | size of the vocabulary |
//! | 36 | 4 | CRC-32 of everything after the header |
//! | 40 | 24 | zero |
//!
//! Then follow the tokens, zeros up to a multiple of eight bytes, and for every document the index
//! of its first token in eight bytes.

pub(crate) const MAGIC: [u8; 8] = *b"F2TOKENS";
pub(crate) const VERSION: u32 = 1;
pub(crate) const LENGTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes per token.
    pub(crate) width: u32,
    pub(crate) tokens: u64,
    pub(crate) documents: u64,
    pub(crate) vocabulary: u32,
    pub(crate) checksum: u32,
}

/// Bytes per token for a vocabulary of this size.
pub(crate) fn width_for(vocabulary: usize) -> u32 {
    if vocabulary <= 1 << 16 { 2 } else { 4 }
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.width.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.tokens.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.documents.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.vocabulary.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// Parses and checks the header; the error is the reason why it is invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let bytes: &[u8; LENGTH] =
            bytes.first_chunk().ok_or("too short to be a token shard".to_owned())?;
        if bytes[..8] != MAGIC {
            return Err("this is not a token shard".to_owned());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!("version {version} of the token shard, expected {VERSION}"));
        }
        let header = Self {
            width: u32_at(bytes, 12),
            tokens: u64_at(bytes, 16),
            documents: u64_at(bytes, 24),
            vocabulary: u32_at(bytes, 32),
            checksum: u32_at(bytes, 36),
        };
        match header.width {
            2 | 4 => Ok(header),
            width => Err(format!("tokens of {width} bytes, expected 2 or 4")),
        }
    }

    /// Bytes of the tokens, without the padding.
    pub(crate) fn token_bytes(self) -> Option<u64> {
        self.tokens.checked_mul(self.width.into())
    }

    /// Size of the whole file, `None` if it does not fit 64 bits.
    pub(crate) fn file_length(self) -> Option<u64> {
        let documents = self.documents.checked_mul(8)?;
        let tokens = self.token_bytes()?.checked_next_multiple_of(8)?;
        tokens.checked_add(documents)?.checked_add(LENGTH as u64)
    }
}

fn u32_at(bytes: &[u8; LENGTH], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8; LENGTH], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
