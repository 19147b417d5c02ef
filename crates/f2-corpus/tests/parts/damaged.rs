//! Parts that are damaged or lost are reported and can be made again.

use std::fs;
use std::path::Path;

use f2_corpus::{Error, PartDone, Silent, learn_vocabulary, merge, prepare_part};

use super::{contents, every_part, into, options, part, reseal, write_texts};

#[test]
fn damaged_and_foreign_things_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    every_part(&options, &parts, 2);
    let refused = |words: &str| {
        let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    let damaged = |name: &str, words: &str| {
        let path = parts.join(name);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        refused(words);
        fs::write(path, whole).unwrap();
    };
    damaged("counted-00002-of-00002/words.bin", "words.bin: its content changed");
    damaged("counted-00002-of-00002/record.json", "counted-00002-of-00002/record.json: ");
    learn_vocabulary(&parts, &Silent).unwrap();
    damaged("vocabulary/tokenizer.json", "tokenizer.json: its content changed");
    every_part(&options, &parts, 2);
    damaged("encoded-00001-of-00002/train.bin", "train.bin: its content changed");
    fs::write(parts.join("notes.txt"), "years of work").unwrap();
    refused("parts holds notes.txt, which does not belong to a text in parts");
    let error = prepare_part(&into(&options, &parts), part(1, 2), &Silent).unwrap_err();
    assert!(matches!(error, Error::NotAPart { .. }), "{error}");
    fs::remove_file(parts.join("notes.txt")).unwrap();
    // A lost vocabulary is learned again and is the same.
    fs::remove_dir_all(parts.join("vocabulary")).unwrap();
    merge(&parts, &out, false, 1, &Silent).unwrap();
}

#[test]
fn a_count_that_is_lost_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    let run = || prepare_part(&into(&options, &parts), part(2, 2), &Silent).unwrap();
    for encoded_before in [false, true] {
        every_part(&options, &parts, 2);
        learn_vocabulary(&parts, &Silent).unwrap();
        if encoded_before {
            every_part(&options, &parts, 2);
        }
        fs::remove_dir_all(parts.join("counted-00002-of-00002")).unwrap();
        let error = merge(&parts, &out, false, 1, &Silent).unwrap_err();
        assert!(error.to_string().starts_with("part 2 of 2 has not been counted"), "{error}");
        assert!(matches!(run(), (PartDone::Counted { .. }, false)));
        assert!(matches!(run(), (PartDone::Encoded { .. }, there) if there == encoded_before));
        prepare_part(&into(&options, &parts), part(1, 2), &Silent).unwrap();
        merge(&parts, &out, false, 1, &Silent).unwrap();
        fs::remove_dir_all(&out).unwrap();
        fs::remove_dir_all(&parts).unwrap();
    }
}

#[test]
fn a_part_under_the_name_of_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    every_part(&options, &parts, 2);
    learn_vocabulary(&parts, &Silent).unwrap();
    every_part(&options, &parts, 2);
    let second = parts.join("encoded-00002-of-00002");
    for (other, words) in [
        ("encoded-00001-of-00002", "the tokens of part 1 of 2"),
        ("counted-00002-of-00002", "the words of part 2 of 2"),
        ("vocabulary", "the vocabulary"),
    ] {
        fs::remove_dir_all(&second).unwrap();
        copy(&parts.join(other), &second);
        let words = format!(
            "encoded-00002-of-00002/record.json: it belongs to {words}, not to the tokens of part 2 of 2"
        );
        for error in [
            merge(&parts, &out, false, 1, &Silent).unwrap_err(),
            prepare_part(&into(&options, &parts), part(2, 2), &Silent).unwrap_err(),
        ] {
            assert!(error.to_string().ends_with(&words), "{error}");
        }
    }
    fs::remove_dir_all(&second).unwrap();
    prepare_part(&into(&options, &parts), part(2, 2), &Silent).unwrap();
    merge(&parts, &out, false, 1, &Silent).unwrap();
}

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in contents(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}

/// The advice is to remove the folder of the named file. The message must therefore name the
/// record, not the folder of a step, whose parent is the folder of all parts.
#[test]
fn a_step_that_does_not_fit_the_others_is_named_by_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let texts = write_texts(folder.path());
    let options = options(texts.clone());
    let [parts, out] = ["parts", "out"].map(|name| folder.path().join(name));
    every_part(&options, &parts, 2);
    learn_vocabulary(&parts, &Silent).unwrap();
    every_part(&options, &parts, 2);
    let named = |error: Error, words: &str| {
        assert!(matches!(error, Error::BadPart { .. }), "{error}");
        assert!(error.to_string().ends_with(words), "{error}");
    };
    let first = parts.join("encoded-00001-of-00002/record.json");
    for (from, to, words) in [
        (r#""split": "valid""#, r#""split": "test""#, "it says nothing of valid"),
        (r#""documents": "#, r#""documents": 1"#, "the tokens of train are not what it says"),
    ] {
        let whole = reseal(&first, from, to);
        let words = format!("encoded-00001-of-00002/record.json: {words}");
        named(merge(&parts, &out, false, 1, &Silent).unwrap_err(), &words);
        fs::write(&first, whole).unwrap();
    }
    let text = fs::read_to_string(&texts[1]).unwrap();
    fs::write(&texts[1], text.replace("then", "thin")).unwrap();
    for number in 1..=2 {
        fs::remove_dir_all(parts.join(format!("counted-{number:05}-of-00002"))).unwrap();
    }
    every_part(&options, &parts, 2);
    let words = "vocabulary/record.json: it was learned from other word counts than those there";
    named(learn_vocabulary(&parts, &Silent).unwrap_err(), words);
    fs::remove_dir_all(parts.join("vocabulary")).unwrap();
    let words = "record.json: it was encoded with another vocabulary than the one there";
    named(merge(&parts, &out, false, 1, &Silent).unwrap_err(), words);
    every_part(&options, &parts, 2);
    merge(&parts, &out, false, 1, &Silent).unwrap();
}
