//! Kills, signals and full disks at random, again and again, against an undisturbed run.
//!
//! A few seconds by default; `F2_SOAK_SECONDS` makes it longer and `F2_SOAK_SEED` repeats one.

use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::workshop::{Workshop, tensors};
use crate::support::{Run, signal};

/// Numbers at random, the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn new() -> Self {
        let given = std::env::var("F2_SOAK_SEED").ok().map(|seed| seed.parse().unwrap());
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        Self(given.unwrap_or_else(clock))
    }

    /// One of `0..below`.
    fn below(&mut self, below: u64) -> u64 {
        let Self(state) = self;
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }
}

pub(crate) fn seconds() -> Duration {
    let given = std::env::var("F2_SOAK_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    Duration::from_secs(given.unwrap_or(5))
}

/// Disturbs a command: returns its exit code, and what was done to it.
pub(crate) fn disturb(workshop: &Workshop, command: &[&str], random: &mut Random) -> (i32, String) {
    let (what, moment) = (random.below(6), random.below(250));
    let change = 1 + random.below(90);
    let plan = match what {
        0 => Some(format!("full:{change}")),
        1 => Some(format!("kill:{change}")),
        2 => Some(format!("fail:{change}")),
        _ => None,
    };
    if let Some(plan) = plan {
        return (workshop.0.f2_with(command, &[("F2_FAULT", &plan)]).code, plan);
    }
    let child = workshop.0.start(command);
    std::thread::sleep(Duration::from_millis(moment));
    let name = ["KILL", "INT", "TERM", "HUP"][random.below(4) as usize];
    (end(child, name), format!("{name} after {moment} ms"))
}

/// Sends a signal to a process that may have ended, and waits for its end.
fn end(mut child: Child, name: &str) -> i32 {
    if child.try_wait().unwrap().is_none() {
        signal(&child, name);
    }
    let run: Run = child.wait_with_output().unwrap().into();
    run.code
}

/// Every exit code that a disturbance can have; -1 stands for a signal that could not be heard.
pub(crate) const EXPECTED: [i32; 5] = [0, 4, 130, 137, -1];

#[test]
fn training_ends_in_the_same_bytes_whatever_happens() {
    let workshop = Workshop::new();
    let small = ["--threads", "1", "--steps", "40", "--set", "evaluation.every_steps=7"];
    let whole = workshop.train(&[&["--out", "whole"], &small[..]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let state = |run: &str| -> [serde_json::Value; 3] {
        let state = workshop.0.read(&format!("{run}/checkpoints/step-40/state.json"));
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        ["best", "evaluations_since_best", "tokens"].map(|key| state[key].clone())
    };
    let begin =
        [&["train", "corpus", "--config", "small.toml", "--out", "run"], &small[..]].concat();
    let mut random = Random::new();
    let mut log = vec![format!("seed {}", random.0)];
    let began = Instant::now();
    let mut rounds = 0;
    while rounds == 0 || began.elapsed() < seconds() {
        rounds += 1;
        log.truncate(1);
        loop {
            let begun = workshop.path("run/config.toml").exists();
            let command = if begun { vec!["train", "--resume", "run"] } else { begin.clone() };
            // The last of some disturbances is none.
            let (code, what) = if log.len() > 12 {
                (workshop.0.f2(&command).code, "nothing".to_owned())
            } else {
                disturb(&workshop, &command, &mut random)
            };
            log.push(format!("{what}: exit code {code}"));
            assert!(EXPECTED.contains(&code), "{log:#?}");
            if code == 0 {
                break;
            }
        }
        assert!(
            tensors(&workshop.path("run"), 40) == tensors(&workshop.path("whole"), 40),
            "{log:#?}"
        );
        assert_eq!(state("run"), state("whole"), "{log:#?}");
        std::fs::remove_dir_all(workshop.path("run")).unwrap();
    }
}

#[test]
fn texts_are_all_there_or_the_older_ones_are() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "run", "--steps", "4", "--objective", "mle"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let command = ["generate", "run", "--prompt", "ka", "-n", "400", "--out", "texts.jsonl"];
    assert_eq!(workshop.0.f2(&command).code, 0);
    let expected = workshop.0.read("texts.jsonl");
    let mut random = Random::new();
    let mut log = vec![format!("seed {}", random.0)];
    let began = Instant::now();
    while log.len() < 3 || began.elapsed() < seconds() {
        workshop.0.write("texts.jsonl", "older\n");
        let (code, what) = disturb(&workshop, &command, &mut random);
        log.push(format!("{what}: exit code {code}"));
        assert!(EXPECTED.contains(&code), "{log:#?}");
        let found = workshop.0.read("texts.jsonl");
        assert!(found == expected || (found == "older\n" && code != 0), "{log:#?}\n{found}");
    }
    assert_eq!(workshop.0.f2(&command).code, 0);
    assert!(workshop.0.names().iter().all(|name| !name.starts_with('.')), "{log:#?}");
}

/// A file system that holds no more than so many bytes a file, as if the disk were full.
#[test]
fn a_file_size_limit_is_reported_and_nothing_is_lost() {
    let workshop = Workshop::new();
    let steps = ["--threads", "1", "--steps", "9", "--objective", "mle"];
    let whole = workshop.train(&[&["--out", "whole"], &steps[..]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_f2")])
        .args(["train", "corpus", "--config", "small.toml", "--out", "run"])
        .args(steps)
        .current_dir(workshop.path(""))
        .output()
        .unwrap();
    let limited = Run::from(limited);
    assert_eq!(limited.code, 4, "{}", limited.stderr);
    assert!(limited.stderr.contains("step 4 was not saved: cannot write"), "{}", limited.stderr);
    let resumed = workshop.0.f2(&["train", "--resume", "run"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(tensors(&workshop.path("run"), 9) == tensors(&workshop.path("whole"), 9));
}
