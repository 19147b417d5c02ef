//! `f2 classes` from the command line: exit code, standard output and standard error.

use std::fs;
use std::path::Path;
use std::process::Command;

use f2_classes::ClassSelection;
use f2_corpus::{Corpus, Inputs, Options, Silent, prepare};
use tempfile::TempDir;

/// Runs the program in a folder and returns its exit code and output, which are the same on all
/// machines.
fn f2(folder: &Path, arguments: &[&str]) -> String {
    let answer = Command::new(env!("CARGO_BIN_EXE_f2"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    format!(
        "exit code: {}\n── stdout ──\n{}── stderr ──\n{}",
        answer.status.code().expect("no signal"),
        String::from_utf8(answer.stdout).unwrap(),
        String::from_utf8(answer.stderr).unwrap()
    )
}

fn folder_with_counts(counts: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("counts.json"), counts).unwrap();
    folder
}

fn with_counts(counts: &str, arguments: &[&str]) -> String {
    let folder = folder_with_counts(counts);
    f2(folder.path(), &[&["classes", "--counts", "counts.json"], arguments].concat())
}

const COUNTS: &str = "[3, 10, 1, 9, 0, 5, 2, 0, 0, 0]";

#[test]
fn greedy_tables() {
    insta::assert_snapshot!(with_counts(COUNTS, &[]));
}

#[test]
fn author_tables_name_the_score() {
    insta::assert_snapshot!(with_counts(COUNTS, &["--method", "author"]));
}

/// The last digit of a logarithm may differ between machines, so numbers are compared, not text.
#[test]
fn json_has_the_documented_fields() {
    let answer = with_counts(COUNTS, &["--unseen", "0", "--json"]);
    let line = answer.lines().find(|line| line.starts_with('{')).expect("one object");
    let json: serde_json::Value = serde_json::from_str(line).unwrap();
    let keys = ["method", "k", "ends", "objective", "class_efficiency", "classes", "curve"];
    assert_eq!(json.as_object().unwrap().len(), keys.len(), "{line}");
    assert!(keys.iter().all(|key| json.get(key).is_some()), "{line}");
    assert_eq!((json["method"].as_str(), json["k"].as_u64()), (Some("greedy"), Some(3)));
    assert_eq!(json["ends"], serde_json::json!([1, 3, 10]));
    let last = &json["classes"][2];
    assert_eq!((last["start"].as_u64(), last["end"].as_u64()), (Some(3), Some(10)));
    assert_eq!((last["tokens"].as_u64(), last["mass"].as_f64()), (Some(7), Some(0.2)));
    let near = |value: &serde_json::Value, expected: f64| {
        assert!((value.as_f64().unwrap() - expected).abs() < 1e-9, "{value} {expected}");
    };
    near(&json["objective"], 1.770_083_575_459_766_4);
    near(&json["curve"][1]["objective"], 1.745_400_198_081_721_8);
    assert_eq!(json["curve"].as_array().unwrap().len(), 3);
}

#[test]
fn a_given_k_is_the_only_one_tried() {
    insta::assert_snapshot!(with_counts(COUNTS, &["--method", "equal-tokens", "--k", "4"]));
}

#[test]
fn bad_counts() {
    for (name, counts) in [
        ("negative", "[4, -1]"),
        ("fractional", "[4, 1.5]"),
        ("all_zero", "[0, 0, 0]"),
        ("empty", "[]"),
        ("not_numbers", "[4, \"many\"]"),
        ("broken_json", "[4, 1"),
        ("not_a_list", "{\"counts\": [4, 1]}"),
    ] {
        insta::assert_snapshot!(name, with_counts(counts, &[]));
    }
}

#[test]
fn bad_k() {
    for (name, k) in [("k_of_none", "0"), ("k_too_large", "11"), ("k_not_a_number", "few")] {
        insta::assert_snapshot!(name, with_counts(COUNTS, &["--k", k]));
    }
}

#[test]
fn k_out_of_the_authors_reach() {
    let answer = with_counts("[5, 0, 0]", &["--method", "author", "--unseen", "0", "--k", "3"]);
    insta::assert_snapshot!(answer);
}

#[test]
fn bad_places() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("missing_file", f2(folder.path(), &["classes", "--counts", "no.json"]));
    insta::assert_snapshot!("not_a_corpus", f2(folder.path(), &["classes", "."]));
    insta::assert_snapshot!("nothing_given", f2(folder.path(), &["classes"]));
    let folder = folder_with_counts(COUNTS);
    let into_nowhere = ["classes", "--counts", "counts.json", "--out", "no/classes.json"];
    insta::assert_snapshot!("nowhere_to_write", f2(folder.path(), &into_nowhere));
}

#[test]
fn unknown_method() {
    insta::assert_snapshot!(with_counts(COUNTS, &["--method", "best"]));
}

#[test]
fn a_failed_run_leaves_earlier_classes_alone() {
    let folder = folder_with_counts(COUNTS);
    let out = folder.path().join("classes.json");
    let run = |k: &str| {
        let arguments = ["classes", "--counts", "counts.json", "--out", "classes.json", "--k", k];
        f2(folder.path(), &arguments)
    };
    assert!(run("2").starts_with("exit code: 0"));
    let before = fs::read_to_string(&out).unwrap();
    assert!(run("99").starts_with("exit code: 2"));
    assert_eq!(fs::read_to_string(&out).unwrap(), before);
}

#[test]
fn a_figure_is_drawn_for_all_methods() {
    let folder = folder_with_counts(COUNTS);
    let arguments = ["classes", "--counts", "counts.json", "--plot", "classes.svg"];
    assert!(f2(folder.path(), &arguments).starts_with("exit code: 0"));
    let svg = fs::read_to_string(folder.path().join("classes.svg")).unwrap();
    for name in ["exact", "author", "greedy = equal-frequency", "equal-tokens"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    assert_eq!(svg.matches("class=\"star").count(), 4);
}

#[test]
fn a_corpus_gets_its_classes_with_the_text_of_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (text, out) = (folder.path().join("text.txt"), folder.path().join("corpus"));
    fs::write(&text, "the cat sat on the mat and the dog sat on the log\n\n".repeat(40)).unwrap();
    let inputs = Inputs::PerSplit { train: vec![text], valid: vec![], test: vec![] };
    prepare(&Options::new(inputs, &out), &Silent).unwrap();

    let answer = f2(folder.path(), &["classes", "corpus"]);
    assert!(answer.starts_with("exit code: 0"), "{answer}");
    assert!(answer.contains("first") && answer.contains("\" the\""), "{answer}");
    let selection = ClassSelection::load(&out.join("classes.json")).unwrap();
    let counts = Corpus::open(&out).unwrap().counts().unwrap().counts;
    assert_eq!(*selection.counts_fingerprint(), f2_classes::CountsFingerprint::of(&counts));
    assert_eq!(selection.classes().vocabulary(), counts.len());
}
