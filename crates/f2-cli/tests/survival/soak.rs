//! Random kills, signals and faults of the disk, repeated and compared with an undisturbed run.
//!
//! A few seconds by default; `F2_SOAK_SECONDS` sets the time, `F2_SOAK_SEED` repeats a run.

use std::fmt::{self, Display, Formatter};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::workshop::{Workshop, tensors};
use crate::support::{Run, signal};

/// A random number generator.
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

/// The disturbance of a command, and its exit code.
pub(crate) struct Ended {
    what: String,
    pub(crate) code: i32,
    /// The exit codes that are allowed after this disturbance.
    expected: Vec<i32>,
}

impl Ended {
    pub(crate) fn is_expected(&self) -> bool {
        self.expected.contains(&self.code)
    }
}

impl Display for Ended {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: exit code {}", self.what, self.code)
    }
}

/// Runs a command undisturbed.
pub(crate) fn leave_alone(workshop: &Workshop, command: &[&str]) -> Ended {
    Ended { what: "nothing".to_owned(), code: workshop.0.f2(command).code, expected: vec![0] }
}

/// Runs a command with a random disturbance.
pub(crate) fn disturb(workshop: &Workshop, command: &[&str], random: &mut Random) -> Ended {
    let (what, moment) = (random.below(6), random.below(250));
    let change = 1 + random.below(90);
    let plan = match what {
        0 => Some(("full", 4)),
        1 => Some(("kill", 137)),
        2 => Some(("fail", 4)),
        _ => None,
    };
    if let Some((kind, code)) = plan {
        let what = format!("{kind}:{change}");
        let run = workshop.0.f2_with(command, &[("F2_FAULT", &what)]);
        return Ended { what, code: run.code, expected: vec![0, code] };
    }
    let child = workshop.0.start(command);
    std::thread::sleep(Duration::from_millis(moment));
    end(child, SIGNALS[random.below(4) as usize], &format!("after {moment} ms"))
}

/// The signals that are sent, and their numbers.
const SIGNALS: [(&str, i32); 4] = [
    ("KILL", libc::SIGKILL),
    ("INT", libc::SIGINT),
    ("TERM", libc::SIGTERM),
    ("HUP", libc::SIGHUP),
];

/// Sends a signal to a process that may have ended, and waits for its end. It may end by itself, by
/// handling the signal, or by that signal and no other.
fn end(mut child: Child, (name, number): (&str, i32), when: &str) -> Ended {
    if child.try_wait().unwrap().is_none() {
        signal(&child, name);
    }
    let run: Run = child.wait_with_output().unwrap().into();
    let heard = (number != libc::SIGKILL).then_some(130);
    let expected = [0, 128 + number].into_iter().chain(heard).collect();
    Ended { what: format!("{name} {when}"), code: run.code, expected }
}

#[test]
fn another_signal_than_the_one_sent_is_noticed() {
    let ended_by = |name: &str, signal: (&str, i32)| {
        let mut process = std::process::Command::new("sh");
        let mut child = process.args(["-c", &format!("kill -s {name} $$")]).spawn().unwrap();
        child.wait().unwrap();
        end(child, signal, "too late")
    };
    for sent in SIGNALS {
        assert!(ended_by(sent.0, sent).is_expected(), "{sent:?}");
        for crash in ["SEGV", "ABRT", "BUS"] {
            let ended = ended_by(crash, sent);
            assert!(!ended.is_expected(), "{sent:?}: {ended}");
        }
    }
}

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
            // After several disturbances the command runs undisturbed.
            let ended = if log.len() > 12 {
                leave_alone(&workshop, &command)
            } else {
                disturb(&workshop, &command, &mut random)
            };
            log.push(ended.to_string());
            assert!(ended.is_expected(), "{log:#?}");
            if ended.code == 0 {
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
        let ended = disturb(&workshop, &command, &mut random);
        log.push(ended.to_string());
        assert!(ended.is_expected(), "{log:#?}");
        let found = workshop.0.read("texts.jsonl");
        assert!(found == expected || (found == "older\n" && ended.code != 0), "{log:#?}\n{found}");
    }
    assert_eq!(workshop.0.f2(&command).code, 0);
    assert!(workshop.0.names().iter().all(|name| !name.starts_with('.')), "{log:#?}");
}

/// A limit on the size of files stands in for a full disk.
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
