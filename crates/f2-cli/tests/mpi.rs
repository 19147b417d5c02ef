//! Ranks started by `mpirun` on this machine: they give the bits of one process, and all end when
//! one is killed. Needs the feature `mpi`.
#![cfg(feature = "mpi")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::children;
use support::workshop::{Workshop, newest};

const SETTINGS: &[&str] = &[
    "--objective",
    "mle",
    "--device",
    "cpu",
    "--threads",
    "1",
    "--set",
    "model.layers=1",
    "--set",
    "model.width=64",
    "--set",
    "model.feed_forward=64",
    "--set",
    "batch.sequence=16",
    "--set",
    "batch.size=12",
    "--set",
    "batch.shards=4",
];

/// The program run by `mpirun`; `None`, with a message, if `mpirun` is missing.
fn mpirun(ranks: usize) -> Option<Command> {
    let found = Command::new("mpirun").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no mpirun");
        return None;
    }
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--allow-run-as-root", "-n", &ranks.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_f2"));
    Some(command)
}

fn train(command: &mut Command, corpus: &Path, out: &Path, steps: &str) {
    command.arg("train").arg(corpus).arg("--out").arg(out).args(SETTINGS).args(["--steps", steps]);
}

#[test]
fn processes_give_the_bits_of_one() {
    let Some(_) = mpirun(1) else { return };
    let workshop = Workshop::new();
    let run = |mut command: Command, name: &str| {
        let out = workshop.path(name);
        train(&mut command, &workshop.path("corpus"), &out, "8");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = |name: &str| fs::read(out.join("checkpoints/step-8").join(name)).unwrap();
        [file("model.safetensors"), file("optimizer.safetensors")]
    };
    let one = run(Command::new(env!("CARGO_BIN_EXE_f2")), "one");
    for ranks in [2, 3] {
        let several = run(mpirun(ranks).unwrap(), &format!("ranks-{ranks}"));
        assert!(several == one, "{ranks} ranks");
    }
}

fn within_a_minute(mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > Duration::from_secs(60) {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}

#[test]
fn killing_one_ends_all_and_leaves_a_whole_checkpoint() {
    let Some(mut command) = mpirun(3) else { return };
    let workshop = Workshop::new();
    let out = workshop.path("killed");
    train(&mut command, &workshop.path("corpus"), &out, "1000000");
    command.args(["--set", "checkpoint.every_steps=5", "--set", "evaluation.every_steps=0"]);
    let mut mpirun = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(within_a_minute(|| newest(&out) >= Some(10)), "no checkpoint");
    let ranks = children(&mpirun);
    assert_eq!(ranks.len(), 3, "{ranks:?}");
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(ranks[1], libc::SIGKILL) };
    assert!(within_a_minute(|| mpirun.try_wait().unwrap().is_some()), "the others go on");
    let said = String::from_utf8(mpirun.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("rank 1"), "{said}");
    let mut resumed = Command::new(env!("CARGO_BIN_EXE_f2"));
    resumed.args(["train", "--device", "cpu", "--resume"]).arg(&out);
    resumed.args(["--steps", "1", "--allow", "budget"]);
    let output = resumed.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
