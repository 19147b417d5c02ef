//! Output of the program: results on standard output, messages on standard error.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use f2_report::{Terminal, printable};
use terminal_size::{Width, terminal_size_of};

use crate::failure::{Failure, Kind, Outcome};

/// Whether the reader of standard output has closed it.
static CLOSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The label of this thread's messages, if other threads work at the same time.
    static LABEL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` while other threads run theirs: its lines on standard error begin with `label`, and
/// no progress bar is drawn.
pub(crate) fn labelled<T>(label: &str, work: impl FnOnce() -> T) -> T {
    let before = LABEL.replace(Some(label.to_owned()));
    let result = work();
    LABEL.set(before);
    result
}

/// Writes a line to standard error: progress, notes, failures. Takes the arguments of `format!`.
macro_rules! remark {
    ($($words:tt)*) => { $crate::output::remark(format_args!($($words)*)) };
}

/// Writes a line to standard error. An error, such as a closed pipe or a full disk, is ignored: it
/// is no reason to lose hours of work. On a terminal, control characters are made visible.
pub(crate) fn remark(words: fmt::Arguments<'_>) {
    let words = LABEL.with_borrow(|label| match label {
        Some(label) => {
            format!("{words}").lines().map(|line| format!("{label}: {line}\n")).collect()
        }
        None => format!("{words}\n"),
    });
    let words = if io::stderr().is_terminal() { printable(&words) } else { words.as_str().into() };
    let _ = io::stderr().lock().write_all(words.as_bytes());
}

/// Whether the reader of standard output has closed it: more output is not needed.
pub(crate) fn reader_left() -> bool {
    CLOSED.load(Ordering::SeqCst)
}

/// Whether results may be coloured: on a terminal with colours, unless `NO_COLOR` is set.
pub(crate) fn takes_colour() -> bool {
    let disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && supports_escapes() && !disabled
}

/// The terminal that tables on standard output are printed for.
pub(crate) fn terminal() -> Terminal {
    let width = terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
    Terminal { colour: takes_colour(), width }
}

/// The width of a line of progress, in characters.
pub(crate) fn progress_width() -> usize {
    terminal_size_of(io::stderr()).map_or(80, |(Width(width), _)| usize::from(width))
}

/// Whether standard error can show a live progress bar.
pub(crate) fn draws_progress() -> bool {
    io::stderr().is_terminal() && supports_escapes() && LABEL.with_borrow(Option::is_none)
}

/// A dumb terminal prints escape sequences for colours and cursors instead of obeying them.
fn supports_escapes() -> bool {
    cfg!(windows) || std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Prints a result: unchanged to files and pipes, without control characters on a terminal, which
/// would obey them.
pub(crate) fn print(text: &str) -> Outcome {
    if io::stdout().is_terminal() { print_styled(&printable(text)) } else { print_styled(text) }
}

/// Prints a result whose control characters are the program's own. A reader that closes the pipe
/// early, like `head`, is not an error.
pub(crate) fn print_styled(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::SeqCst);
            Ok(())
        }
        Err(error) => {
            Err(Failure::new(Kind::Device, format!("cannot write to standard output: {error}")))
        }
    }
}
