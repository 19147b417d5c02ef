//! The corpus made in parts equals the one made in one go, byte for byte.

use std::fs;
use std::path::Path;

use f2_corpus::{
    Boundaries, Corpus, Error, Inputs, Options, PartDone, Silent, Split, TokenizerChoice,
    learn_vocabulary, merge, prepare,
};

use super::{contents, every_part, into, options, write_texts};

/// Compares a corpus made in one go with those made in parts in every possible way.
fn check(folder: &Path, options: &Options) {
    let whole = folder.join("whole");
    prepare(&into(options, &whole), &Silent).unwrap();
    let expected = contents(&whole);
    for of in [1, 2, 7] {
        for encode_in_parts in [false, true] {
            let [parts, out] = ["parts", "out"].map(|name| folder.join(name));
            every_part(options, &parts, of);
            if encode_in_parts && matches!(options.tokenizer, TokenizerChoice::Train { .. }) {
                learn_vocabulary(&parts, &Silent).unwrap();
                every_part(options, &parts, of);
            }
            merge(&parts, &out, false, 2, &Silent).unwrap();
            let found = contents(&out);
            assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
            for (name, bytes) in &expected {
                assert!(found[name] == *bytes, "{name} of {of} parts, {encode_in_parts}");
            }
            [parts, out].into_iter().for_each(|made| fs::remove_dir_all(made).unwrap());
        }
    }
    fs::remove_dir_all(whole).unwrap();
}

#[test]
fn a_text_spread_by_hash_is_the_same_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()));
    check(folder.path(), &options);
    options.text_of = vec![Split::Test, Split::Train, Split::Test];
    options.end_of_text = true;
    options.start_of_text = true;
    check(folder.path(), &options);
}

#[test]
fn a_text_spread_in_order_is_the_same_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()));
    options.in_order = true;
    options.documents = Boundaries::Pieces(3.try_into().unwrap());
    check(folder.path(), &options);
}

#[test]
fn given_splits_are_the_same_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts = write_texts(folder.path());
    let (test, valid) = (vec![texts.pop().unwrap()], vec![texts.pop().unwrap()]);
    let mut options = options(Vec::new());
    options.inputs = Inputs::PerSplit { train: texts, valid, test };
    check(folder.path(), &options);
}

#[test]
fn several_files_of_tokens_are_cut_at_the_same_documents() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()));
    options.shard_tokens = 100;
    check(folder.path(), &options);
    let out = folder.path().join("corpus");
    prepare(&into(&options, &out), &Silent).unwrap();
    let names: Vec<String> = contents(&out).into_keys().collect();
    assert!(names.contains(&"train-00002.bin".to_owned()), "{names:?}");
    assert!(fs::read_to_string(out.join("manifest.json")).unwrap().contains("\"version\": 3"));
    let one = folder.path().join("one");
    prepare(&Options { shard_tokens: u64::MAX, ..into(&options, &one) }, &Silent).unwrap();
    assert!(fs::read_to_string(one.join("manifest.json")).unwrap().contains("\"version\": 2"));
    let [several, one] = [out, one].map(|folder| Corpus::open(&folder).unwrap());
    for split in Split::ALL {
        let [several, one] = [&several, &one].map(|corpus| corpus.shard(split).unwrap());
        assert_eq!(several.ranks(0..several.len()), one.ranks(0..one.len()));
    }
}

#[test]
fn a_given_tokenizer_needs_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()));
    let corpus = folder.path().join("corpus");
    prepare(&into(&options, &corpus), &Silent).unwrap();
    options.tokenizer = TokenizerChoice::File(corpus.join("tokenizer.json"));
    check(folder.path(), &options);
    options.keep_ids = true;
    check(folder.path(), &options);
    let parts = folder.path().join("parts");
    let done = every_part(&options, &parts, 2);
    assert!(done.iter().all(|(done, _)| matches!(done, PartDone::Encoded { .. })));
    let error = learn_vocabulary(&parts, &Silent).unwrap_err();
    assert!(matches!(error, Error::NothingToLearn { .. }), "{error}");
    let tokenizer = fs::read_to_string(corpus.join("tokenizer.json")).unwrap();
    fs::write(corpus.join("tokenizer.json"), tokenizer + "\n").unwrap();
    let error = merge(&parts, &folder.path().join("out"), false, 1, &Silent).unwrap_err();
    assert!(error.to_string().ends_with("tokenizer.json changed while it was read"), "{error}");
}

#[test]
fn what_is_done_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(write_texts(folder.path()));
    let parts = folder.path().join("parts");
    assert!(every_part(&options, &parts, 2).iter().all(|(_, was_there)| !was_there));
    assert!(every_part(&options, &parts, 2).iter().all(|(_, was_there)| *was_there));
    assert!(!learn_vocabulary(&parts, &Silent).unwrap().was_there);
    assert!(learn_vocabulary(&parts, &Silent).unwrap().was_there);
    let counted: u64 = every_part(&options, &parts, 2)
        .iter()
        .map(|(done, was_there)| match done {
            PartDone::Encoded { splits } if !was_there => {
                splits.iter().map(|size| size.documents).sum::<u64>()
            }
            done => panic!("{done:?}"),
        })
        .sum();
    assert_eq!(counted, 73);
    assert!(every_part(&options, &parts, 2).iter().all(|(_, was_there)| *was_there));
}
