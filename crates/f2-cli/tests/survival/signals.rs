//! Ctrl-C, `kill` and a closed connection: the work done so far is saved.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Duration;

use crate::support::workshop::{Workshop, newest, tensors};
use crate::support::{Run, signal, wait_for};

/// Starts a run that never ends by itself, and waits for its first checkpoint.
fn endless(workshop: &Workshop) -> Child {
    let arguments =
        ["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "1000000"];
    let child = workshop.0.start(&arguments);
    wait_for(|| newest(&workshop.path("run")).is_some());
    child
}

#[test]
fn a_run_is_saved_on_kill_and_when_the_connection_closes() {
    let workshop = Workshop::new();
    for name in ["TERM", "HUP"] {
        let child = endless(&workshop);
        signal(&child, name);
        let Run { code, stderr, .. } = child.wait_with_output().unwrap().into();
        assert_eq!(code, 130, "{name}: {stderr}");
        let step = newest(&workshop.path("run")).unwrap();
        assert!(stderr.contains(&format!("stopped after step {step}; everything is saved")));
        std::fs::remove_dir_all(workshop.path("run")).unwrap();
    }
}

/// `timeout` signals a process and its group: that is one request.
#[test]
fn two_signals_at_once_are_one_request() {
    let workshop = Workshop::new();
    let child = endless(&workshop);
    signal(&child, "TERM");
    signal(&child, "TERM");
    let Run { code, stderr, .. } = child.wait_with_output().unwrap().into();
    assert_eq!(code, 130);
    assert!(stderr.contains("everything is saved"), "{stderr}");
}

/// While the program waits for input it cannot act on the first signal: only a second one ends it.
#[cfg(target_os = "linux")]
#[test]
fn a_second_signal_ends_at_once() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "run", "--steps", "2"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let mut child = workshop.0.start(&["perplexity", "run", "-"]);
    let input = child.stdin.take();
    let status = format!("/proc/{}/status", child.id());
    let handles_interrupts = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    };
    wait_for(|| handles_interrupts(&std::fs::read_to_string(&status).unwrap()));
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "the first signal ended it");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
}

/// `nohup` sets SIGHUP to be ignored.
#[test]
fn under_nohup_a_closed_connection_is_ignored() {
    let workshop = Workshop::new();
    let child = std::process::Command::new("nohup")
        .arg(env!("CARGO_BIN_EXE_f2"))
        .args(["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "400"])
        .current_dir(workshop.path(""))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(child) = child else { return eprintln!("skipped: there is no `nohup`") };
    wait_for(|| newest(&workshop.path("run")).is_some());
    signal(&child, "HUP");
    let Run { code, stderr, .. } = child.wait_with_output().unwrap().into();
    assert_eq!(code, 0, "{stderr}");
}

/// An interrupted evaluation is repeated on resuming: the run ends as if it had not been stopped.
#[test]
fn a_stop_within_an_evaluation_loses_nothing() {
    let workshop = Workshop::new();
    // Nearly all of the time goes to evaluations.
    let slow = ["--steps", "3", "--set", "evaluation.every_steps=1", "--set", "batch.size=1"];
    let whole = workshop.train(&[&["--out", "whole"], &slow[..]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run"];
    let mut child = workshop.0.start(&[&train[..], &slow].concat());
    let events = workshop.path("run/events.jsonl");
    let logged =
        |event: &str| std::fs::read_to_string(&events).unwrap_or_default().matches(event).count();
    for step in 1..=3 {
        wait_for(|| logged("\"event\":\"step\"") >= step || child.try_wait().unwrap().is_some());
        signal(&child, "INT");
        let Run { code, .. } = child.wait_with_output().unwrap().into();
        child = workshop.0.start(&["train", "--resume", "run"]);
        if code == 0 {
            break;
        }
    }
    assert!(child.wait().unwrap().success());
    let best = |run: &str| {
        let state = workshop.0.read(&format!("{run}/checkpoints/step-3/state.json"));
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        (state["best"].clone(), state["evaluations_since_best"].clone())
    };
    assert_eq!(best("run"), best("whole"));
    assert_eq!(tensors(&workshop.path("run"), 3), tensors(&workshop.path("whole"), 3));
}

/// While hidden states are read, signals are handled; the bootstrap draws afterwards have the
/// default action: a signal ends the process.
#[test]
fn a_signal_ends_the_scoring_after_hidden_states_were_read() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "run", "--steps", "2"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    workshop.0.write("human.txt", "ka lo mi tu re sen\nlo mi tu re sen vor\n");
    // So many texts that the draws would take minutes.
    workshop.0.write("many.txt", workshop.0.read("text.txt").repeat(50));
    let score = ["eval", "--hyps", "many.txt", "--refs", "human.txt", "--metrics", "paper,mauve"];
    let more = ["--embedder", "run", "--bootstrap", "100000"];
    for name in ["INT", "TERM"] {
        let mut child = workshop.0.start(&[&score[..], &more].concat());
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        // By then the hidden states have been read.
        let mut shown = lines.skip_while(|line| !line.starts_with("scoring many.txt: "));
        let line = shown.next().unwrap();
        assert!(line.contains(" of 100000 draws"), "{line}");
        signal(&child, name);
        wait_for(|| child.try_wait().unwrap().is_some());
        let run: Run = child.wait_with_output().unwrap().into();
        assert_eq!(run.code, if name == "INT" { 130 } else { 143 });
        assert_eq!(run.stdout, "");
    }
}
