//! `f2 prepare` in parts, as run by a scheduler: the corpus is the same, and errors name the part.

mod support;

use insta::assert_snapshot;
use support::faults::contents;
use support::{Folder, invented_text, wait_for};

const OPTIONS: [&str; 3] = ["texts", "--vocab-size", "400"];

/// Three files, the second by far the largest and compressed.
fn texts() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("texts")).unwrap();
    folder.write("texts/a.txt", invented_text(20));
    let large = zstd::encode_all(invented_text(400).as_bytes(), 0).unwrap();
    folder.write("texts/b.txt.zst", large);
    folder.write("texts/c.jsonl", "{\"text\": \"a last one, \\u00e9\"}\n".repeat(9));
    folder
}

fn f2(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.f2(&[&["prepare"], arguments].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout
}

fn part(folder: &Folder, number: usize, of: usize) -> String {
    let part = format!("{number}/{of}");
    f2(folder, &[&OPTIONS[..], &["--part", &part, "--out", "parts"]].concat())
}

fn refused(folder: &Folder, arguments: &[&str]) -> String {
    let run = folder.f2(&[&["prepare"], arguments].concat());
    assert_ne!(run.code, 0, "{}", run.stdout);
    run.shown()
}

#[test]
fn the_corpus_is_the_same_for_any_number_of_parts() {
    let folder = texts();
    f2(&folder, &[&OPTIONS[..], &["--out", "whole"]].concat());
    let expected = contents(&folder.path("whole"));
    for of in [1, 2, 7] {
        for passes in [1, 2] {
            (1..=of).for_each(|number| drop(part(&folder, number, of)));
            if passes == 2 {
                f2(&folder, &["--learn", "parts"]);
                (1..=of).for_each(|number| drop(part(&folder, number, of)));
            }
            f2(&folder, &["--merge", "parts", "--out", "corpus", "--force"]);
            assert!(contents(&folder.path("corpus")) == expected, "{of} parts, {passes} passes");
            std::fs::remove_dir_all(folder.path("parts")).unwrap();
        }
    }
    assert_eq!(folder.names(), ["corpus", "texts", "whole"]);
}

#[test]
fn a_corpus_of_several_files_is_trained_on_as_one_of_one_file() {
    let folder = texts();
    let shards = ["--shard-tokens", "2000", "--out", "several"];
    f2(&folder, &[&OPTIONS[..], &shards].concat());
    f2(&folder, &[&OPTIONS[..], &["--out", "one"]].concat());
    assert!(folder.path("several/train-00002.bin").exists());
    folder.write("small.toml", support::small_settings(16));
    let models = ["one", "several"].map(|corpus| {
        let config = ["--config", "small.toml", "--objective", "mle", "--steps", "3"];
        let run = folder
            .f2(&[&["train", corpus, "--out", &format!("run-{corpus}")], &config[..]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let model = format!("run-{corpus}/checkpoints/step-3/model.safetensors");
        std::fs::read(folder.path(&model)).unwrap()
    });
    assert!(models[0] == models[1]);
    let again = [&OPTIONS[..], &["--force", "--out", "several"]].concat();
    f2(&folder, &again);
    assert!(contents(&folder.path("several")) == contents(&folder.path("one")));
}

#[test]
fn progress_of_a_part_is_told() {
    let folder = texts();
    assert_snapshot!(part(&folder, 2, 2), @"part 2 of 2 is counted: 249 documents");
    assert_snapshot!(part(&folder, 2, 2), @"part 2 of 2 is counted already: 249 documents");
    let json = [&OPTIONS[..], &["--part", "1/2", "--out", "parts", "--json"]].concat();
    assert_snapshot!(f2(&folder, &json), @r#"{"documents":180,"of":2,"part":1,"step":"counted","was_there":false}"#);
    let learned = folder.f2(&["prepare", "--learn", "parts"]);
    assert_snapshot!(learned.stdout, @"vocabulary: 400 tokens");
    let next = "then `f2 prepare --merge parts --out CORPUS`";
    assert!(learned.stderr.contains(next), "{}", learned.stderr);
    assert_snapshot!(f2(&folder, &["--learn", "parts", "--json"]), @r#"{"counts_divided_by":1,"vocabulary_size":400,"was_there":true}"#);
    assert_snapshot!(part(&folder, 1, 2), @"part 1 of 2 is encoded: 180 documents");
}

/// A refused command and its output.
fn transcript(folder: &Folder, arguments: &str) -> String {
    let said = refused(folder, &arguments.split(' ').collect::<Vec<_>>());
    format!("$ f2 prepare {arguments}\n{said}")
}

#[test]
fn mistakes_are_reported_with_advice() {
    let folder = texts();
    let mut shown = String::new();
    for arguments in [
        "texts --part 0/4 --out parts",
        "texts --part 5/4 --out parts",
        "texts --part x/y --out parts",
        "texts --part 100000/100000 --out parts",
        "texts --part 1/4",
        "--part 1/4 --merge parts --out corpus",
        "--merge parts",
        "--merge parts --lossy --out corpus",
        "--learn parts --out corpus",
        "--merge parts --out corpus",
        "- --part 1/4 --out parts",
        "texts --part 1/4 --vocab-size 7 --out parts",
    ] {
        shown += &transcript(&folder, arguments);
    }
    assert_eq!(folder.names(), ["texts"]);
    part(&folder, 1, 3);
    for arguments in [
        "--merge parts --out corpus",
        "--learn parts",
        "texts --part 2/3 --vocab-size 401 --out parts",
        "texts/a.txt --part 2/3 --vocab-size 400 --out parts",
        "texts --part 2/4 --vocab-size 400 --out parts",
    ] {
        shown += &transcript(&folder, arguments);
    }
    folder.write("parts/notes.txt", "years of work");
    for arguments in ["--merge parts --out corpus", "texts --part 1/3 --vocab-size 400 --out parts"]
    {
        shown += &transcript(&folder, arguments);
    }
    assert_snapshot!(shown);
}

#[test]
fn a_part_is_made_by_one_process() {
    let folder = texts();
    part(&folder, 1, 2);
    let lock = f2_files::Lock::beside(&folder.path("parts/part-00002-of-00002")).unwrap();
    let second = [&OPTIONS[..], &["--part", "2/2", "--out", "parts"]].concat();
    let shown = refused(&folder, &second);
    assert!(shown.starts_with("exit code: 2"), "{shown}");
    assert!(shown.contains("part-00002-of-00002 is in use by process"), "{shown}");
    part(&folder, 1, 2);
    drop(lock);
    part(&folder, 2, 2);
}

/// A part whose process was killed is reported as missing, and the same command makes it.
#[test]
fn a_killed_part_is_missing_and_is_made_again() {
    let folder = texts();
    folder.write("texts/d.txt", invented_text(60_000));
    part(&folder, 1, 2);
    let part_2 = [&["prepare"], &OPTIONS[..], &["--part", "2/2", "--out", "parts"]].concat();
    let mut child = folder.start(&part_2);
    wait_for(|| folder.path("parts/.part-00002-of-00002.lock").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = refused(&folder, &["--merge", "parts", "--out", "corpus"]);
    assert!(shown.contains("part 2 of 2 has not been counted in parts"), "{shown}");
    part(&folder, 2, 2);
    f2(&folder, &["--merge", "parts", "--out", "corpus"]);
    assert!(contents(&folder.path("parts")).keys().all(|name| !name.starts_with('.')));
}
