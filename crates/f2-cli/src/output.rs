//! Output of the program: results on standard output, remarks on standard error.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use f2_report::{Terminal, printable};
use terminal_size::{Width, terminal_size_of};

use crate::failure::{Failure, Kind, Outcome};

/// Whether the reader of standard output has left.
static LEFT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The name of this thread's work, where other threads do other work at the same time.
    static WORK: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does `work` beside what other threads do: its lines on standard error begin with its name, and nothing
/// is drawn over them.
pub(crate) fn beside<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let before = WORK.replace(Some(name.to_owned()));
    let result = work();
    WORK.set(before);
    result
}

/// A line on standard error: progress, remarks, failures. Takes what `format!` takes.
macro_rules! remark {
    ($($words:tt)*) => { $crate::output::remark(format_args!($($words)*)) };
}

/// Writes a line to standard error. Where that is lost, a closed pipe or a full disk, so is the
/// line; it is no reason to lose hours of work. On a terminal, names in it cannot command that.
pub(crate) fn remark(words: fmt::Arguments<'_>) {
    let words = WORK.with_borrow(|work| match work {
        Some(work) => format!("{words}").lines().map(|line| format!("{work}: {line}\n")).collect(),
        None => format!("{words}\n"),
    });
    let words = if io::stderr().is_terminal() { printable(&words) } else { words.as_str().into() };
    let _ = io::stderr().lock().write_all(words.as_bytes());
}

/// Whether the reader of standard output has left: nothing more needs to be made for it.
pub(crate) fn reader_left() -> bool {
    LEFT.load(Ordering::SeqCst)
}

/// Whether results may be coloured: on a terminal that can, unless `NO_COLOR` asks for none.
pub(crate) fn takes_colour() -> bool {
    let asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && obeys_commands() && !asked_for_none
}

/// The terminal that tables on standard output are printed for.
pub(crate) fn terminal() -> Terminal {
    let width = terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
    Terminal { colour: takes_colour(), width }
}

/// Characters in a line of progress.
pub(crate) fn progress_width() -> usize {
    terminal_size_of(io::stderr()).map_or(80, |(Width(width), _)| usize::from(width))
}

/// Whether progress can be drawn and drawn again on standard error.
pub(crate) fn draws_progress() -> bool {
    io::stderr().is_terminal() && obeys_commands() && WORK.with_borrow(Option::is_none)
}

/// A dumb terminal shows the commands of colours and cursors instead of following them.
fn obeys_commands() -> bool {
    cfg!(windows) || std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Prints a result: exactly into files and pipes, without control characters on a terminal, which
/// would follow them.
pub(crate) fn print(text: &str) -> Outcome {
    if io::stdout().is_terminal() { print_styled(&printable(text)) } else { print_styled(text) }
}

/// Prints a result whose control characters are our own. A reader who has seen enough and left,
/// like `head`, is no failure.
pub(crate) fn print_styled(text: &str) -> Outcome {
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
