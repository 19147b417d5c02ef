//! Measured choices of algorithms, on disk.
//!
//! Another algorithm may round differently, so all processes that use a GPU, and the ranks of one
//! run, must make the same choice. The file only grows: each choice is appended as a line, and the
//! first line of a product counts, whichever process wrote it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use f2_files::OutputFile;

/// The file of choices; `None` without a cache folder.
pub(super) struct Measured(pub(super) Option<PathBuf>);

impl Measured {
    /// The stored choice for a product.
    pub(super) fn find(&self, product: &str) -> Option<usize> {
        let text = fs::read_to_string(self.0.as_ref()?).ok()?;
        let number = |line: &str| {
            let (key, number) = line.split_once(' ')?;
            // Two digits, so that the incomplete line of a killed writer is recognised.
            (key == product && number.len() == 2).then(|| number.parse().ok()).flatten()
        };
        text.lines().find_map(number)
    }

    /// Stores a choice and returns the one that counts: another process may have been first. `None`
    /// if it could not be stored: then it must not be used, since the next start might choose
    /// another.
    pub(super) fn keep(&self, product: &str, number: usize) -> Option<usize> {
        let path = self.0.as_ref()?;
        fs::create_dir_all(path.parent()?).ok()?;
        // It begins with a newline, in case the previous line is incomplete. A single write is not
        // interleaved with that of another process.
        let line = format!("\n{product} {number:02}\n");
        OutputFile::append(path).ok()?.write_all(line.as_bytes()).ok()?;
        self.find(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_measure_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/products.txt");
        let choices: Vec<Vec<Option<usize>>> = std::thread::scope(|scope| {
            let path = &path;
            let measure = |thread: usize| {
                let measured = Measured(Some(path.clone()));
                (0..50).map(|product| measured.keep(&format!("{product}x8"), thread)).collect()
            };
            let threads: Vec<_> = (0..8).map(|it| scope.spawn(move || measure(it))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(choices[0].iter().all(Option::is_some));
        assert!(choices.iter().all(|other| other == &choices[0]), "{choices:?}");
        assert_eq!(Measured(Some(path)).find("7x8"), choices[0][7]);
    }

    #[test]
    fn the_line_of_a_killed_writer_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("products.txt");
        fs::write(&path, "\n8x8 1").unwrap();
        let measured = Measured(Some(path));
        assert_eq!(measured.find("8x8"), None);
        assert_eq!(measured.keep("8x8", 11), Some(11));
        assert_eq!(measured.keep("8x8", 2), Some(11));
        assert_eq!(Measured(None).keep("8x8", 2), None);
    }
}
