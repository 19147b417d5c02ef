//! A corpus folder that differs from what was written is refused.

use std::fs;
use std::path::{Path, PathBuf};

use f2_corpus::{Corpus, Inputs, Options, Silent, Split, TokenizerChoice, prepare};

/// A corpus of a few documents with kept ids, so that it has every kind of file.
fn corpus(folder: &Path, name: &str, animal: &str) -> PathBuf {
    let text = folder.join(format!("{name}.txt"));
    let document = |number| format!("the {animal} sat on mat {number}\n\n");
    fs::write(&text, (0..20).map(document).collect::<String>()).unwrap();
    let only = |paths: &[&PathBuf]| Inputs::PerSplit {
        train: paths.iter().map(|&path| path.clone()).collect(),
        valid: vec![text.clone()],
        test: vec![text.clone()],
    };
    let learned = folder.join(format!("{name}-learned"));
    let mut options = Options::new(only(&[&text]), &learned);
    options.tokenizer = TokenizerChoice::Train { vocabulary_size: 270 };
    prepare(&options, &Silent).unwrap();
    let mut options = Options::new(only(&[&text, &text]), &folder.join(name));
    options.tokenizer = TokenizerChoice::File(learned.join("tokenizer.json"));
    options.keep_ids = true;
    prepare(&options, &Silent).unwrap();
    options.out
}

/// Reads every file of a corpus; the error is the message.
fn read(folder: &Path) -> Result<(), String> {
    let all = || {
        let corpus = Corpus::open(folder)?;
        corpus.tokenizer()?;
        corpus.counts()?;
        corpus.ranks()?;
        Split::ALL.into_iter().try_for_each(|split| corpus.shard(split).map(drop))
    };
    all().map_err(|error: f2_corpus::Error| error.to_string())
}

const FILES: [&str; 7] = [
    "manifest.json",
    "tokenizer.json",
    "counts.json",
    "ranks.json",
    "train.bin",
    "valid.bin",
    "test.bin",
];

#[test]
fn a_changed_bit_of_any_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path(), "corpus", "cat");
    read(&corpus).unwrap();
    for name in FILES {
        let path = corpus.join(name);
        let whole = fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(1 + whole.len() / 97) {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            fs::write(&path, changed).unwrap();
            let reason = read(&corpus).expect_err(name);
            assert!(reason.contains(name), "{name} at {place}: {reason}");
        }
        fs::write(&path, whole).unwrap();
    }
    read(&corpus).unwrap();
}

#[test]
fn a_file_of_another_corpus_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let ours = corpus(folder.path(), "ours", "cat");
    let theirs = corpus(folder.path(), "theirs", "rat");
    for name in FILES {
        let path = ours.join(name);
        let own = fs::read(&path).unwrap();
        let other = fs::read(theirs.join(name)).unwrap();
        if own == other {
            continue;
        }
        fs::write(&path, other).unwrap();
        let reason = read(&ours).expect_err(name);
        assert!(reason.contains("its content changed") || reason.contains("bytes instead of"));
        fs::write(&path, own).unwrap();
    }
}

#[test]
fn a_number_of_the_manifest_is_not_changed_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path(), "corpus", "cat");
    let path = corpus.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"words\": 240", "\"words\": 241", 1)).unwrap();
    assert_ne!(fs::read_to_string(&path).unwrap(), text);
    let reason = read(&corpus).unwrap_err();
    assert!(reason.ends_with("its content does not match its checksum"), "{reason}");
}

#[test]
fn an_older_corpus_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path(), "corpus", "cat");
    let path = corpus.join("manifest.json");
    fs::write(&path, r#"{"version": 1, "made_by": "f2 0.1.0"}"#).unwrap();
    let reason = read(&corpus).unwrap_err();
    assert!(reason.contains("version 1 of the corpus, from before its files"), "{reason}");
}

#[cfg(unix)]
#[test]
fn nothing_waits_for_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus(folder.path(), "corpus", "cat");
    for name in FILES {
        let path = corpus.join(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reason = read(&corpus).expect_err(name);
        assert!(reason.contains(name) && reason.contains("a pipe or a device"), "{reason}");
        fs::remove_file(&path).unwrap();
        // A link to a file is a file.
        fs::write(folder.path().join(name), whole).unwrap();
        std::os::unix::fs::symlink(folder.path().join(name), &path).unwrap();
    }
    read(&corpus).unwrap();
}
