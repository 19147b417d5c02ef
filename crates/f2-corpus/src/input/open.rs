//! Opening text files: decompression, and a digest of the bytes read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use f2_files::ReadError;
use sha2::{Digest as _, Sha256};

use super::input_file::{Compression, InputFile};
use crate::error::{Error, Result};

const BUFFER: usize = 1 << 20;

/// Opens a text file, decompressing it if its name ends in `.gz`, `.zst` or `.zstd`.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let source = InputFile::file(path);
    let file = File::open(path).map_err(ReadError::of(path))?;
    Ok(unpacked(file, source.compression).map_err(ReadError::of(path))?)
}

fn unpacked(
    raw: impl Read + Send + 'static,
    compression: Compression,
) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(match compression {
        Compression::None => Box::new(BufReader::with_capacity(BUFFER, raw)),
        Compression::Gzip => {
            Box::new(BufReader::with_capacity(BUFFER, flate2::read::MultiGzDecoder::new(raw)))
        }
        Compression::Zstd => {
            Box::new(BufReader::with_capacity(BUFFER, zstd::stream::read::Decoder::new(raw)?))
        }
    })
}

/// SHA-256 and size of a file on disk, computed while it is read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Digest {
    /// The path it was read from.
    pub path: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
}

/// A file being read, with the digest of the bytes so far.
pub(crate) struct Opened {
    pub(crate) text: Box<dyn BufRead + Send>,
    seen: Arc<Mutex<Seen>>,
    path: String,
}

#[derive(Default)]
struct Seen {
    bytes: u64,
    hash: Sha256,
}

impl Opened {
    pub(crate) fn new(source: &InputFile) -> Result<Self> {
        let file = File::open(&source.path).map_err(ReadError::of(&source.path))?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let tee = Tee { file, seen: Arc::clone(&seen) };
        let text = unpacked(tee, source.compression).map_err(ReadError::of(&source.path))?;
        Ok(Self { text, seen, path: source.path.display().to_string() })
    }

    /// Bytes read from disk so far.
    pub(crate) fn position(&self) -> u64 {
        self.seen.lock().expect("no reader panics").bytes
    }

    /// The digest; complete once everything has been read.
    pub(crate) fn digest(&self) -> Digest {
        let seen = self.seen.lock().expect("no reader panics");
        Digest {
            path: self.path.clone(),
            bytes: seen.bytes,
            sha256: format!("{:x}", seen.hash.clone().finalize()),
        }
    }
}

struct Tee {
    file: File,
    seen: Arc<Mutex<Seen>>,
}

impl Read for Tee {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let mut seen = self.seen.lock().expect("no reader panics");
        seen.bytes += count as u64;
        seen.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// The digest of a file that is not read in sequence, such as Parquet.
pub(crate) fn digest_of(path: &Path) -> Result<Digest> {
    let mut opened = Opened::new(&InputFile {
        path: path.to_path_buf(),
        format: super::input_file::Format::Text,
        compression: Compression::None,
    })?;
    io::copy(&mut opened.text, &mut io::sink()).map_err(ReadError::of(path))?;
    Ok(opened.digest())
}

/// Distinguishes a damaged archive from a read error.
pub(crate) fn reading_failed(source: &InputFile, error: io::Error) -> Error {
    let path = source.path.clone();
    match source.compression {
        Compression::None => ReadError { path, source: error }.into(),
        Compression::Gzip | Compression::Zstd => Error::Compressed { path, source: error },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn unpacks_by_name_and_digests_what_lies_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.txt");
        let packed = folder.path().join("a.txt.zst");
        let zipped = folder.path().join("a.txt.gz");
        std::fs::write(&plain, "abc").unwrap();
        std::fs::write(&packed, zstd::encode_all(&b"abc"[..], 0).unwrap()).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"abc").unwrap();
        std::fs::write(&zipped, gzip.finish().unwrap()).unwrap();
        for path in [&plain, &packed, &zipped] {
            let mut opened = Opened::new(&InputFile::file(path)).unwrap();
            let text = io::read_to_string(&mut opened.text).unwrap();
            assert_eq!(text, "abc");
            assert_eq!(opened.digest().bytes, std::fs::metadata(path).unwrap().len());
        }
        let mut opened = Opened::new(&InputFile::file(&plain)).unwrap();
        io::copy(&mut opened.text, &mut io::sink()).unwrap();
        assert_eq!(
            opened.digest().sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
