//! `f2 train` by several ranks, as far as can be tested without GPUs: plans and refusals.

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use f2_ranks::Children;
use support::workshop::Workshop;

/// Exit code and messages of `f2 train` with these flags and variables.
fn train(workshop: &Workshop, flags: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2"));
    command.arg("train").arg(workshop.path("corpus")).arg("--out").arg(workshop.path("run"));
    command.args(["--steps", "1", "--device", "cpu"]).args(flags);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

#[test]
fn a_plan_tells_memory_and_bytes_of_each_gpu() {
    let workshop = Workshop::new();
    let plan = |gpus: &str| {
        let flags = ["train", "corpus", "--config", "small.toml", "--dry-run", "--json", "--gpus"];
        let run = workshop.0.f2(&[&flags[..], &[gpus]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let plan: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        ["ranks", "sent_bytes_per_step", "bytes"].map(|key| plan[key].as_u64().unwrap())
    };
    let [one, two] = ["1", "2"].map(plan);
    assert_eq!((one[0], one[1], two[0]), (1, 0, 2));
    assert!(two[1] > 0);
    let run =
        workshop.0.f2(&["train", "corpus", "--config", "small.toml", "--dry-run", "--gpus", "2"]);
    assert!(run.stdout.contains("sent by each of 2 GPUs in a step"), "{}", run.stdout);
}

#[test]
fn variables_that_contradict_each_other_are_named() {
    let workshop = Workshop::new();
    let (code, said) = train(&workshop, &[], &[("RANK", "1")]);
    assert_eq!(code, 2);
    assert!(said.starts_with("error: RANK is set, and WORLD_SIZE is not\n  help: "), "{said}");
    let (code, said) = train(&workshop, &[], &[("RANK", "2"), ("WORLD_SIZE", "2")]);
    assert_eq!(code, 2);
    assert!(said.contains("RANK is 2, but WORLD_SIZE is 2"), "{said}");
    assert!(!workshop.path("run").exists());
}

#[test]
fn ranks_on_cpus_need_mpirun() {
    let workshop = Workshop::new();
    let variables = [("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")];
    let (code, said) = train(&workshop, &[], &variables);
    assert_eq!(code, 2);
    assert!(said.contains("rank 1: ranks on CPUs exchange their numbers by MPI"), "{said}");
    assert!(said.contains("--features mpi"), "{said}");
}

/// In the shell of an allocation, or in a container with stray variables, a run trains alone.
#[test]
fn stray_variables_leave_a_run_alone() {
    let workshop = Workshop::new();
    let stray = [("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0"), ("WORLD_SIZE", "1")];
    let config = workshop.path("small.toml");
    let (code, said) = train(&workshop, &["--config", config.to_str().unwrap()], &stray);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn gpus_and_a_launcher_are_one_too_many() {
    let workshop = Workshop::new();
    let variables = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")];
    let (code, said) = train(&workshop, &["--gpus", "2"], &variables);
    assert_eq!(code, 2);
    assert!(said.contains("a launcher has started some already"), "{said}");
}

/// The test takes the place of rank 0, which has no GPU here. The child, which trains on a CPU, has
/// no transport for its gradients.
#[test]
fn a_child_leaves_it_to_rank_0_to_report() {
    let workshop = Workshop::new();
    let child = |_| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_f2"));
        command.arg("train").arg(workshop.path("corpus")).arg("--out").arg(workshop.path("run"));
        command.args([
            "--config",
            workshop.path("small.toml").to_str().unwrap(),
            "--device",
            "cpu",
        ]);
        let said = std::fs::File::create(workshop.path("said")).unwrap();
        command.stdout(Stdio::from(said.try_clone().unwrap())).stderr(Stdio::from(said));
        command
    };
    let stuck = |error: &f2_ranks::Error| panic!("{error}");
    let (children, mut control) =
        Children::start(2, Duration::from_secs(60), &child, stuck).unwrap();
    let error = control.barrier().unwrap_err().to_string();
    assert!(error.starts_with("rank 1 failed: "), "{error}");
    assert!(error.ends_with("the hosts have no connection that carries numbers"), "{error}");
    drop((control, children));
    assert_eq!(std::fs::read_to_string(workshop.path("said")).unwrap(), "");
}
