//! From files of text to a corpus folder, through the public interface.

use std::fs;
use std::path::{Path, PathBuf};

use f2_corpus::{
    Corpus, Error, Fractions, Inputs, Observer, Options, Silent, Split, Summary, TokenizerChoice,
    prepare,
};

/// Sixty short documents in four files.
fn write_texts(folder: &Path) -> Vec<PathBuf> {
    let animals = ["cat", "rat", "bat", "naïve 고양이", "dog's"];
    let file = |number: usize| {
        let path = folder.join(format!("part-{number}.txt"));
        let documents: Vec<String> = (0..15)
            .map(|line| {
                format!("the {} sat on mat {number}\nand then {line} more\n", animals[line % 5])
            })
            .collect();
        fs::write(&path, documents.join("\n")).unwrap();
        path
    };
    (0..4).map(file).collect()
}

fn options(paths: Vec<PathBuf>, out: &Path) -> Options {
    let fractions = Fractions { train: 0.6, valid: 0.2, test: 0.2 };
    let mut options = Options::new(Inputs::Spread { paths, fractions }, out);
    options.tokenizer = TokenizerChoice::Train { vocabulary_size: 300 };
    options
}

/// The documents of a split as text, sorted.
fn documents(corpus: &Corpus, split: Split) -> Vec<String> {
    let (shard, tokenizer) = (corpus.shard(split).unwrap(), corpus.tokenizer().unwrap());
    let ids_of_rank = corpus.ranks().unwrap();
    let text = |index| {
        let mut ids = shard.ranks(shard.document(index));
        if let Some(ranks) = &ids_of_rank {
            ids.iter_mut().for_each(|rank| *rank = ranks.id_of_rank[*rank as usize]);
        }
        tokenizer.decode(&ids).unwrap()
    };
    let mut documents: Vec<String> = (0..shard.documents()).map(text).collect();
    documents.sort();
    documents
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn shards_hold_what_the_written_tokenizer_encodes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("corpus");
    let summary: Summary = prepare(&options(write_texts(folder.path()), &out), &Silent).unwrap();
    assert_eq!(
        files(&out),
        ["counts.json", "manifest.json", "test.bin", "tokenizer.json", "train.bin", "valid.bin"]
    );
    let corpus = Corpus::open(&out).unwrap();
    let theirs = tokenizers::Tokenizer::from_file(out.join("tokenizer.json")).unwrap();
    let mut found = 0;
    for (split, size) in Split::ALL.into_iter().zip(&summary.splits) {
        let shard = corpus.shard(split).unwrap();
        for index in 0..shard.documents() {
            let ids = shard.ranks(shard.document(index));
            let text = theirs.decode(&ids, false).unwrap();
            assert_eq!(theirs.encode(text.as_str(), false).unwrap().get_ids(), ids);
        }
        assert_eq!(size.tokens as usize, shard.len());
        assert_eq!(size.documents as usize, shard.documents());
        found += shard.documents();
    }
    assert_eq!(found, 60);
}

#[test]
fn ids_are_frequency_ranks_of_the_training_split() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("corpus");
    prepare(&options(write_texts(folder.path()), &out), &Silent).unwrap();
    let corpus = Corpus::open(&out).unwrap();
    let train = corpus.shard(Split::Train).unwrap();
    let mut counted = vec![0_u64; corpus.manifest().vocabulary_size];
    for rank in train.ranks(0..train.len()) {
        counted[rank as usize] += 1;
    }
    let counts = corpus.counts().unwrap();
    assert_eq!(counts.counts, counted);
    assert!(counted.is_sorted_by(|left, right| left >= right));
    assert_eq!(counts.tokens, train.len() as u64);
}

#[test]
fn splits_do_not_depend_on_the_order_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = write_texts(folder.path());
    let [forward, backward] = ["forward", "backward"].map(|name| folder.path().join(name));
    prepare(&options(paths.clone(), &forward), &Silent).unwrap();
    paths.reverse();
    prepare(&options(paths, &backward), &Silent).unwrap();
    let [forward, backward] = [forward, backward].map(|out| Corpus::open(&out).unwrap());
    for split in Split::ALL {
        assert_eq!(documents(&forward, split), documents(&backward, split));
    }
    assert_eq!(forward.counts().unwrap(), backward.counts().unwrap());
}

#[test]
fn thread_count_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_texts(folder.path());
    let shards: Vec<Vec<u8>> = [1, 3]
        .map(|threads| {
            let out = folder.path().join(format!("with-{threads}"));
            let mut options = options(paths.clone(), &out);
            options.threads = threads;
            prepare(&options, &Silent).unwrap();
            fs::read(out.join("train.bin")).unwrap()
        })
        .to_vec();
    assert_eq!(shards[0], shards[1]);
}

#[test]
fn kept_ids_read_as_the_same_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_texts(folder.path());
    let renamed = folder.path().join("renamed");
    prepare(&options(paths.clone(), &renamed), &Silent).unwrap();

    let mut options = options(paths, &folder.path().join("kept"));
    // Ids that are not ranks: the tokenizer was learned from another text.
    let other = folder.path().join("other.txt");
    fs::write(&other, "mat mat sat sat the\n").unwrap();
    let inputs = Inputs::PerSplit { train: vec![other], valid: vec![], test: vec![] };
    let elsewhere = folder.path().join("elsewhere");
    prepare(&Options::new(inputs, &elsewhere), &Silent).unwrap();
    let tokenizer = elsewhere.join("tokenizer.json");
    options.tokenizer = TokenizerChoice::File(tokenizer.clone());
    options.keep_ids = true;
    prepare(&options, &Silent).unwrap();

    let kept = Corpus::open(&options.out).unwrap();
    assert_eq!(
        fs::read_to_string(options.out.join("tokenizer.json")).unwrap(),
        fs::read_to_string(tokenizer).unwrap()
    );
    let renamed = Corpus::open(&renamed).unwrap();
    for split in Split::ALL {
        assert_eq!(documents(&kept, split), documents(&renamed, split));
    }
    let train = kept.shard(Split::Train).unwrap();
    let first = train.ranks(0..train.len()).iter().filter(|&&rank| rank == 0).count();
    assert_eq!(first as u64, kept.counts().unwrap().counts[0]);
}

#[test]
fn end_of_text_follows_every_document() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()), &folder.path().join("corpus"));
    options.end_of_text = true;
    prepare(&options, &Silent).unwrap();
    let corpus = Corpus::open(&options.out).unwrap();
    assert_eq!(corpus.manifest().vocabulary_size, 300);
    let end = corpus.tokenizer().unwrap().token_id("<|endoftext|>").unwrap();
    let train = corpus.shard(Split::Train).unwrap();
    for index in 0..train.documents() {
        assert_eq!(train.ranks(train.document(index)).last(), Some(&end));
    }
}

/// A start symbol is given and never predicted, so it is not counted.
#[test]
fn a_start_symbol_precedes_every_document_and_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()), &folder.path().join("corpus"));
    options.start_of_text = true;
    prepare(&options, &Silent).unwrap();
    let corpus = Corpus::open(&options.out).unwrap();
    let start = corpus.tokenizer().unwrap().token_id("<|endoftext|>").unwrap();
    let train = corpus.shard(Split::Train).unwrap();
    for index in 0..train.documents() {
        let document = train.ranks(train.document(index));
        assert_eq!(document.iter().filter(|&&rank| rank == start).count(), 1);
        assert_eq!(document.first(), Some(&start));
    }
    let counts = corpus.counts().unwrap().counts;
    assert_eq!(counts.iter().sum::<u64>(), (train.len() - train.documents()) as u64);
    assert_eq!(counts[start as usize], 0);
    assert_eq!(corpus.manifest().options.start_of_text.as_deref(), Some("<|endoftext|>"));
}

/// Interrupts as soon as a given stage begins.
struct StopsAt(&'static str, std::sync::atomic::AtomicBool);

impl Observer for StopsAt {
    fn stage(&self, name: &str, _bytes: Option<u64>) {
        self.1.fetch_or(name == self.0, std::sync::atomic::Ordering::SeqCst);
    }
    fn advance(&self, _bytes: u64) {}
    fn interrupted(&self) -> bool {
        self.1.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn interrupted_it_leaves_nothing_behind() {
    for stage in ["counting words", "encoding"] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(write_texts(folder.path()), &folder.path().join("corpus"));
        let before = files(folder.path());
        let error = prepare(&options, &StopsAt(stage, false.into())).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert_eq!(files(folder.path()), before);
    }
}

#[test]
fn an_existing_folder_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()), &folder.path().join("corpus"));
    prepare(&options, &Silent).unwrap();
    fs::write(options.out.join("classes.json"), "old").unwrap();
    let error = prepare(&options, &Silent).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert!(options.out.join("classes.json").exists());
    options.replace = true;
    prepare(&options, &Silent).unwrap();
    assert!(!options.out.join("classes.json").exists());
}

#[test]
fn what_is_no_corpus_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(write_texts(folder.path()), &folder.path().join("home"));
    options.replace = true;
    fs::create_dir(&options.out).unwrap();
    fs::write(options.out.join("thesis.txt"), "years of work").unwrap();
    let error = prepare(&options, &Silent).unwrap_err();
    assert!(matches!(error, Error::NotACorpus { .. }), "{error}");
    assert!(options.out.join("thesis.txt").exists());
    fs::remove_file(options.out.join("thesis.txt")).unwrap();
    prepare(&options, &Silent).unwrap();
}

#[test]
fn one_document_cannot_be_spread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.txt");
    fs::write(&path, "only one document\n").unwrap();
    let error = prepare(&options(vec![path], &folder.path().join("corpus")), &Silent).unwrap_err();
    assert!(
        matches!(error, Error::EmptySplit { documents: 1, .. } | Error::Empty { .. }),
        "{error}"
    );
}

#[test]
fn long_documents_are_encoded_in_parts_that_do_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.txt");
    let text: String =
        (0..150_000).map(|line| format!("line {line} of a long  document\n")).collect();
    fs::write(&path, &text).unwrap();
    let inputs = Inputs::PerSplit { train: vec![path], valid: vec![], test: vec![] };
    let mut options = Options::new(inputs, &folder.path().join("corpus"));
    options.tokenizer = TokenizerChoice::Train { vocabulary_size: 400 };
    let summary = prepare(&options, &Silent).unwrap();
    assert_eq!(summary.splits[0].documents, 1);
    let corpus = Corpus::open(&options.out).unwrap();
    assert_eq!(documents(&corpus, Split::Train), [text]);
}

/// Appends to a text once the vocabulary has been learned.
struct Writes(PathBuf);

impl Observer for Writes {
    fn stage(&self, name: &str, _bytes: Option<u64>) {
        if name == "encoding" {
            fs::write(&self.0, fs::read_to_string(&self.0).unwrap() + "\n\nmore text\n").unwrap();
        }
    }
    fn advance(&self, _bytes: u64) {}
    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn a_text_that_changes_while_it_is_read_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_texts(folder.path());
    let changing = Writes(paths[2].clone());
    let error = prepare(&options(paths, &folder.path().join("corpus")), &changing).unwrap_err();
    assert!(error.to_string().ends_with("part-2.txt changed while it was read"), "{error}");
    assert!(!folder.path().join("corpus").exists());
}

#[test]
fn a_document_that_fell_into_another_split_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.txt");
    fs::write(&path, "only one document\n").unwrap();
    let mut options = options(vec![path], &folder.path().join("corpus"));
    let Inputs::Spread { fractions, .. } = &mut options.inputs else { unreachable!() };
    *fractions = Fractions { train: 1e-9, valid: 0.5, test: 0.5 - 1e-9 };
    let error = prepare(&options, &Silent).unwrap_err();
    assert_eq!(error.to_string(), "no document fell into the train split: the input has 1 in all");
}

#[test]
fn in_order_each_split_is_one_piece_of_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("novel.txt");
    let line = |number: usize| format!("line {number} of the novel\n");
    fs::write(&path, (0..100).map(line).collect::<String>()).unwrap();
    let mut options = options(vec![path], &folder.path().join("corpus"));
    options.documents = f2_corpus::Boundaries::Pieces(5.try_into().unwrap());
    options.in_order = true;
    options.text_of = Split::ALL.to_vec();
    let summary = prepare(&options, &Silent).unwrap();
    let documents: Vec<u64> = summary.splits.iter().map(|size| size.documents).collect();
    assert_eq!(documents, [12, 4, 4]);
    let written = Split::ALL.map(|split| {
        fs::read_to_string(options.out.join(format!("{}.jsonl", split.name()))).unwrap()
    });
    let mut lines = written.iter().flat_map(|text| text.lines());
    assert!(written[2].starts_with(r#"{"text":"line 80 of the novel\n"#), "{}", written[2]);
    assert_eq!(lines.clone().count(), 20);
    assert!(lines.all(|line| line.matches("novel").count() == 5));
}
