//! Pairs of a source and a target, from JSON Lines to a corpus.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use f2_corpus::{
    Corpus, END_OF_TEXT, Error, Fractions, Inputs, Options, Pairs, Part, SEPARATOR, Silent, Split,
    TokenizerChoice, merge, prepare, prepare_part,
};
use serde_json::{Value, json};

/// Forty pairs, with alternating order of fields.
fn lines() -> Vec<String> {
    let line = |number: usize| {
        let (source, target) = (format!("the cat sat on mat {number}"), format!("Nr. {number}!"));
        if number.is_multiple_of(2) {
            format!("{{\"source\": \"{source}\", \"id\": {number}, \"target\": \"{target}\"}}")
        } else {
            format!("{{\"target\": \"{target}\", \"source\": \"{source}\"}}")
        }
    };
    (0..40).map(line).collect()
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn options(path: PathBuf, out: &Path) -> Options {
    let inputs = Inputs::PerSplit { train: vec![path.clone()], valid: vec![], test: vec![path] };
    let mut options = Options::new(inputs, out);
    options.tokenizer = TokenizerChoice::Train { vocabulary_size: 280 };
    options.pairs = Some(Pairs::default());
    options
}

fn prepared(name: &str, text: &str, change: impl FnOnce(&mut Options)) -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write(folder.path(), name, text), &folder.path().join("corpus"));
    change(&mut options);
    prepare(&options, &Silent).map(drop)
}

#[test]
fn a_pair_is_source_separator_target_and_end_and_the_target_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("corpus");
    let path = write(folder.path(), "pairs.jsonl", &lines().join("\n"));
    let mut options = options(path, &out);
    options.text_of = vec![Split::Test];
    let summary = prepare(&options, &Silent).unwrap();
    let corpus = Corpus::open(&out).unwrap();
    assert!(corpus.is_of_pairs());
    assert_eq!(corpus.manifest().options.pairs, Some(Pairs::default()));
    assert_eq!(corpus.manifest().options.end_of_text.as_deref(), Some(END_OF_TEXT));
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(
        (&manifest["version"], &manifest["options"]["pairs"]["separator"]),
        (&json!(4), &json!(SEPARATOR))
    );
    let (shard, tokenizer) = (corpus.shard(Split::Train).unwrap(), corpus.tokenizer().unwrap());
    let [separator, end] = [SEPARATOR, END_OF_TEXT].map(|token| tokenizer.token_id(token).unwrap());
    let mut counts = vec![0; corpus.manifest().vocabulary_size];
    let (mut tokens, mut words, mut bytes) = (0, 0, 0);
    for number in 0..shard.documents() {
        let ids = shard.ranks(shard.document(number));
        let place = ids.iter().position(|id| *id == separator).unwrap();
        let (source, target) = (&ids[..place], &ids[place + 1..]);
        // Each side is encoded separately.
        assert_eq!(source, tokenizer.encode(&format!("the cat sat on mat {number}")).unwrap());
        let expected = tokenizer.encode(&format!("Nr. {number}!")).unwrap();
        assert_eq!(target, [expected, vec![end]].concat());
        target.iter().for_each(|id| counts[*id as usize] += 1);
        (tokens, words, bytes) = (
            tokens + target.len() as u64,
            words + 2,
            bytes + format!("Nr. {number}!").len() as u64,
        );
    }
    let targets = summary.splits[0].targets.unwrap();
    assert_eq!((targets.tokens, targets.words, targets.bytes), (tokens, words, bytes));
    assert_eq!(summary.splits[0].words, words + 40 * 6);
    // The separator is not counted as text; one-digit numbers are one byte shorter.
    assert_eq!(summary.splits[0].bytes, bytes + 40 * 21 - 10);
    assert_eq!(corpus.counts().unwrap().counts, counts);
    let written = fs::read_to_string(out.join("test.jsonl")).unwrap();
    let first: Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
    assert_eq!(first, json!({"source": "the cat sat on mat 0", "target": "Nr. 0!"}));
    // The written text gives the same tokens when read again.
    let again = folder.path().join("again");
    let mut options = self::options(out.join("test.jsonl"), &again);
    options.tokenizer = TokenizerChoice::File(out.join("tokenizer.json"));
    prepare(&options, &Silent).unwrap();
    assert_eq!(fs::read(out.join("test.bin")).unwrap(), fs::read(again.join("test.bin")).unwrap());
}

#[test]
fn packed_files_other_fields_and_other_names_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines().join("\n").replace("source", "en").replace("target", "de");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let path = folder.path().join("pairs.gz");
    fs::write(&path, packed).unwrap();
    let out = folder.path().join("corpus");
    let mut options = options(path, &out);
    let [source, target, separator] = ["en", "de", "<sep>"].map(str::to_owned);
    options.pairs = Some(Pairs { source, target, separator });
    prepare(&options, &Silent).unwrap();
    let corpus = Corpus::open(&out).unwrap();
    assert!(corpus.tokenizer().unwrap().token_id("<sep>").is_some());
    assert_eq!(corpus.shard(Split::Train).unwrap().documents(), 40);
}

#[test]
fn one_token_may_separate_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("corpus");
    let path = write(folder.path(), "pairs.jsonl", &lines().join("\n"));
    let mut options = options(path, &out);
    options.pairs = Some(Pairs { separator: END_OF_TEXT.to_owned(), ..Pairs::default() });
    prepare(&options, &Silent).unwrap();
    let corpus = Corpus::open(&out).unwrap();
    let end = corpus.tokenizer().unwrap().token_id(END_OF_TEXT).unwrap();
    let shard = corpus.shard(Split::Train).unwrap();
    for number in 0..shard.documents() {
        let ids = shard.ranks(shard.document(number));
        assert_eq!(ids.iter().filter(|id| **id == end).count(), 2);
        assert_eq!(ids.last(), Some(&end));
    }
}

#[test]
fn pairs_of_one_source_go_to_one_split() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |number: usize| format!("{{\"source\":\"s {}\",\"target\":\"{number}\"}}", number / 4);
    let text: Vec<String> = (0..240).map(line).collect();
    let path = write(folder.path(), "pairs.jsonl", &text.join("\n"));
    let out = folder.path().join("corpus");
    let mut options = options(path.clone(), &out);
    options.inputs = Inputs::Spread { paths: vec![path], fractions: Fractions::default() };
    let summary = prepare(&options, &Silent).unwrap();
    let documents: Vec<u64> = summary.splits.iter().map(|size| size.documents).collect();
    assert_eq!(documents.iter().sum::<u64>(), 240);
    assert!(documents.iter().all(|count| *count > 0 && count.is_multiple_of(4)), "{documents:?}");
}

/// The corpus made in parts equals the one made in one go, byte for byte.
#[test]
fn parts_make_the_same_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "pairs.jsonl", &lines().join("\n"));
    for learned in [true, false] {
        let (once, parts, merged) = ("once", "parts", "merged");
        let at = |name: &str| folder.path().join(format!("{name}-{learned}"));
        let mut options = options(path.clone(), &at(once));
        if !learned {
            let tokenizer = folder.path().join("once-true/tokenizer.json");
            options.tokenizer = TokenizerChoice::File(tokenizer);
        }
        prepare(&options, &Silent).unwrap();
        let into_parts = Options { out: at(parts), ..options };
        for number in 1..=3 {
            let part: Part = format!("{number}/3").parse().unwrap();
            prepare_part(&into_parts, part, &Silent).unwrap();
        }
        merge(&at(parts), &at(merged), false, 1, &Silent).unwrap();
        for name in ["manifest.json", "train.bin", "test.bin", "counts.json", "tokenizer.json"] {
            let [left, right] =
                [once, merged].map(|folder| fs::read(at(folder).join(name)).unwrap());
            assert!(left == right, "{name}");
        }
    }
}

#[test]
fn what_is_no_pair_is_refused_by_its_line() {
    let good = "{\"source\": \"a\", \"target\": \"b\"}\n";
    let refused = |line: &str| {
        let error = prepared("pairs.jsonl", &format!("{good}{line}"), |_| {}).unwrap_err();
        assert!(matches!(error, Error::PairLine { line: 2, .. }), "{error}");
        error.to_string().split_once(", ").unwrap().1.to_owned()
    };
    assert_eq!(
        refused("{\"source\": \"a\", \"text\": \"b\"}"),
        "line 2: there is no field \"target\"; there are \"source\", \"text\""
    );
    assert_eq!(
        refused("{\"source\": 3, \"target\": \"b\"}"),
        "line 2: the field \"source\" is not a string"
    );
    assert_eq!(
        refused("{\"source\": \" \", \"target\": \"b\"}"),
        "line 2: the field \"source\" is empty; a pair has a source and a target"
    );
    assert_eq!(
        refused("{\"source\": \"a\", \"target\": \"\"}"),
        "line 2: the field \"target\" is empty; a pair has a source and a target"
    );
    assert_eq!(
        refused("{\"source\": \"a <|separator|> b\", \"target\": \"b\"}"),
        "line 2: the field \"source\" contains <|separator|>, which marks where it ends"
    );
    assert_eq!(
        refused("{\"source\": \"a\", \"target\": \"b<|endoftext|>\"}"),
        "line 2: the field \"target\" contains <|endoftext|>, which marks where it ends"
    );
    assert_eq!(refused("[1]"), "line 2: this is not an object");
    assert!(refused("plain text").starts_with("line 2: broken JSON"));
}

#[test]
fn bad_separators_one_pair_and_parquet_are_refused() {
    let lines = lines().join("\n");
    let separated = |separator: &str| {
        let pairs = Pairs { separator: separator.to_owned(), ..Pairs::default() };
        prepared("pairs.jsonl", &lines, |options| options.pairs = Some(pairs)).unwrap_err()
    };
    assert!(matches!(separated(""), Error::BadSeparator { .. }));
    assert!(matches!(separated("a b"), Error::BadSeparator { .. }));
    let one = prepared("pairs.jsonl", lines.lines().next().unwrap(), |options| {
        let paths = options.inputs.clone();
        let Inputs::PerSplit { train, .. } = paths else { unreachable!() };
        options.inputs = Inputs::Spread { paths: train, fractions: Fractions::default() };
    });
    assert!(matches!(one.unwrap_err(), Error::TooFewPairs { pairs: 1, .. }));
    let parquet = prepared("pairs.parquet", "PAR1", |_| {}).unwrap_err();
    assert!(matches!(parquet, Error::PairsOfParquet { .. }), "{parquet}");
}

/// A tokenizer learned from plain text lacks the separator.
#[test]
fn a_tokenizer_without_the_separator_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "pairs.jsonl", &lines().join("\n"));
    let out = folder.path().join("plain");
    let mut plain = options(path.clone(), &out);
    (plain.pairs, plain.field, plain.end_of_text) = (None, "source".to_owned(), true);
    prepare(&plain, &Silent).unwrap();
    let mut pairs = options(path, &folder.path().join("pairs"));
    pairs.tokenizer = TokenizerChoice::File(out.join("tokenizer.json"));
    let error = prepare(&pairs, &Silent).unwrap_err();
    assert!(matches!(error, Error::NoSeparator { .. }), "{error}");
    // In the byte-level alphabet a token's name is not its text.
    let spelled = Pairs { separator: "Ġthe".to_owned(), ..Pairs::default() };
    pairs.pairs = Some(spelled);
    assert!(matches!(prepare(&pairs, &Silent).unwrap_err(), Error::NoSeparator { .. }));
    pairs.pairs = Some(Pairs { separator: END_OF_TEXT.to_owned(), ..Pairs::default() });
    prepare(&pairs, &Silent).unwrap();
}
