//! Output that nobody reads: the program continues, or ends quietly if the output was its only
//! result.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::support::workshop::{Workshop, newest};

fn f2(workshop: &Workshop, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2"));
    command.args(arguments).current_dir(workshop.path("")).stdin(Stdio::null());
    command
}

/// The writing end of a pipe whose reading end is closed.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn training_goes_on_where_standard_error_is_lost() {
    let workshop = Workshop::new();
    let full = || File::options().write(true).open("/dev/full").map(Stdio::from);
    for (name, lost) in [("closed", Ok(closed_pipe())), ("full", full())] {
        let Ok(lost) = lost else { continue };
        // Long enough for evaluations, which are reported on standard error.
        let train = ["train", "corpus", "--config", "small.toml", "--out", name, "--steps", "44"];
        let trained = f2(&workshop, &train).stderr(lost).stdout(Stdio::null()).status().unwrap();
        assert_eq!(trained.code(), Some(0), "{name}");
        assert_eq!(newest(&workshop.path(name)), Some(44), "{name}");
    }
}

/// The error cannot be printed, but the exit code still reports it.
#[test]
fn a_failure_keeps_its_exit_code_where_standard_error_is_lost() {
    let workshop = Workshop::new();
    for (arguments, code) in [
        (&["train", "absent", "--out", "run", "--steps", "9"][..], 3),
        (&["train", "corpus", "--out", "run", "--set", "model.layers=0"], 2),
        (&["classes"], 2),
    ] {
        let failed = f2(&workshop, arguments).stderr(closed_pipe()).status().unwrap();
        assert_eq!(failed.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_reader_who_left_ends_the_writing_quietly() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "run", "--steps", "4", "--objective", "mle"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    // Far more texts than could be generated in time.
    let endless = ["generate", "run", "--prompt", "ka", "-n", "1000000", "--new-tokens", "8"];
    let alone = f2(&workshop, &endless).stdout(closed_pipe()).output().unwrap();
    assert_eq!(
        (alone.status.code(), String::from_utf8_lossy(&alone.stderr).as_ref()),
        (Some(0), "")
    );
    // A file given with `--out` is written nevertheless.
    let both = ["generate", "run", "--prompt", "ka", "-n", "3", "--json", "--out", "texts.jsonl"];
    let both = f2(&workshop, &both).stdout(closed_pipe()).status().unwrap();
    assert_eq!(both.code(), Some(0));
    assert_eq!(workshop.0.read("texts.jsonl").lines().count(), 3);
}
