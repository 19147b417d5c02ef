//! The program in general: help, `f2 doctor`, `f2 completions`, and closed pipes.

mod support;

use support::{Folder, f2};

/// Every verb, in the order of the help.
const VERBS: [&str; 17] = [
    "demo",
    "prepare",
    "classes",
    "train",
    "import",
    "export",
    "generate",
    "serve",
    "tune",
    "perplexity",
    "eval",
    "compare",
    "reproduce",
    "report",
    "doctor",
    "bench",
    "completions",
];

#[test]
fn help_shows_the_pipeline_in_order() {
    let help = f2(&["--help"]).stdout;
    let places: Vec<usize> =
        VERBS.iter().map(|verb| help.find(&format!("\n  {verb} ")).expect(verb)).collect();
    assert!(places.is_sorted(), "{help}");
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let verbs = listed.lines().filter(|line| !line.starts_with("   "));
    assert_eq!(verbs.count(), VERBS.len() + 1, "all verbs and `help`: {help}");
}

#[test]
fn every_verb_shows_an_example() {
    for verb in VERBS {
        let help = f2(&[verb, "--help"]).stdout;
        assert!(help.contains(&format!("  f2 {verb}")), "{help}");
    }
}

#[test]
fn doctor_lists_the_capabilities_of_the_machine() {
    let folder = Folder::new();
    let report: serde_json::Value =
        serde_json::from_str(&folder.f2(&["doctor", "--json"]).stdout).unwrap();
    assert!(report["cores"].as_u64().unwrap() >= 1);
    assert!(report["simd"].is_string());
    assert!(report["cuda"]["reason"].is_string() || report["cuda"]["devices"].is_array());
    assert!(folder.f2(&["doctor"]).stdout.contains("CUDA"));
}

#[test]
fn completions_complete_the_verbs() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = f2(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("prepare"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_no_crash() {
    let pipe = "f2 completions bash | head -n 1";
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_f2")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = std::process::Command::new("sh").args(["-c", pipe]).env("PATH", path).output();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
