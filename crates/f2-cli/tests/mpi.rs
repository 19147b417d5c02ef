//! Ranks started by `mpirun` on this machine: they give the bits of one process, and all end when
//! one is killed. Needs the feature `mpi`.
#![cfg(feature = "mpi")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::workshop::Workshop;

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

/// The processes that `mpirun` started.
fn children(parent: &Child) -> Vec<i32> {
    let tasks = format!("/proc/{}/task", parent.id());
    let lists = fs::read_dir(tasks).into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split(' ').filter_map(|id| id.trim().parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// The step of the latest checkpoint. Earlier ones are removed as training continues, so polling
/// may miss the checkpoint of a given step.
fn latest_checkpoint(run: &Path) -> Option<u64> {
    let names = fs::read_dir(run.join("checkpoints")).ok()?.flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("step-")?.parse().ok()).max()
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
    assert!(within_a_minute(|| latest_checkpoint(&out) >= Some(10)), "no checkpoint");
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
