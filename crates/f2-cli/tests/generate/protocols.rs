//! Prompts cut from a corpus as in the paper.

use std::io::{BufRead as _, BufReader};

use f2_corpus::{Corpus, Split};
use serde_json::json;

use super::support::{Run, interrupt};
use super::{generate, records, workshop};

#[test]
fn the_papers_protocol_writes_references_beside() {
    let workshop = workshop();
    let sizes = ["--streams", "4", "--prefix", "5", "--continuation", "10", "--split", "train"];
    let files = ["--out", "samples.jsonl", "--references", "human.jsonl"];
    let base = ["f2", "--corpus", "corpus", "--protocol", "paper"];
    let said = generate(&[&base[..], &sizes, &files].concat());
    assert_eq!(said.stdout, "");
    let (samples, human) =
        (records(&workshop.read("samples.jsonl")), records(&workshop.read("human.jsonl")));
    assert_eq!(samples.len(), human.len());
    assert!(samples.len() > 50);
    for (sample, human) in samples.iter().zip(&human) {
        assert_eq!(sample["prompt"], human["prompt"]);
        assert_eq!((&sample["protocol"], &human["protocol"]), (&json!("paper"), &json!("paper")));
        assert_eq!(sample["ids"].as_array().unwrap().len(), 10);
        assert_eq!(human["ids"].as_array().unwrap().len(), 10);
    }
    let evaluated =
        workshop.f2(&["eval", "--hyps", "samples.jsonl", "--refs", "human.jsonl", "--json"]);
    assert_eq!(evaluated.code, 0, "{}", evaluated.stderr);
}

/// The protocol uses the beginning of every document longer than prefix and continuation.
#[test]
fn the_lyrics_protocol_takes_the_beginnings_of_documents() {
    let workshop = workshop();
    let sizes = ["--prefix", "5", "--continuation", "10", "--split", "train"];
    let files = ["--out", "songs.jsonl", "--references", "sung.jsonl"];
    let base = ["f2", "--corpus", "corpus", "--protocol", "lyrics"];
    generate(&[&base[..], &sizes, &files].concat());
    let (songs, sung) =
        (records(&workshop.read("songs.jsonl")), records(&workshop.read("sung.jsonl")));
    let corpus = Corpus::open(&workshop.path("corpus")).unwrap();
    let shard = corpus.shard(Split::Train).unwrap();
    let all = (0..shard.documents()).map(|index| shard.ranks(shard.document(index)));
    let long: Vec<Vec<u32>> = all.filter(|document| document.len() > 15).collect();
    assert!(long.len() < shard.documents() && !long.is_empty(), "{}", long.len());
    assert_eq!((songs.len(), sung.len()), (long.len(), long.len()));
    for ((song, sung), document) in songs.iter().zip(&sung).zip(&long) {
        assert_eq!((&song["protocol"], &sung["protocol"]), (&json!("lyrics"), &json!("lyrics")));
        assert_eq!(sung["ids"], json!(document[5..15]));
        assert_eq!(song["ids"].as_array().unwrap().len(), 10);
    }
    // The default strategy is that of the paper's main table for lyrics.
    generate(&[&base[..], &sizes, &["--top-k", "20", "--out", "twenty.jsonl"]].concat());
    assert_eq!(workshop.read("twenty.jsonl"), workshop.read("songs.jsonl"));
}

/// If interrupted, neither the texts so far nor their references replace an older file.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_older_texts_with_older_references() {
    let workshop = workshop();
    let sizes = ["--streams", "4", "--prefix", "5", "--continuation", "10", "--split", "train"];
    let files = ["--out", "part.jsonl", "--references", "part-human.jsonl", "--json"];
    let base = ["generate", "mle", "--corpus", "corpus", "--protocol", "paper", "-n", "100000"];
    let stop = || {
        let mut child = workshop.start(&[&base[..], &sizes, &files].concat());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with('{'));
        let rest = std::thread::spawn(move || lines.count());
        let Run { code, stderr, .. } = interrupt(child);
        rest.join().unwrap();
        assert_eq!(code, 130, "{stderr}");
        stderr
    };
    for name in ["part.jsonl", "part-human.jsonl"] {
        workshop.write(name, "older\n");
    }
    let said = stop();
    for name in ["part.jsonl", "part-human.jsonl"] {
        assert_eq!(workshop.read(name), "older\n", "{name}: {said}");
        assert!(said.contains(&format!("{name} is left as it was")), "{said}");
        std::fs::remove_file(workshop.path(name)).unwrap();
    }
    let said = stop();
    assert!(said.contains("they are saved") && !said.contains("left as it was"), "{said}");
    assert!(!records(&workshop.read("part.jsonl")).is_empty());
    assert!(records(&workshop.read("part-human.jsonl")).len() > 50);
}
