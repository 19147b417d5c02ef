//! Output on a terminal: our own colours if it has any, and no escape sequences from input.
#![cfg(target_os = "linux")]

mod support;

use std::fs;

use support::terminal::{Session, f2_on_terminal, f2_on_wide_terminal, without_commands};
use support::workshop::Workshop;
use support::{Folder, wait_for};

/// Clears the screen, sets the title and turns everything red.
const HOSTILE: &str = "\x1b[2J\x1b]0;mine\x07\u{9b}31m";

/// A folder with texts to score, one of them under a hostile name.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("human.txt", "a b c d e f g h\nb c d e f g h i\n");
    folder.write("model.txt", "a b c d e f g g\nb c d e f f h h\n");
    folder.write(&format!("{HOSTILE}.txt"), "a a a a a a a a\nb b b b b b b b\n");
    folder
}

/// The escape sequences in a text, each up to its final letter.
fn commands(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_ascii_alphabetic() || c == '\x07';
    let rest = text.split('\x1b').skip(1);
    rest.map(|rest| rest.split_inclusive(ends).next().unwrap_or_default()).collect()
}

/// The escape sequences we use: bold, the colours of frequency bands and reset; for progress, a
/// line up or down, and clearing a line.
const OURS: [&str; 8] = ["[1m", "[36m", "[33m", "[1;31m", "[0m", "[1A", "[1B", "[2K"];

fn assert_harmless(shown: &str) {
    assert!(commands(shown).iter().all(|command| OURS.contains(command)), "{:?}", commands(shown));
    // Allowed are line breaks, tabs, and carriage returns before a line is redrawn.
    let left = shown.replace("\r\n", "").replace(['\r', '\t', '\x1b'], "");
    assert!(!left.contains(char::is_control), "{left:?}");
}

#[test]
fn names_cannot_command_a_terminal() {
    let folder = folder();
    let (file, name) = (format!("{HOSTILE}.txt"), format!("\r{HOSTILE}"));
    let score = ["eval", "--hyps", "model.txt", &file, "--refs", "human.txt"];
    for arguments in [
        score.to_vec(),
        [&score[..], &["--names", "model", &name]].concat(),
        [&score[..], &["--csv"]].concat(),
        [&score[..], &["--latex"]].concat(),
        [&score[..], &["--json"]].concat(),
    ] {
        let shown = f2_on_terminal(&folder, &[("TERM", "xterm")], &arguments);
        assert_harmless(&shown);
    }
}

#[test]
fn names_in_errors_and_remarks_cannot_command_a_terminal() {
    let folder = folder();
    folder.write(&format!("{HOSTILE}.jsonl"), "no JSON");
    fs::create_dir(folder.path("results")).unwrap();
    folder.write(&format!("results/{HOSTILE}.json"), "{}");
    let [texts, absent] = [format!("{HOSTILE}.jsonl"), format!("{HOSTILE}.zst")];
    for arguments in [
        vec!["eval", "--hyps", &texts],
        vec!["eval", "--hyps", &absent],
        vec!["report", "results"],
        vec!["report", HOSTILE],
        vec!["import", HOSTILE, "--out", "model"],
        vec!["doctor", HOSTILE],
        vec!["eval", HOSTILE],
        vec!["generate", "--top-k", HOSTILE],
    ] {
        let shown = f2_on_terminal(&folder, &[("TERM", "dumb")], &arguments);
        assert_harmless(&shown);
        assert!(shown.contains("31m"), "{shown:?}");
    }
}

/// The chosen setting is bold, and escape sequences in folder names have no effect.
#[test]
fn what_tune_chooses_is_bold() {
    let workshop = trained();
    let common =
        "tune run --corpus corpus --prefix 6 --continuation 12 --texts 24 --streams 24 --trials 3";
    let tune = |more: &[&str]| {
        let arguments: Vec<&str> = common.split(' ').chain(more.iter().copied()).collect();
        f2_on_terminal(&workshop.0, &[("TERM", "xterm")], &arguments)
    };
    let shown = tune(&["--out", "tuned"]);
    assert_harmless(&shown);
    assert!(commands(&shown).contains(&"[1m") && !shown.contains('␛'), "{shown:?}");
    assert_harmless(&tune(&["--out", HOSTILE]));
    assert_harmless(&tune(&["--out", HOSTILE, "--json"]));
}

/// A folder with a corpus and a run of a few steps.
fn trained() -> Workshop {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--steps", "2", "--objective", "mle", "--out", "run"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    workshop
}

#[test]
fn names_of_models_cannot_command_a_terminal() {
    let workshop = trained();
    fs::rename(workshop.path("run"), workshop.path(HOSTILE)).unwrap();
    for arguments in [
        &["export", HOSTILE, "--out", "exported\u{9b}31m"][..],
        &["export", HOSTILE, "--out", "exported\u{9b}32m", "--json"],
        &["perplexity", HOSTILE, "corpus"],
        &["import", "exported\u{9b}31m", "--out", "imported\u{9b}31m"],
    ] {
        let shown = f2_on_terminal(&workshop.0, &[("TERM", "xterm")], arguments);
        assert!(!shown.contains("error: "), "{shown:?}");
        assert_harmless(&shown);
    }
    let session = Session::start(&workshop.0, &["serve", HOSTILE, "--port", "0", "--threads", "1"]);
    session.wait_until(|shown| shown.contains(" at http://"));
    assert_harmless(&session.raw());
    session.interrupt();
    assert_eq!(session.end().0, 0);
}

#[test]
fn names_of_texts_and_results_cannot_command_a_terminal() {
    let folder = folder();
    let [text, long, part] = ["txt", "long.txt", "parts"].map(|end| format!("{HOSTILE}.{end}"));
    folder.write(&long, support::invented_text(60));
    let score = ["eval", "--hyps", "model.txt", "human.txt", "--refs", "human.txt", "--json"];
    let scored = folder.f2(&[&score[..], &["--names", HOSTILE, "b"]].concat());
    folder.write("scores.json", scored.stdout);
    let prepare = ["prepare", &long, "--documents", "lines", "--vocab-size", "300"];
    let prepare = [&prepare[..], &["--part", "1/1", "--out", &part]].concat();
    for arguments in [
        &["compare", "scores.json"][..],
        &["compare", "scores.json", "--json"],
        &["compare", "scores.json", "--markdown"],
        &["eval", "--pairs", "--hyps", &text, "--refs", "human.txt"],
        &["eval", "--pairs", "--hyps", &text, "--refs", "human.txt", "--json"],
        &prepare,
        &["prepare", "--learn", &part],
        &prepare,
        &["prepare", "--merge", &part, "--out", HOSTILE],
    ] {
        let shown = f2_on_terminal(&folder, &[("TERM", "xterm")], arguments);
        assert!(!shown.contains("error: "), "{arguments:?}: {shown:?}");
        assert_harmless(&shown);
    }
}

/// If the thread that redraws a bar cannot be started, the command runs without it.
#[test]
fn a_bar_needs_no_thread() {
    let folder = folder();
    let none = [("TERM", "xterm"), ("RUST_MIN_STACK", "281474976710656")];
    let score = ["eval", "--hyps", "model.txt", "--refs", "human.txt", "--bootstrap", "100"];
    let shown = f2_on_terminal(&folder, &none, &score);
    assert!(shown.contains("convention: paper") && !shown.contains("panicked"), "{shown}");
}

#[test]
fn prompts_and_generated_text_cannot_command_a_terminal() {
    let folder = Folder::new();
    support::copy_gpt2("tied", &folder.path("gpt2"));
    assert_eq!(folder.f2(&["import", "gpt2", "--out", "model"]).code, 0);
    // The weights are random, and so are the bytes that this model generates.
    let write = ["generate", "model", "--prompt", HOSTILE, "--top-p", "1", "--new-tokens", "20"];
    for arguments in [write.to_vec(), [&write[..], &["-n", "20"]].concat()] {
        assert_harmless(&f2_on_terminal(&folder, &[("TERM", "xterm")], &arguments));
        let piped = folder.f2(&arguments).stdout;
        assert!(piped.starts_with(HOSTILE), "{piped:?}");
    }
}

#[test]
fn what_is_closest_to_human_is_bold_but_not_on_a_dumb_terminal() {
    let folder = folder();
    let score = ["eval", "--hyps", "model.txt", "human.txt", "--refs", "human.txt"];
    let bold =
        |term: &str| commands(&f2_on_terminal(&folder, &[("TERM", term)], &score)).contains(&"[1m");
    assert!(bold("xterm") && !bold("dumb") && !bold(""));
}

#[test]
fn a_dumb_terminal_gets_lines_not_bars() {
    let folder = Folder::new();
    folder.write("text.txt", support::invented_text(60));
    let prepare = |term: &str, out: &str| {
        let arguments = ["prepare", "text.txt", "--vocab-size", "300", "--out", out];
        f2_on_terminal(&folder, &[("TERM", term)], &arguments)
    };
    assert!(!commands(&prepare("xterm", "one")).is_empty());
    assert_eq!(commands(&prepare("dumb", "two")), [""; 0]);
}

#[test]
fn pipes_get_names_as_they_are() {
    let folder = folder();
    let run = folder.f2(&["eval", "--hyps", "model.txt", "--names", HOSTILE, "--csv"]);
    assert!(run.stdout.contains(HOSTILE), "{:?}", run.stdout);
}

/// The width of the widest line shown, counting each redraw of a line.
fn widest(shown: &str) -> usize {
    let text = without_commands(shown);
    text.split(['\n', '\r']).map(|line| line.chars().count()).max().unwrap_or(0)
}

const WIDTHS: [u16; 4] = [40, 60, 80, 200];

#[test]
fn tables_fit_the_terminal() {
    let folder = folder();
    folder.write("text.txt", support::invented_text(60));
    let done = folder.f2(&["prepare", "text.txt", "--vocab-size", "300", "--out", "corpus"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for arguments in [
        vec!["eval", "--hyps", "model.txt", "human.txt", "--refs", "human.txt"],
        vec!["classes", "corpus"],
    ] {
        let mut parts = Vec::new();
        for width in WIDTHS {
            let shown = f2_on_wide_terminal(&folder, width, &[("TERM", "xterm")], &arguments);
            // The rules are as wide as their table.
            let is_rule = |line: &&str| line.starts_with('─');
            let rules = shown.lines().filter(is_rule);
            let widest = rules.map(|line| line.trim_end().chars().count()).max().unwrap();
            assert!(widest <= usize::from(width), "{width}: {widest}\n{shown}");
            parts.push(shown.lines().filter(is_rule).count());
        }
        assert!(parts.is_sorted_by(|narrow, wide| narrow >= wide), "{parts:?}");
    }
}

/// The lines of a bar, one for each time it is drawn.
fn bars(shown: &str) -> String {
    shown.split_inclusive(['\n', '\r']).filter(|line| line.contains('░')).collect()
}

#[test]
fn bars_fit_the_terminal() {
    let workshop = support::workshop::Workshop::new();
    for width in WIDTHS {
        let out = format!("run-{width}");
        let train = ["train", "corpus", "--config", "small.toml", "--steps", "1000000"];
        let arguments = [&train[..], &["--out", &out]].concat();
        let session = Session::start_wide(&workshop.0, width, &arguments);
        wait_for(|| bars(&session.raw()).contains("step "));
        let bars = bars(&session.raw());
        assert!(widest(&bars) <= usize::from(width), "{width}: {}\n{bars:?}", widest(&bars));
        session.interrupt();
        let (code, shown) = session.end();
        assert_eq!(code, 130, "{shown}");
    }
}
