//! `f2 prepare` from the command line, mostly with bad input.

mod support;

use insta::assert_snapshot;
use support::Folder;

/// Forty documents, enough for all three splits.
fn text() -> String {
    (0..40).map(|number| format!("the cat sat on mat {number}\nand slept\n\n")).collect()
}

#[test]
fn prints_the_dataset_table() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    let run = folder.f2(&["prepare", "text.txt", "--vocab-size", "280", "--out", "corpus"]);
    assert_snapshot!(run.shown(), @r#"
    exit code: 0
    --- stdout
    split  documents  words  tokens  bytes
    ─────  ─────────  ─────  ──────  ─────
    train         36    288     393  1,142
    valid          3     24      33     96
    test           1      8      11     32

    vocabulary: 276 tokens
    --- stderr
    learning the vocabulary …
    note: learned 276 of 280 tokens: the text has no more pairs that occur twice
    corpus: corpus, next `f2 classes corpus`
    "#);
    assert_eq!(folder.names(), ["corpus", "text.txt"]);
}

#[test]
fn reads_standard_input_and_prints_json() {
    let folder = Folder::new();
    let arguments =
        "prepare - --documents lines --vocab-size 256 --split 0.6,0.2,0.2 --out corpus --json";
    let run = folder.f2_with_input(&arguments.split(' ').collect::<Vec<_>>(), &text());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let documents = result["splits"].as_array().unwrap().iter();
    assert_eq!(documents.map(|split| split["documents"].as_u64().unwrap()).sum::<u64>(), 80);
    assert!(!folder.path("corpus/standard-input.txt").exists());
    assert!(folder.read("corpus/manifest.json").contains("\"path\": \"-\""));
}

#[test]
fn says_how_many_tokens_the_text_gave() {
    let folder = Folder::new();
    folder.write("text.txt", "aa aa\n");
    let run = folder.f2(&["prepare", "--train", "text.txt", "--out", "corpus"]);
    assert_snapshot!(run.shown(), @r#"
    exit code: 0
    --- stdout
    split  documents  words  tokens  bytes
    ─────  ─────────  ─────  ──────  ─────
    train          1      2       4      6
    valid          0      0       0      0
    test           0      0       0      0

    vocabulary: 257 tokens
    --- stderr
    learning the vocabulary …
    note: learned 257 of 30000 tokens: the text has no more pairs that occur twice
    corpus: corpus, next `f2 classes corpus`
    "#);
}

#[test]
fn wikitext_as_published_is_cut_into_articles() {
    let folder = Folder::new();
    let tokens = " \n = One = \n \n Some text . \n \n = = Part = = \n \n More . \n \n = Two = \n \n End . \n";
    folder.write("wiki.train.tokens", tokens);
    let run = folder.f2(&["prepare", "--train", "wiki.train.tokens", "--out", "corpus", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["splits"][0]["documents"], 2);
}

/// Runs `f2 prepare` on a file that it must refuse, and checks that no other file is left.
fn refused(name: &str, content: &[u8], arguments: &[&str]) -> String {
    let folder = Folder::new();
    folder.write(name, content);
    let mut all = vec!["prepare", name, "--out", "corpus"];
    all.extend(arguments);
    let run = folder.f2(&all);
    assert_eq!(folder.names(), [name]);
    run.shown()
}

#[test]
fn missing_file() {
    let run = Folder::new().f2(&["prepare", "nowhere.txt", "--out", "corpus"]);
    assert_snapshot!(run.shown(), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: cannot read nowhere.txt: No such file or directory (os error 2)
      help: check its name and that it may be read
    "#);
}

#[test]
fn empty_input() {
    assert_snapshot!(refused("empty.txt", b" \n\n", &[]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: the training text is empty: no document was found in empty.txt
      help: give text that is not blank
    "#);
}

#[test]
fn one_document() {
    assert_snapshot!(refused("one.txt", b"only one document\n", &[]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    learning the vocabulary …
    error: no document fell into the valid split: the input has 1 in all
      help: cut it into more documents with `--documents`: `lines`, `chapters`, or a number of lines each; or give each split its own text with `--train`, `--valid` and `--test`
    "#);
}

#[test]
fn invalid_utf8() {
    assert_snapshot!(refused("latin1.txt", b"good\n\ncaf\xe9\n", &[]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: latin1.txt: invalid UTF-8 at byte 9 of the text
      help: convert the file to UTF-8, or replace what is broken with `--lossy`
    "#);
    let folder = Folder::new();
    folder.write("latin1.txt", b"good\n\ncaf\xe9\n");
    let run = folder.f2(&["prepare", "--train", "latin1.txt", "--lossy", "--out", "corpus"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn broken_json_line() {
    assert_snapshot!(refused("a.jsonl", b"{\"text\":\"fine\"}\n{\"text\": \n", &[]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: a.jsonl, line 2: broken JSON: EOF while parsing a value at line 1 column 9
      help: correct the line, or name another field with `--field`
    "#);
}

#[test]
fn json_line_without_the_field() {
    assert_snapshot!(refused("a.jsonl", b"{\"body\":\"fine\"}\n", &[]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: a.jsonl, line 1: there is no field "text"; there are "body"
      help: correct the line, or name another field with `--field`
    "#);
}

#[test]
fn truncated_archive() {
    let whole = zstd::encode_all(text().as_bytes(), 0).unwrap();
    let shown = refused("a.txt.zst", &whole[..whole.len() / 2], &[]);
    assert!(shown.starts_with("exit code: 3\n"), "{shown}");
    assert!(shown.contains("a.txt.zst: the compressed data is cut short or damaged"), "{shown}");
}

#[test]
fn vocabulary_below_the_bytes() {
    assert_snapshot!(refused("a.txt", text().as_bytes(), &["--vocab-size", "200"]), @r#"
    exit code: 2
    --- stdout
    --- stderr
    error: a vocabulary of 200 cannot hold the 256 bytes that every text is made of
      help: ask for at least `--vocab-size 256`
    "#);
}

#[test]
fn shares_that_do_not_add_up() {
    assert_snapshot!(refused("a.txt", text().as_bytes(), &["--split", "0.9,0.2,0.1"]), @r#"
    exit code: 2
    --- stdout
    --- stderr
    error: the fractions 0.9, 0.2, 0.1 must be at least 0, the first above 0, and add up to 1
      help: for example `--split 0.8,0.1,0.1`
    "#);
    assert_snapshot!(refused("a.txt", text().as_bytes(), &["--split", "0.9"]), @r#"
    exit code: 2
    --- stdout
    --- stderr
    error: invalid value '0.9' for '--split <SHARES>': expected three numbers, as in 0.8,0.1,0.1

    For more information, try '--help'.
    "#);
}

#[test]
fn a_folder_without_text() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("images")).unwrap();
    folder.write("images/a.png", "");
    assert_snapshot!(folder.f2(&["prepare", "images", "--out", "corpus"]).shown(), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: images holds no .txt, .tokens, .jsonl or .parquet file, plain or compressed
      help: name the files themselves to read them as plain text
    "#);
}

#[test]
fn a_tokenizer_that_is_none() {
    assert_snapshot!(refused("a.txt", text().as_bytes(), &["--tokenizer", "a.txt"]), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: a.txt: not a usable tokenizer: expected ident at line 1 column 2
      help: give a Hugging Face tokenizer.json, or vocab.json and merges.txt
    "#);
}

#[test]
fn broken_parquet() {
    let shown = refused("a.parquet", b"PAR1", &[]);
    assert!(shown.starts_with("exit code: 3\n"), "{shown}");
    assert!(shown.contains("error: a.parquet: "), "{shown}");
}

#[test]
fn an_existing_corpus_and_something_else() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    let arguments = ["prepare", "text.txt", "--vocab-size", "256", "--out", "corpus"];
    assert_eq!(folder.f2(&arguments).code, 0);
    assert_snapshot!(folder.f2(&arguments).shown(), @r#"
    exit code: 2
    --- stdout
    --- stderr
    error: corpus already holds a corpus
      help: choose another folder, or replace it with `--force`
    "#);
    assert_eq!(folder.f2(&[&arguments[..], &["--force"]].concat()).code, 0);
    folder.write("notes", "something of the user's");
    let arguments = ["prepare", "text.txt", "--out", "notes", "--force"];
    assert_snapshot!(folder.f2(&arguments).shown(), @r#"
    exit code: 2
    --- stdout
    --- stderr
    error: notes exists and is not a corpus, so it is not replaced
      help: choose another folder, or remove this one yourself
    "#);
    assert_eq!(folder.read("notes"), "something of the user's");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    // The shell's limit on file sizes stands in for a disk that is full after one block.
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; {} prepare text.txt --vocab-size 256 --out corpus",
        env!("CARGO_BIN_EXE_f2")
    );
    let shell = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8(shell.stderr).unwrap();
    assert_eq!(shell.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains("File too large"), "{stderr}");
    assert_eq!(folder.names(), ["text.txt"]);
}

/// Forty chapters of a few lines, one blank line between the lines.
fn novel() -> String {
    let chapter = |number: usize| {
        let lines = (0..6).map(|line| format!("It rained on day {line} of week {number}.\n\n"));
        format!("CHAPTER {number}.\n\n{}", lines.collect::<String>())
    };
    "A NOVEL\n\n".to_owned() + &(1..=40).map(chapter).collect::<String>()
}

#[test]
fn a_novel_is_cut_into_chapters_or_pieces_and_split_in_order() {
    let folder = Folder::new();
    folder.write("novel.txt", novel());
    let documents = |arguments: &[&str]| -> Vec<u64> {
        let all = [&["prepare", "novel.txt", "--json", "--force", "--text"][..], arguments];
        let run =
            folder.f2(&[&all.concat()[..], &["--vocab-size", "280", "--out", "corpus"]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let splits = result["splits"].as_array().unwrap().iter();
        splits.map(|split| split["documents"].as_u64().unwrap()).collect()
    };
    assert_eq!(documents(&["--documents", "chapters"]), [37, 2, 2]);
    let test = folder.read("corpus/test.jsonl");
    assert!(
        test.starts_with(r#"{"text":"CHAPTER 39.\nIt rained on day 0 of week 39.\n"#),
        "{test}"
    );
    assert!(folder.read("corpus/manifest.json").contains("\"in_order\": true"));
    assert_eq!(documents(&["--documents", "10"]).iter().sum::<u64>(), 29);
    let by_hash = documents(&["--documents", "chapters", "--split-by", "hash"]);
    assert_eq!(by_hash.iter().sum::<u64>(), 41);
    assert!(!folder.read("corpus/test.jsonl").contains("CHAPTER 39.") || by_hash[2] != 2);
    let run = folder.f2(&["prepare", "novel.txt", "--documents", "verses", "--out", "other"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn a_tokenizer_is_found_in_folders() {
    let folder = Folder::new();
    folder.write("text.txt", text());
    assert_eq!(
        folder.f2(&["prepare", "text.txt", "--vocab-size", "280", "--out", "corpus"]).code,
        0
    );
    let checkpoint = folder.path("run/checkpoints/step-7");
    std::fs::create_dir_all(&checkpoint).unwrap();
    std::fs::copy(folder.path("corpus/tokenizer.json"), checkpoint.join("tokenizer.json")).unwrap();
    for tokenizer in ["corpus", "run", "run/checkpoints/step-7"] {
        let again = ["prepare", "text.txt", "--tokenizer", tokenizer, "--out", "again", "--force"];
        let run = folder.f2(&again);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(folder.read("again/tokenizer.json"), folder.read("corpus/tokenizer.json"));
    }
    std::fs::create_dir(folder.path("empty")).unwrap();
    let run = folder.f2(&["prepare", "text.txt", "--tokenizer", "empty", "--out", "none"]);
    assert_snapshot!(run.shown(), @r#"
    exit code: 3
    --- stdout
    --- stderr
    error: empty holds no tokenizer: neither tokenizer.json nor vocab.json and merges.txt
      help: name a corpus, a run, a model, or the file itself
    "#);
}

#[test]
fn very_unequal_splits_are_remarked_on() {
    let folder = Folder::new();
    let long = "one very long document about a cat\n".repeat(400);
    folder.write("text.txt", text() + &long);
    let run = folder.f2(&["prepare", "text.txt", "--vocab-size", "280", "--out", "corpus"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("% of the text where 5 % were requested"), "{}", run.stderr);
}
