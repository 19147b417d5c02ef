//! Lines and texts of bounded size, so that a compressed file of endless zeros cannot fill the
//! memory.

use std::io::{self, BufRead, ErrorKind, Read};

use f2_files::unmarked;

/// Bytes of the longest line of texts or prompts, far longer than any model's context.
pub(crate) const LONGEST_LINE: u64 = 16 << 20;

/// Bytes of the largest file of texts or prompts, decompressed, with the overhead of its lines.
const LARGEST_FILE: u64 = 1 << 30;

/// Bytes of memory that a line needs besides its text.
const LINE_OVERHEAD: u64 = 64;

/// The lines of a text, without line breaks and a byte order mark.
pub(crate) struct BoundedLines<R> {
    text: R,
    left: u64,
    begun: bool,
}

impl<R: BufRead> BoundedLines<R> {
    /// Lines that are all kept in memory: their total size is bounded, too.
    pub(crate) fn of_file(text: R) -> Self {
        Self { text, left: LARGEST_FILE, begun: false }
    }

    /// Lines that are used one at a time: only the length of each is bounded.
    pub(crate) fn endless(text: R) -> Self {
        Self { text, left: u64::MAX, begun: false }
    }

    fn read(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        if (&mut self.text).take(LONGEST_LINE + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let size = line.len() as u64;
        if size > LONGEST_LINE {
            return Err(too_large(format!("the line has more than {LONGEST_LINE} bytes")));
        }
        if self.left != u64::MAX {
            let left = self.left.checked_sub(size + LINE_OVERHEAD);
            self.left = left.ok_or_else(|| {
                too_large(format!("the lines up to here take more than {LARGEST_FILE} bytes"))
            })?;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        let line = text_of(line)?;
        let is_first = !std::mem::replace(&mut self.begun, true);
        Ok(Some(if is_first { unmarked(line) } else { line }))
    }
}

impl<R: BufRead> Iterator for BoundedLines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Reads a whole text of at most `most` bytes, without a byte order mark.
pub(crate) fn read_text_up_to(text: impl Read, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    text.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(format!("it has more than {most} bytes")));
    }
    text_of(bytes).map(unmarked)
}

fn too_large(reason: String) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, reason)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_standard_library() {
        let text = "one\ntwo\r\n\n three \r\nlast\r";
        let found: Vec<String> =
            BoundedLines::of_file(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        let expected: Vec<String> = text.as_bytes().lines().collect::<Result<_, _>>().unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let text = "\u{feff}one\n\u{feff}two";
        let lines: Vec<String> =
            BoundedLines::endless(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        assert_eq!(lines, ["one", "\u{feff}two"]);
        assert_eq!(read_text_up_to(text.as_bytes(), 100).unwrap(), "one\n\u{feff}two");
    }

    #[test]
    fn a_line_has_a_longest_length() {
        let fits = "a".repeat(LONGEST_LINE as usize);
        assert_eq!(BoundedLines::of_file(fits.as_bytes()).next().unwrap().unwrap(), fits);
        let refused = BoundedLines::endless(io::BufReader::new(io::repeat(0))).next();
        let error = refused.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn many_short_lines_have_a_largest_sum() {
        let line_breaks = io::BufReader::new(io::repeat(b'\n'));
        let mut lines = BoundedLines::of_file(line_breaks);
        let error = lines.find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
