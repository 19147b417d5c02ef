//! Running the program in a temporary folder.

// Each test file uses only a part of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod browser;
pub mod faults;
pub mod hub;
pub mod printed;
pub mod server;
#[cfg(target_os = "linux")]
pub mod terminal;
pub mod transcript;
pub mod workshop;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// The output of a run of the program.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Exit code and both outputs, for a snapshot.
    pub fn shown(&self) -> String {
        format!("exit code: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: code_of(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// An exit code, or, as in a shell, 128 plus the number of the signal that ended the process.
fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(-1)
}

/// Runs the program in the current folder.
pub fn f2(arguments: &[&str]) -> Run {
    run(Path::new("."), arguments, "")
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    start_with(folder, arguments, &[])
}

/// Background jobs of a script ignore Ctrl-C, and `nohup` a closed connection; their children, such
/// as these tests perhaps and the programs they start, inherit that.
#[cfg(unix)]
fn hear_signals() {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: no handler of this process is replaced.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn start_with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Child {
    #[cfg(unix)]
    hear_signals();
    Command::new(env!("CARGO_BIN_EXE_f2"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("F2_THREADS")
        // No test contacts the real hub or reads the user's own cache.
        .env("HF_HOME", "huggingface")
        .env("HF_HUB_OFFLINE", "1")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn run(folder: &Path, arguments: &[&str], input: &str) -> Run {
    let mut child = start(folder, arguments);
    // A program that does not read its input may have closed it already.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// Polls a condition until it holds, for at most ten minutes.
pub fn wait_for(mut happened: impl FnMut() -> bool) {
    for _ in 0..120_000 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing happened for ten minutes");
}

/// Sends the signal of Ctrl-C and waits for the end.
pub fn interrupt(child: Child) -> Run {
    signal(&child, "INT");
    child.wait_with_output().unwrap().into()
}

/// The processes that a process started.
pub fn children(parent: &Child) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{}/task", parent.id())).unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// Sends a signal.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A folder to run the program in, so that paths in its output are always the same.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn f2(&self, arguments: &[&str]) -> Run {
        run(self.0.path(), arguments, "")
    }

    pub fn f2_with_input(&self, arguments: &[&str], input: &str) -> Run {
        run(self.0.path(), arguments, input)
    }

    /// [`f2`](Self::f2) with some environment variables set.
    pub fn f2_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        start_with(self.0.path(), arguments, environment).wait_with_output().unwrap().into()
    }

    /// Starts a command without waiting for it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        start(self.0.path(), arguments)
    }

    /// [`start`](Self::start) with some environment variables set.
    pub fn start_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Child {
        start_with(self.0.path(), arguments, environment)
    }

    /// Names of all files and folders in it, including hidden ones, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Documents of invented words that follow Zipf's law, for a model to learn from.
pub fn invented_text(documents: usize) -> String {
    let mut state = 1_u64;
    let mut draw = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut word = move || {
        let rank = (400_f64.powf(draw())) as usize;
        ["ka", "lo", "mi", "tu", "re", "sen", "vor"][rank % 7].repeat(1 + rank / 60)
            + ["", "n", "s", "th", "ri"][rank / 7 % 5]
    };
    let mut line = move || (0..12).map(|_| word()).collect::<Vec<_>>().join(" ");
    let document = |_| (0..4).map(|_| line() + ".\n").collect::<String>();
    (0..documents).map(document).collect::<Vec<_>>().join("\n")
}

/// Settings of a run that takes a second, with sequences of `sequence` tokens.
pub fn small_settings(sequence: usize) -> String {
    format!(
        "\
[model]
layers = 2
width = 24
heads = 2
feed_forward = 40
[batch]
sequence = {sequence}
size = 4
[optimiser]
learning_rate = 1e-2
[schedule]
warmup_steps = 5
[evaluation]
every_steps = 20
"
    )
}

/// Copies a folder written by `transformers`: a GPT-2 of a few thousand weights.
pub fn copy_gpt2(name: &str, to: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2-lm/tests/fixtures/gpt2");
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(fixtures.join(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
