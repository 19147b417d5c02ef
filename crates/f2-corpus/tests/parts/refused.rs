//! Parts that are missing or belong to another job, and unsuitable text.

use std::fs;
use std::path::{Path, PathBuf};

use f2_corpus::{
    Boundaries, Error, Fractions, Inputs, Options, Silent, Split, TokenizerChoice,
    learn_vocabulary, merge, prepare_part,
};

use super::{every_part, into, options, part, reseal, write_texts};

#[test]
fn missing_parts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
    assert!(matches!(error, Error::NoParts { .. }), "{error}");
    for number in [1, 3] {
        prepare_part(&into(&options, &parts), part(number, 5), &Silent).unwrap();
    }
    let refused = |words: &str| {
        for error in [
            merge(&parts, &out, false, 1, &Silent).unwrap_err(),
            learn_vocabulary(&parts, &Silent).unwrap_err(),
        ] {
            assert!(error.to_string().starts_with(words), "{error}");
        }
    };
    refused("parts 2,4-5 of 5 have not been counted in ");
    every_part(&options, &parts, 5);
    learn_vocabulary(&parts, &Silent).unwrap();
    prepare_part(&into(&options, &parts), part(2, 5), &Silent).unwrap();
    let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
    assert!(error.to_string().starts_with("parts 1,3-5 of 5 have not been encoded"), "{error}");
    every_part(&options, &parts, 5);
    merge(&parts, &out, false, 1, &Silent).unwrap();
}

#[test]
fn parts_of_another_job_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let texts = write_texts(folder.path());
    let options = options(texts.clone());
    let parts = folder.path().join("parts");
    let other_parts = folder.path().join("other");
    every_part(&options, &parts, 2);
    let refused = |options: &Options, of: usize, words: &str| {
        // By a part of the other job, and by a merge that finds one among the parts.
        let error = prepare_part(&into(options, &parts), part(of, of), &Silent).unwrap_err();
        let mixed = {
            every_part(options, &other_parts, of);
            let name = format!("counted-{of:05}-of-{of:05}");
            fs::remove_dir_all(parts.join(&name)).ok();
            fs::rename(other_parts.join(&name), parts.join(&name)).unwrap();
            let out = folder.path().join("out");
            let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
            fs::remove_dir_all(parts.join(name)).unwrap();
            fs::remove_dir_all(&other_parts).unwrap();
            error
        };
        assert!(error.to_string().contains("counted-00001-of-00002 does not belong"), "{error}");
        assert!(mixed.to_string().contains(&format!("-of-{of:05} does not belong")), "{mixed}");
        assert!(mixed.to_string().ends_with(words), "{mixed}");
    };
    let mut other = options.clone();
    other.tokenizer = TokenizerChoice::Train { vocabulary_size: 290 };
    refused(&other, 2, "--vocab-size is 290, not 300");
    refused(&options, 3, "the number of parts is 3, not 2");
    let mut other = options.clone();
    other.lossy = true;
    refused(&other, 2, "--lossy is true, not false");
    let mut other = options.clone();
    other.longest_document = 4096;
    refused(&other, 2, "--max-document is 4096, not 268435456");
    let mut other = options.clone();
    (other.in_order, other.documents) = (true, Boundaries::Lines);
    refused(&other, 2, "--split-by is order, not hash");
    let mut other = options.clone();
    other.documents = Boundaries::Pieces(3.try_into().unwrap());
    refused(&other, 2, "--documents is 3, not auto");
    let mut other = options.clone();
    other.text_of = vec![Split::Valid, Split::Test];
    refused(&other, 2, "--text is valid,test, not none");
    let mut other = options.clone();
    other.inputs = Inputs::Spread { paths: texts[1..].to_vec(), fractions: Fractions::default() };
    refused(&other, 2, "text-0.txt is not among its inputs");
    let mut longer = fs::read_to_string(&texts[3]).unwrap();
    longer.push_str("\nanother document\n");
    fs::write(&texts[3], longer).unwrap();
    refused(&options, 2, " bytes, not 369");
}

#[test]
fn parts_of_another_version_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    every_part(&options, &parts, 2);
    let ours = format!("f2 {}", env!("CARGO_PKG_VERSION"));
    for (number, place) in [(1, "parts"), (2, "parts/counted-00002-of-00002")] {
        let record = parts.join(format!("counted-{number:05}-of-00002/record.json"));
        let whole =
            reseal(&record, &format!("\"made_by\": \"{ours}\""), "\"made_by\": \"f2 0.0.9\"");
        let error = merge(&parts, &out, false, 1, &Silent).unwrap_err().to_string();
        let words = format!(
            "{place} does not belong to this text and these options: it was made by f2 0.0.9, this is {ours}"
        );
        assert!(error.ends_with(&words), "{error}");
        fs::write(record, whole).unwrap();
    }
}

/// Changes a text without changing its length.
fn change(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("then", "thin", 1)).unwrap();
}

#[test]
fn a_text_that_changes_between_the_passes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let texts = write_texts(folder.path());
    let options = options(texts.clone());
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    let changed = |error: Error| {
        assert!(error.to_string().ends_with("text-1.txt changed while it was read"), "{error}");
    };
    // Between two parts that share a file.
    prepare_part(&into(&options, &parts), part(1, 2), &Silent).unwrap();
    change(&texts[1]);
    prepare_part(&into(&options, &parts), part(2, 2), &Silent).unwrap();
    changed(merge(&parts, &out, false, 1, &Silent).unwrap_err());
    // Before the merge encodes.
    fs::remove_dir_all(&parts).unwrap();
    every_part(&options, &parts, 2);
    change(&texts[1]);
    changed(merge(&parts, &out, false, 1, &Silent).unwrap_err());
    // Before the parts are encoded.
    fs::remove_dir_all(&parts).unwrap();
    every_part(&options, &parts, 2);
    learn_vocabulary(&parts, &Silent).unwrap();
    change(&texts[1]);
    changed(prepare_part(&into(&options, &parts), part(2, 2), &Silent).unwrap_err());
    // A file that no longer exists.
    fs::remove_file(&texts[1]).unwrap();
    let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
    assert!(!out.exists());
}

#[test]
fn a_text_that_can_be_read_only_once_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(vec![PathBuf::from("-")]);
    let parts = folder.path().join("parts");
    let error = prepare_part(&into(&options, &parts), part(1, 2), &Silent).unwrap_err();
    assert!(matches!(error, Error::ReadOnce { .. }), "{error}");
}

#[test]
fn an_empty_training_split_is_named_by_the_merge() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.txt");
    fs::write(&path, "only one document\n").unwrap();
    let mut options = options(vec![path]);
    let Inputs::Spread { fractions, .. } = &mut options.inputs else { unreachable!() };
    *fractions = Fractions { train: 1e-9, valid: 0.5, test: 0.5 - 1e-9 };
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    every_part(&options, &parts, 3);
    let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
    assert_eq!(error.to_string(), "no document fell into the train split: the input has 1 in all");
}
