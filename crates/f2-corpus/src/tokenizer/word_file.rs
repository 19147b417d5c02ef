//! Word counts on disk, little endian: the bytes `F2WORDS1`, the number of words in eight bytes,
//! and for each word, in byte order, its length in two bytes, the word in UTF-8, and its count in
//! eight bytes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::Path;

use compact_str::CompactString;
use f2_files::{OutputFile, ReadError, WriteError};

use super::WordCounts;
use super::train::LONGEST_WORD;
use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"F2WORDS1";

impl WordCounts {
    /// Writes the counts to a new file in a staging folder.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        Ok(self.write(path).map_err(WriteError::of(path))?)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut words: Vec<(&CompactString, u64)> =
            self.counts.iter().map(|(word, &count)| (word, count)).collect();
        words.sort_unstable();
        let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create_new(path)?);
        out.write_all(&MAGIC)?;
        out.write_all(&(words.len() as u64).to_le_bytes())?;
        for (word, count) in words {
            let length = u16::try_from(word.len()).map_err(io::Error::other)?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(word.as_bytes())?;
            out.write_all(&count.to_le_bytes())?;
        }
        out.flush()
    }

    /// Reads the word counts of a part.
    pub fn load(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(ReadError::of(path))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        Self::read(&mut reader).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::corrupt(path, "the word counts are cut short"),
            io::ErrorKind::InvalidData => Error::corrupt(path, error.to_string()),
            _ => ReadError::of(path)(error).into(),
        })
    }

    fn read(reader: &mut impl Read) -> io::Result<Self> {
        let damaged = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
        if number::<8>(reader)? != MAGIC {
            return Err(damaged("these are no word counts, or those of another version"));
        }
        let words = u64::from_le_bytes(number(reader)?);
        let mut counts = Self::default();
        let (mut before, mut word) = (Vec::new(), Vec::new());
        for _ in 0..words {
            let length = usize::from(u16::from_le_bytes(number(reader)?));
            if length == 0 || length > LONGEST_WORD {
                return Err(damaged("the length of a word is out of range"));
            }
            word.resize(length, 0);
            reader.read_exact(&mut word)?;
            let count = u64::from_le_bytes(number(reader)?);
            if word <= before || count == 0 {
                return Err(damaged("the words are not in order, or one was never seen"));
            }
            let text = std::str::from_utf8(&word).map_err(|_| damaged("a word is not UTF-8"))?;
            counts.counts.insert(CompactString::new(text), count);
            std::mem::swap(&mut before, &mut word);
        }
        match reader.read(&mut [0])? {
            0 => Ok(counts),
            _ => Err(damaged("something follows the last word")),
        }
    }
}

fn number<const BYTES: usize>(reader: &mut impl Read) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> WordCounts {
        let mut words = WordCounts::default();
        words.add("the cat sat on the mat, naïvely\n 고양이");
        words
    }

    #[test]
    fn counts_come_back_whole_and_the_file_is_always_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        example().save(&one).unwrap();
        assert_eq!(WordCounts::load(&one).unwrap(), example());
        example().save(&other).unwrap();
        assert_eq!(std::fs::read(one).unwrap(), std::fs::read(other).unwrap());
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.bin");
        example().save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            WordCounts::load(&path).unwrap_err().to_string()
        };
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            bytes
        };
        assert!(refused(&whole[..whole.len() - 1]).contains("words.bin: the word counts are cut"));
        assert!(refused(&with(7, b'2')).contains("of another version"));
        assert!(refused(&with(15, 1)).contains("cut short"));
        assert!(refused(&with(16, 0)).contains("out of range"));
        assert!(refused(&with(18, 255)).contains("not UTF-8"));
        assert!(refused(&[&whole[..], &[0]].concat()).contains("something follows"));
        assert!(refused(&with(8, whole[8] - 1)).contains("something follows"));
    }
}
