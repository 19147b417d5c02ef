//! `--gpus`: processes that share one GPU give the bits of one, and all end when one is killed.
//!
//! Needs an NVIDIA GPU and NCCL, or the emulator in `emulator/`; skipped elsewhere.
#![cfg(target_os = "linux")]

mod support;

use std::thread;
use std::time::{Duration, Instant};

use f2_engine::{cuda_is_present, nccl_version};
use support::workshop::{Workshop, newest, tensors};
use support::{Run, children, wait_for};

/// One GPU counts as several.
const SHARED: (&str, &str) = ("F2_SHARE_GPU", "1");

/// A corpus to train on; `None`, with a message, where GPUs cannot exchange gradients.
fn workshop() -> Option<Workshop> {
    if let Err(reason) = cuda_is_present().and_then(|()| nccl_version()) {
        eprintln!("skipped: {reason}");
        return None;
    }
    Some(Workshop::new())
}

/// A small model of the kernels' own head width, four shards for each batch.
const MODEL: [&str; 17] = [
    "train",
    "corpus",
    "--config",
    "small.toml",
    "--objective",
    "f2",
    "--set",
    "model.width=64",
    "--set",
    "model.heads=1",
    "--set",
    "batch.size=4",
    "--set",
    "batch.shards=4",
    "--set",
    "batch.micro=1",
    "--out",
];

fn done(run: Run) -> Run {
    assert_eq!(run.code, 0, "{}", run.stderr);
    run
}

#[test]
fn gpus_give_the_bits_of_one() {
    let Some(workshop) = workshop() else { return };
    for precision in ["f32", "bf16"] {
        let train = |name: &str, more: &[&str], overlap: &str| {
            let steps = ["--steps", "5", "--precision", precision];
            let arguments = [&MODEL[..], &[name], &steps, more].concat();
            done(workshop.0.f2_with(&arguments, &[SHARED, ("F2_EXCHANGE_OVERLAP", overlap)]));
            tensors(&workshop.path(name), 5)
        };
        let named = |name: &str| format!("{name}-{precision}");
        let one = train(&named("one"), &["--device", "cuda:0"], "1");
        for (name, gpus, overlap) in [("two", "2", "1"), ("after", "2", "0"), ("four", "4", "1")] {
            let several = train(&named(name), &["--gpus", gpus], overlap);
            assert!(several == one, "{precision}, {gpus} GPUs, overlap {overlap}");
        }
    }
}

#[test]
fn gpus_write_the_texts_of_one() {
    let Some(workshop) = workshop() else { return };
    done(workshop.0.f2(&[&MODEL[..], &["run", "--steps", "2", "--device", "cuda:0"]].concat()));
    workshop.0.write("prompts.txt", "a\nthe\n".repeat(20));
    let written = |device: &[&str]| {
        let texts = ["generate", "run", "--prompts", "prompts.txt", "--batch", "8"];
        let arguments = [&texts[..], &["--new-tokens", "6", "--top-k", "3"], device].concat();
        done(workshop.0.f2_with(&arguments, &[SHARED])).stdout
    };
    let one = written(&["--device", "cuda:0"]);
    assert!(one.lines().count() >= 40, "{one}");
    assert_eq!(written(&["--gpus", "3"]), one);
}

/// Two models, as small as possible.
const PLAN: &str = r#"
paper = "wikitext103"
documents = "lines"
vocabulary = 300
models = ["mle", "f2"]

[training]
preset = "demo"
steps = 3

[training.settings]
"model.layers" = 1
"model.width" = 16
"model.heads" = 2
"model.feed_forward" = 32
"batch.sequence" = 64
"batch.size" = 2
"schedule.warmup_steps" = 1

[generation]
k = 3
streams = 4
prefix = 8
continuation = 16

[evaluation]
bootstrap = 3
samples = 2
"#;

#[test]
fn a_study_on_several_gpus_gives_the_scores_of_one() {
    let Some(workshop) = workshop() else { return };
    let folder = &workshop.0;
    folder.write("plan.toml", PLAN);
    folder.write("lines.txt", support::invented_text(500));
    let study = |out: &str, device: [&str; 2]| {
        let what = ["reproduce", "lines.txt", "--plan", "plan.toml", "--out", out];
        let run = done(folder.f2_with(&[&what[..], &device].concat(), &[SHARED]));
        (run, folder.read(&format!("{out}/tables/scores.json")))
    };
    let (_, one) = study("one", ["--device", "cuda:0"]);
    let (run, two) = study("two", ["--gpus", "2"]);
    assert!(one.contains("PPL"), "{one}");
    assert_eq!(two, one);
    for stage in ["train-mle", "train-f2"] {
        assert!(run.stderr.contains(&format!("{stage} by cuda:0")), "{}", run.stderr);
    }
}

#[test]
fn a_killed_process_ends_all_and_the_run_goes_on() {
    let Some(workshop) = workshop() else { return };
    let long = ["out", "--steps", "100000", "--gpus", "2"];
    let mut parent = workshop.0.start_with(&[&MODEL[..], &long].concat(), &[SHARED]);
    wait_for(|| newest(&workshop.path("out")) >= Some(4));
    let ranks = children(&parent);
    assert_eq!(ranks.len(), 1, "{ranks:?}");
    // SAFETY: sends a signal to a process that this test started.
    unsafe { libc::kill(ranks[0], libc::SIGKILL) };
    let began = Instant::now();
    while parent.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "rank 0 goes on");
        thread::sleep(Duration::from_millis(50));
    }
    let ended = Run::from(parent.wait_with_output().unwrap());
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 1"), "{}", ended.stderr);
    let reached = newest(&workshop.path("out")).unwrap();
    let steps = (reached + 1).to_string();
    let resumed = ["train", "--resume", "out", "--steps", &steps, "--allow", "budget"];
    done(workshop.0.f2_with(&[&resumed[..], &["--gpus", "4"]].concat(), &[SHARED]));
    assert_eq!(newest(&workshop.path("out")), Some(reached + 1));
}
