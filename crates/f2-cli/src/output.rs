//! What the program says: results on standard output, or kept for a verb that runs others, and
//! remarks on standard error.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, Kind, Outcome};

/// What is printed while someone keeps it.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// Whether the reader of standard output has left.
static LEFT: AtomicBool = AtomicBool::new(false);

/// A line on standard error: progress, remarks, failures. Takes what `format!` takes.
macro_rules! remark {
    ($($words:tt)*) => { $crate::output::remark(format_args!($($words)*)) };
}

/// Writes a line to standard error. Where that is lost, a closed pipe or a full disk, so is the
/// line; it is no reason to lose hours of work.
pub(crate) fn remark(words: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_all(format!("{words}\n").as_bytes());
}

/// Whether the reader of standard output has left: nothing more needs to be made for it.
pub(crate) fn reader_left() -> bool {
    LEFT.load(Ordering::SeqCst)
}

/// Whether results may be coloured: on a terminal, unless `NO_COLOR` asks for none.
pub(crate) fn takes_colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Prints a result. A reader who has seen enough and left, like `head`, is no failure.
pub(crate) fn print(text: &str) -> Outcome {
    if let Some(kept) = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut() {
        kept.push_str(text);
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            LEFT.store(true, Ordering::SeqCst);
            Ok(())
        }
        Err(error) => {
            Err(Failure::new(Kind::Device, format!("cannot write to standard output: {error}")))
        }
    }
}

/// Runs something and keeps what it prints.
pub(crate) fn keep(work: impl FnOnce() -> Outcome) -> Result<String, Failure> {
    let swap = |with: Option<String>| {
        std::mem::replace(
            &mut *KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            with,
        )
    };
    swap(Some(String::new()));
    let outcome = work();
    let kept = swap(None).unwrap_or_default();
    outcome.map(|()| kept)
}
