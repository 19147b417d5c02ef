//! Feeds randomly changed files to this program's readers, as `f2-fuzz` does for the libraries.
//! Memory is not checked: other tests run at the same time, and the length of lines is bounded.

use std::path::Path;

use f2_fuzz::{Repair, Seeds, fuzz};

use crate::texts::{Splitting, TextReader};

/// A memory limit that no reader reaches.
const ANY: usize = usize::MAX / 2;

/// Gives changed files to a reader. `name` is that of the fuzz target.
pub(crate) fn fuzz_files(name: &str, seeds: &str, file: &str, read: impl Fn(&Path)) {
    fuzz(name, &Seeds::files_as(seeds, file), Repair::None, ANY, |folder| {
        read(&folder.join(file));
    });
}

/// Gives changed files of texts to a reader. `name` is that of the fuzz target.
pub(crate) fn fuzz_texts(name: &str, file: &str, read: impl Fn(&Path)) {
    fuzz_files(name, "texts", file, read);
}

#[test]
fn texts_as_ids_or_words() {
    fuzz_texts("texts", "texts.jsonl", |path| {
        for splitting in [None, Some(Splitting::Words)] {
            let Ok(texts) = TextReader::new(splitting).read(path) else { continue };
            assert!(!texts.ids.is_empty());
            let last = texts.place(texts.ids.len() - 1);
            assert!(last.contains("texts.jsonl, line "), "{last}");
        }
    });
}

#[test]
fn plain_texts() {
    fuzz_texts("lines", "texts.txt", |path| {
        let Ok(texts) = TextReader::new(None).read(path) else { return };
        assert_eq!(texts.strings.map(|strings| strings.len()), Some(texts.ids.len()));
    });
}
