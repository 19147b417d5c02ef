//! The program on a terminal: a pseudo-terminal of the system's, read to its end.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

use super::Folder;

/// Both ends of a new pseudo-terminal: ours and the program's.
fn open() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let (no_name, no_settings, no_size) = (null_mut(), null(), null());
    // SAFETY: the first two are valid, and the other three may be null.
    let failed =
        unsafe { libc::openpty(&raw mut ours, &raw mut theirs, no_name, no_settings, no_size) };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just opened and belong to nobody else.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Runs the program in a folder with standard output and error on a terminal, which is described by
/// `TERM` and the like, and returns all it showed.
pub fn f2_on_terminal(folder: &Folder, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let (mut ours, theirs) = open();
    let mut child = Command::new(env!("CARGO_BIN_EXE_f2"))
        .args(arguments)
        .current_dir(folder.path(""))
        .env_remove("TERM")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
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
