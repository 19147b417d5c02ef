//! Sequence to sequence from the command line: prepare pairs, train on targets, score against
//! references.

mod support;

use serde_json::{Value, json};
use support::{Folder, Run};

/// Pairs in which the target is the source's numbers in reverse order.
fn pairs(count: usize) -> String {
    let names = ["one", "two", "three", "four", "five"];
    let line = |n: usize| {
        let (a, b) = (names[n % 5], names[n / 5 % 5]);
        json!({"source": format!("say {a} and {b} {}", n % 3), "target": format!("{b} {a}")})
    };
    (0..count).map(|n| line(n).to_string() + "\n").collect()
}

const SMALL: [&str; 14] = [
    "--set",
    "model.layers=1",
    "--set",
    "model.width=32",
    "--set",
    "model.heads=2",
    "--set",
    "batch.sequence=24",
    "--set",
    "batch.size=8",
    "--set",
    "model.feed_forward=64",
    "--set",
    "optimiser.learning_rate=1e-2",
];

/// A corpus of pairs with classes.
fn prepared() -> Folder {
    let folder = Folder::new();
    folder.write("pairs.jsonl", pairs(75));
    let arguments = [
        "prepare",
        "--train",
        "pairs.jsonl",
        "--valid",
        "pairs.jsonl",
        "--test",
        "pairs.jsonl",
        "--pairs",
        "--vocab-size",
        "290",
        "--out",
        "corpus",
        "--json",
    ];
    let made = ok(&folder, &arguments);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["splits"][0]["documents"], 75);
    assert!(made["splits"][0]["targets"]["tokens"].as_u64() > Some(75));
    ok(&folder, &["classes", "corpus"]);
    folder
}

#[track_caller]
fn ok(folder: &Folder, arguments: &[&str]) -> Run {
    let run = folder.f2(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run
}

#[track_caller]
fn refused(folder: &Folder, arguments: &[&str], code: i32, words: &str) {
    let run = folder.f2(arguments);
    assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
}

fn train(folder: &Folder, more: &[&str]) -> Run {
    folder.f2(&[&["train", "corpus"][..], &SMALL, more].concat())
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_objective_learns_targets_and_they_are_written_and_scored() {
    let folder = prepared();
    for objective in ["mle", "f2", "unlikelihood"] {
        let trained =
            train(&folder, &["--objective", objective, "--steps", "250", "--out", objective]);
        assert_eq!(trained.code, 0, "{}", trained.stderr);
    }
    let arguments = ["--init", "mle", "--objective", "face", "--steps", "5", "--out", "face"];
    let tuned = folder.f2(&[&["train", "corpus"][..], &arguments].concat());
    assert_eq!(tuned.code, 0, "{}", tuned.stderr);
    for model in ["mle", "f2"] {
        let perplexity = ok(&folder, &["perplexity", model, "corpus", "--json"]);
        let perplexity: Value = serde_json::from_str(&perplexity.stdout).unwrap();
        assert_eq!((&perplexity["pairs"], &perplexity["words"]), (&75.into(), &150.into()));
        assert_eq!(perplexity["scored_tokens"], perplexity["tokens"]);
        assert!(perplexity["token_perplexity"].as_f64() < Some(1.6), "{perplexity}");
        let out = format!("{model}.jsonl");
        let written = ok(
            &folder,
            &[
                "generate",
                model,
                "--corpus",
                "corpus",
                "--protocol",
                "pairs",
                "--greedy",
                "--out",
                &out,
                "--references",
                "human.jsonl",
            ],
        );
        assert!(written.stderr.contains("75 texts written"), "{}", written.stderr);
    }
    let (hyps, refs) =
        (json_lines(&folder.read("f2.jsonl")), json_lines(&folder.read("human.jsonl")));
    assert_eq!((hyps.len(), refs.len()), (75, 75));
    assert_eq!(
        (&refs[7]["prompt"], &refs[7]["text"]),
        (&json!("say three and two 1"), &json!("two three"))
    );
    assert_eq!((&hyps[7]["prompt"], &hyps[7]["protocol"]), (&refs[7]["prompt"], &json!("pairs")));
    let scored = ok(
        &folder,
        &["eval", "--pairs", "--hyps", "mle.jsonl", "f2.jsonl", "--refs", "human.jsonl", "--json"],
    );
    let scores: Value = serde_json::from_str(&scored.stdout).unwrap();
    for model in [0, 1] {
        assert!(scores[model]["chrf"].as_f64() > Some(0.8), "{scores}");
        assert!(scores[model]["rouge_1"].as_f64() > Some(0.8), "{scores}");
    }
    let table = ok(
        &folder,
        &["eval", "--pairs", "--hyps", "human.jsonl", "--refs", "human.jsonl", "--csv"],
    );
    // Texts of two words have no 4-grams for BLEU.
    assert_eq!(
        table.stdout,
        ",texts,BLEU,chrF,chrF++,R-1,R-2,R-L\nhuman,75,0.00,100.00,100.00,100.00,100.00,100.00\n"
    );
    // A prompt is a source, with or without the separator.
    let answer =
        |prompt: &str| ok(&folder, &["generate", "f2", "--prompt", prompt, "--greedy", "--json"]);
    let bare = json_lines(&answer("say one and two 0").stdout);
    let ended = json_lines(&answer("say one and two 0<|separator|>").stdout);
    assert_eq!(bare[0]["text"], ended[0]["text"]);
    assert_eq!(bare[0]["text"], "two one");
    let shown = ok(&folder, &["generate", "f2", "--prompt", "say one and two 0", "--greedy"]);
    assert!(shown.stdout.ends_with("say one and two 0\ntwo one\n"), "{}", shown.stdout);
    // The order of the preset is replaced by the one for pairs, which is saved with the run.
    assert!(folder.read("mle/config.toml").contains("order = \"documents\""));
    let resumed = folder.f2(&["train", "--resume", "mle", "--steps", "252", "--allow", "budget"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

#[test]
fn long_sources_are_cut_with_a_remark() {
    let folder = prepared();
    let trained = train(&folder, &["--steps", "2", "--set", "batch.sequence=6", "--out", "short"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    assert!(trained.stderr.contains("pairs are longer than 6 tokens"), "{}", trained.stderr);
    let generate =
        ["generate", "short", "--corpus", "corpus", "--protocol", "pairs", "--out", "x.jsonl"];
    let written = ok(&folder, &generate);
    assert!(
        written.stderr.contains("sources are cut to their last 2 tokens"),
        "{}",
        written.stderr
    );
    refused(&folder, &[&generate[..], &["--strict"]].concat(), 2, "are left for it");
}

#[test]
fn pairs_and_running_text_are_not_taken_for_one_another() {
    let folder = prepared();
    folder.write("text.txt", "the cat sat on the mat and one two three\n\n".repeat(60));
    let text = ["--train", "text.txt", "--valid", "text.txt", "--test", "text.txt"];
    let prepare =
        [&["prepare"][..], &text, &["--tokenizer", "corpus/tokenizer.json", "--out", "text"]];
    ok(&folder, &prepare.concat());
    assert_eq!(train(&folder, &["--steps", "2", "--out", "pairs"]).code, 0);
    ok(
        &folder,
        &[
            &["train", "text"][..],
            &SMALL,
            &["--objective", "mle", "--steps", "2", "--out", "plain"],
        ]
        .concat(),
    );
    let generate = |model: &'static str, corpus: &'static str, protocol: &'static str| {
        ["generate", model, "--corpus", corpus, "--protocol", protocol, "--out", "x.jsonl"]
    };
    refused(&folder, &generate("pairs", "corpus", "paper"), 3, "holds pairs, not running text");
    refused(&folder, &generate("pairs", "text", "pairs"), 3, "holds running text");
    refused(&folder, &generate("pairs", "text", "paper"), 3, "holds no pairs");
    refused(&folder, &generate("plain", "corpus", "pairs"), 3, "was not trained on pairs");
    refused(&folder, &["perplexity", "plain", "corpus"], 3, "was not trained on pairs");
    refused(&folder, &["perplexity", "pairs", "text"], 3, "holds no pairs");
    refused(&folder, &["perplexity", "pairs", "text.txt"], 3, "was trained on pairs");
    let streams = [&generate("pairs", "corpus", "pairs")[..], &["--streams", "3"]].concat();
    refused(&folder, &streams, 2, "has no --streams");
    refused(&folder, &["generate", "pairs", "--prompt", ""], 2, "source 1 is empty");
    let study = ["reproduce", "corpus", "--preset", "tiny", "--out", "x"];
    refused(&folder, &study, 2, "holds pairs");
    let order = train(&folder, &["--steps", "2", "--set", "batch.order=streams", "--out", "x"]);
    assert_eq!(order.code, 2, "{}", order.stderr);
    assert!(order.stderr.contains("each row is one pair"), "{}", order.stderr);
    let sequence = ["--init", "pairs", "--objective", "unlikelihood-sequence", "--out", "x"];
    let short = ["--set", "unlikelihood.prefix=2", "--set", "unlikelihood.continuation=3"];
    let train = [&["train", "corpus"][..], &sequence, &short].concat();
    refused(&folder, &train, 2, "the corpus consists of pairs");
}

#[test]
fn bad_pairs_are_refused() {
    let folder = Folder::new();
    let prepare = |name: &'static str| ["prepare", name, "--pairs", "--out", "corpus"];
    folder.write("fields.jsonl", "{\"source\": \"a\"}\n");
    refused(&folder, &prepare("fields.jsonl"), 3, "line 1: there is no field \"target\"");
    folder.write("empty.jsonl", "{\"source\": \"\", \"target\": \"b\"}\n");
    refused(&folder, &prepare("empty.jsonl"), 3, "the field \"source\" is empty");
    folder.write("inside.jsonl", "{\"source\": \"a <|separator|>\", \"target\": \"b\"}\n");
    refused(&folder, &prepare("inside.jsonl"), 3, "contains <|separator|>");
    folder.write("one.jsonl", pairs(1));
    refused(&folder, &prepare("one.jsonl"), 3, "no pair fell into the");
    let fields = ["prepare", "one.jsonl", "--field", "x", "--pairs", "--out", "corpus"];
    refused(&folder, &fields, 2, "cannot be used with");
    refused(
        &folder,
        &["prepare", "one.jsonl", "--separator", "x", "--out", "corpus"],
        2,
        "--pairs",
    );
    folder.write(
        "a.jsonl",
        "{\"prompt\": \"p\", \"text\": \"a\"}\n{\"prompt\": \"q\", \"text\": \"b\"}\n",
    );
    folder.write(
        "b.jsonl",
        "{\"prompt\": \"q\", \"text\": \"a\"}\n{\"prompt\": \"p\", \"text\": \"b\"}\n",
    );
    folder.write("c.txt", "only one\n");
    let eval = |refs: &'static str| ["eval", "--pairs", "--hyps", "a.jsonl", "--refs", refs];
    refused(&folder, &eval("b.jsonl"), 3, "line 1: its prompt is not that of the reference");
    refused(&folder, &eval("c.txt"), 3, "there are 2 texts and 1 references");
    refused(&folder, &["eval", "--pairs", "--hyps", "a.jsonl"], 2, "needs references");
}
