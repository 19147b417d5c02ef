//! Reading whole files, up to a maximum size.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::ReadError;

/// The largest file that is read whole, in bytes, so that a link to an endless device cannot fill
/// the memory. Shards and weights are mapped instead, and texts are read in parts; other files are
/// far smaller.
const LARGEST: u64 = 1 << 30;

/// The byte order mark. It has no meaning in UTF-8 and is not part of a text.
const MARK: char = '\u{feff}';

/// The bytes of a file of at most 1 GiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    read_at_most(path, LARGEST).map_err(ReadError::of(path))
}

/// The text of a file of at most 1 GiB, without a byte order mark: some editors write one, and JSON
/// parsers reject it.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    let text = read_at_most(path, LARGEST).and_then(|bytes| {
        // The standard library's message.
        let not_text =
            |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
        String::from_utf8(bytes).map(unmarked).map_err(not_text)
    });
    text.map_err(ReadError::of(path))
}

/// Removes the byte order mark that a text may begin with.
pub fn unmarked(mut text: String) -> String {
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    text
}

pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata().as_ref().map_or(0, fs::Metadata::len);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size.min(most)).unwrap_or(0))?;
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        let refused = read_at_most(&path, 4).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(refused.to_string(), "it has more than 4 bytes");
    }

    #[test]
    fn a_text_begins_after_its_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (written, text) in
            [("\u{feff}[1]", "[1]"), ("\u{feff}", ""), ("a\u{feff}", "a\u{feff}")]
        {
            fs::write(&path, written).unwrap();
            assert_eq!(read_text(&path).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_refused() {
        let refused = read_at_most(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    }
}
