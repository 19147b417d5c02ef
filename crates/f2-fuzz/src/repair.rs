//! Repair of checksums after a change: without it, the code after their check is never reached.

use crate::random::Random;

/// Repairs applied to half of all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    None,
    /// The CRC of a token shard.
    Shard,
    /// The checksum of a sealed JSON file.
    Seal,
    /// The length at the beginning of a safetensors file.
    Tensors,
}

impl Repair {
    pub(crate) fn apply(self, name: &str, bytes: &mut Vec<u8>, random: &mut Random) {
        if random.below(2) == 0 {
            return;
        }
        match self {
            Self::Shard if bytes.len() >= 64 => {
                let checksum = crc32fast::hash(&bytes[64..]);
                bytes[36..40].copy_from_slice(&checksum.to_le_bytes());
            }
            Self::Seal => reseal(bytes),
            Self::Tensors if name.ends_with(".safetensors") => measure_header(bytes),
            _ => {}
        }
    }
}

/// The beginning of the checksum field.
const FIELD: &str = "\"checksum\": \"";

fn reseal(bytes: &mut Vec<u8>) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(start) = text.find(FIELD).map(|at| at + FIELD.len()) else { return };
    let Some(length) = text[start..].find('"') else { return };
    let open = format!("{}{}", &text[..start], &text[start + length..]);
    *bytes = f2_files::seal(&open).into_bytes();
}

/// Sets the length of a safetensors header, whose JSON ends at the first `}}`.
fn measure_header(bytes: &mut [u8]) {
    let Some((length, rest)) = bytes.split_first_chunk_mut::<8>() else { return };
    let end = rest.windows(2).position(|pair| pair == b"}}");
    if let Some(end) = end {
        *length = (end as u64 + 2).to_le_bytes();
    }
}
