//! Only one process at a time writes a run, a corpus or a study.

use std::fs;
use std::io::Write as _;

use crate::support::workshop::{Workshop, newest};
use crate::support::{Folder, Run, interrupt, invented_text, wait_for};

/// Checks the exit code and message of a command that finds the folder in use by `process`.
fn check_refused(refused: &Run, folder: &str, process: u32) {
    let Run { code, stderr, .. } = refused;
    assert_eq!(*code, 2, "{stderr}");
    let words = format!("error: {folder} is in use by process {process} on ");
    assert!(stderr.contains(&words), "{stderr}");
    assert!(stderr.contains("  help: wait for it or choose another folder"), "{stderr}");
}

#[test]
fn a_run_has_one_trainer() {
    let workshop = Workshop::new();
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run"];
    let endless = [&train[..], &["--steps", "1000000"]].concat();
    let child = workshop.0.start(&endless);
    wait_for(|| newest(&workshop.path("run")).is_some());
    let process = child.id();
    check_refused(&workshop.0.f2(&[&train[..], &["--steps", "9"]].concat()), "run", process);
    check_refused(&workshop.0.f2(&["train", "--resume", "run"]), "run", process);
    assert_eq!(interrupt(child).code, 130);
    let events = workshop.0.read("run/events.jsonl");
    assert_eq!(events.matches("\"event\":\"started\"").count(), 1, "{events}");
    assert!(!workshop.path("run/.lock").exists());
}

/// A killed trainer leaves its lock and half a checkpoint; the next one takes the lock over and
/// removes the leftovers.
#[test]
fn the_lock_and_the_leftovers_of_a_killed_trainer_are_no_obstacle() {
    let workshop = Workshop::new();
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "1000000"];
    let mut child = workshop.0.start(&train);
    wait_for(|| newest(&workshop.path("run")).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let lock = workshop.0.read("run/.lock");
    assert!(lock.starts_with(&format!("process {} on ", child.id())), "{lock}");
    let leftovers =
        ["run/.config.toml.7.partial", "run/checkpoints/.step-9.7.partial/model.safetensors"];
    fs::create_dir_all(workshop.path("run/checkpoints/.step-9.7.partial")).unwrap();
    fs::create_dir_all(workshop.path("run/checkpoints/.step-1.7.removed")).unwrap();
    leftovers.iter().for_each(|name| workshop.0.write(name, "half"));
    let step = newest(&workshop.path("run")).unwrap() + 5;
    let steps = step.to_string();
    let resumed =
        workshop.0.f2(&["train", "--resume", "run", "--steps", &steps, "--allow", "budget"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let hidden = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(workshop.path(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect()
    };
    assert_eq!((hidden("run"), hidden("run/checkpoints")), (Vec::new(), Vec::new()));
}

/// The first one waits for text on its standard input.
#[test]
fn a_corpus_is_prepared_by_one_process() {
    let folder = Folder::new();
    folder.write("text.txt", invented_text(60));
    let prepare =
        ["prepare", "-", "--out", "corpus", "--documents", "lines", "--vocab-size", "300"];
    let mut child = folder.start(&prepare);
    wait_for(|| folder.path(".corpus.lock").exists());
    let refused = folder.f2(&["prepare", "text.txt", "--out", "corpus", "--vocab-size", "300"]);
    check_refused(&refused, "corpus", child.id());
    child.stdin.take().unwrap().write_all(invented_text(60).as_bytes()).unwrap();
    let first: Run = child.wait_with_output().unwrap().into();
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(folder.names(), ["corpus", "text.txt"]);
}

#[test]
fn a_study_is_made_by_one_process() {
    let folder = Folder::new();
    folder.write("novel.txt", invented_text(300));
    let demo = ["demo", "--text", "novel.txt", "--out", "study"];
    let child = folder.start(&demo);
    wait_for(|| folder.path("study/.lock").exists());
    let reproduce = ["reproduce", "novel.txt", "--out", "study", "--preset", "demo"];
    for command in [&demo[..], &reproduce] {
        check_refused(&folder.f2(command), "study", child.id());
    }
    assert_eq!(interrupt(child).code, 130);
    assert!(!folder.path("study/.lock").exists());
}
