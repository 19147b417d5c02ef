//! `f2 train --init` with a model of another corpus.

mod support;

use std::path::Path;

use support::{Folder, Run};

const TEXT: &str = "a rat on a mat, a cat on a rat: and on, and on, sat the mat\n";

/// An imported GPT-2, a corpus prepared with its tokenizer, and one with a tokenizer of its own.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("text.txt", TEXT.repeat(40));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2-lm/tests/fixtures/gpt2/tied");
    let texts = ["--train", "text.txt", "--valid", "text.txt"];
    let commands: [&[&str]; 5] = [
        &["import", fixtures.to_str().unwrap(), "--out", "gpt2"],
        &[&["prepare", "--out", "corpus", "--tokenizer", "gpt2/tokenizer.json"], &texts[..]]
            .concat(),
        &["classes", "corpus", "--k", "3"],
        &[&["prepare", "--out", "other", "--vocab-size", "262"], &texts[..]].concat(),
        &["classes", "other"],
    ];
    for arguments in commands {
        let run = folder.f2(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    }
    folder
}

fn train(folder: &Folder, corpus: &str, more: &str) -> Run {
    let arguments = ["train", corpus, "--init", "gpt2", "--threads", "1", "--steps", "3"];
    folder.f2(&[&arguments[..], &more.split_whitespace().collect::<Vec<_>>()].concat())
}

#[test]
fn a_model_learns_on_from_another_corpus() {
    let folder = folder();
    for (out, more) in [("fresh", ""), ("mean", "--set initial.class_vectors=mean")] {
        let more = format!("--out {out} --objective f2 --set batch.sequence=12 {more}");
        let run = train(&folder, "corpus", &more);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let config = folder.read(&format!("{out}/config.toml"));
        // The shape is the model's, the tied matrix is now two, the sequence length is the user's.
        for line in
            ["layers = 2", "width = 16", "feed_forward = 24", "tied = false", "sequence = 12"]
        {
            assert!(config.contains(line), "{line}: {config}");
        }
        let exported = folder.f2(&["export", out, "--out", &format!("{out}-exported")]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
    }
    let step = |run: &str| {
        let events = folder.read(&format!("{run}/events.jsonl"));
        let mut lines = events.lines().map(|line| serde_json::from_str(line).unwrap());
        let first: serde_json::Value =
            lines.find(|event: &serde_json::Value| event["event"] == "step").unwrap();
        first["loss"].as_f64().unwrap()
    };
    assert_ne!(step("fresh"), step("mean"), "the setting does nothing");
}

#[test]
fn mistakes_are_reported_with_advice() {
    let folder = folder();
    let messages: Vec<String> = [
        ("corpus", "--objective f2 --set batch.sequence=64"),
        ("other", "--objective f2 --set batch.sequence=12"),
        ("corpus", "--objective f2 --set batch.sequence=12 --set model.layers=3"),
        ("corpus", "--objective f2 --set initial.class_vectors=median"),
    ]
    .into_iter()
    .map(|(corpus, more)| {
        let Run { code, stderr, .. } = train(&folder, corpus, &format!("--out run {more}"));
        let here = folder.path("").canonicalize().unwrap();
        let stderr = stderr.replace(&here.display().to_string(), "HERE");
        format!("$ f2 train {corpus} --init gpt2 {more}\n[exit code {code}]\n{stderr}")
    })
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
    assert!(!folder.path("run").exists());
}

/// The corpus has the model's tokenizer but its own ids: the score is that of the text itself, and
/// the references are decoded correctly.
#[test]
fn a_model_is_scored_on_a_corpus_with_its_tokenizer_before_it_learns_from_it() {
    let folder = folder();
    folder.write("line.txt", TEXT);
    let texts = ["--train", "text.txt", "--test", "line.txt", "--tokenizer", "gpt2/tokenizer.json"];
    for (out, more) in [("ranked", &[][..]), ("kept", &["--keep-ids"][..])] {
        let run = folder.f2(&[&["prepare", "--out", out], &texts[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let score = |text: &str| {
            let run = folder.f2(&["perplexity", "gpt2", text, "--json"]);
            assert_eq!(run.code, 0, "{}", run.stderr);
            let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            report["nats_per_token"].as_f64().unwrap()
        };
        assert_eq!(score(out).to_bits(), score("line.txt").to_bits(), "{out}");
        let cut = ["--protocol", "paper", "--streams", "1", "--prefix", "3", "--continuation", "5"];
        let files = ["--out", "written.jsonl", "--references", "human.jsonl", "--greedy"];
        let arguments = [&["generate", "gpt2", "--corpus", out], &cut[..], &files[..]].concat();
        let run = folder.f2(&arguments);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let human = folder.read("human.jsonl");
        let human: serde_json::Value = serde_json::from_str(human.lines().next().unwrap()).unwrap();
        let text = human["text"].as_str().unwrap();
        assert!(TEXT.contains(text) && text.len() > 4, "{human}");
    }
    // Counts and the ids of texts are by rank, whatever ids the corpus keeps.
    folder.write("ids.jsonl", "{\"ids\":[0,1,2,3,4,5,6,7]}\n{\"ids\":[0,0,1,9,30,31]}\n");
    let [ranked, kept] = ["ranked/counts.json", "kept/counts.json"].map(|counts| {
        let files = ["--hyps", "ids.jsonl", "--refs", "ids.jsonl", "--counts", counts, "--json"];
        let run = folder.f2(&[&["eval"], &files[..]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    });
    assert_eq!(ranked, kept);
    let refused = folder.f2(&["perplexity", "gpt2", "other", "--split", "valid"]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("was prepared with another tokenizer"), "{}", refused.stderr);
}
