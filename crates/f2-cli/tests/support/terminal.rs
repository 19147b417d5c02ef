//! The program on a terminal: a pseudo-terminal of the system.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use super::{Folder, signal, wait_for};

/// Both ends of a new pseudo-terminal, ours and the program's. A width of 0 is unknown.
fn open(columns: u16) -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let rows = if columns == 0 { 0 } else { 24 };
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the numbers and the size are valid, and the other two may be null.
    let failed = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, null_mut(), null(), &raw const size)
    };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just opened and belong to nobody else.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// The program with only the given terminal variables, such as `TERM`.
fn command(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_f2"));
    command
        .args(arguments)
        .current_dir(folder.path(""))
        .env_remove("TERM")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied());
    command
}

/// Runs the program in a folder with standard output and error on a terminal, and returns
/// everything shown.
pub fn f2_on_terminal(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    f2_on_wide_terminal(folder, 0, environment, arguments)
}

/// [`f2_on_terminal`] with a width in columns.
pub fn f2_on_wide_terminal(
    folder: &Folder,
    columns: u16,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> String {
    let (mut ours, theirs) = open(columns);
    let mut child = command(folder, environment, arguments)
        .stdin(Stdio::null())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // Once the last writer is gone, reading fails (Linux) or ends (elsewhere).
    let _ = ours.read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}

/// A running program that reads keys from a terminal.
pub struct Session {
    keys: File,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Session {
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_wide(folder, 100, arguments)
    }

    /// [`start`](Self::start) with a width in columns.
    pub fn start_wide(folder: &Folder, columns: u16, arguments: &[&str]) -> Self {
        let (ours, theirs) = open(columns);
        let child = command(folder, &[("TERM", "xterm")], arguments)
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs)
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, sink) = (ours.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut part) {
                sink.lock().unwrap().extend(&part[..count]);
            }
        });
        Self { keys: ours, child, shown }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Everything shown so far, including escape sequences.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// The text shown so far, without escape sequences.
    pub fn shown(&self) -> String {
        without_commands(&self.raw()).replace('\r', "")
    }

    /// Waits until what is shown satisfies a condition.
    pub fn wait_until(&self, condition: impl Fn(&str) -> bool) {
        wait_for(|| condition(&self.shown()));
    }

    /// Sends the signal of Ctrl-C, as a terminal does while the program is not reading keys.
    pub fn interrupt(&self) {
        signal(&self.child, "INT");
    }

    /// Waits for the end, and returns the exit code and the text that was shown.
    pub fn end(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (code, self.shown())
    }
}

/// A text without its escape sequences, each of which ends with a letter.
pub fn without_commands(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    let letter = |c: char| c.is_ascii_alphabetic();
    first + &parts.filter_map(|part| Some(part.split_once(letter)?.1)).collect::<String>()
}
