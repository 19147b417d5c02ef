//! Long calls that Ctrl-C interrupts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::{PyResult, Python};

/// How often to check whether Ctrl-C was pressed.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

/// Whether the call was interrupted.
#[derive(Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Ends the work by unwinding if nothing waits for its result any more.
    pub(crate) fn check(&self) {
        if self.0.load(Ordering::Relaxed) {
            resume_unwind(Box::new("cancelled"));
        }
    }
}

/// Runs `work` on another thread without the interpreter, while this thread checks for signals.
///
/// After Ctrl-C the call returns at once. The work continues until it next checks [`Cancelled`], or
/// to its end if it never does; its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Cancelled) -> T + Send + 'static,
) -> PyResult<T> {
    let cancelled = Cancelled::default();
    let (sender, mut receiver) = channel();
    let theirs = cancelled.clone();
    let spawned = thread::Builder::new().name("f2-softmax".to_owned()).spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&theirs)));
        // After an interrupt the receiver is gone.
        let _ = sender.send(result);
    });
    spawned.map_err(|error| PyMemoryError::new_err(format!("cannot start a thread: {error}")))?;
    loop {
        let (received, again) = py.detach(move || {
            let received = receiver.recv_timeout(BETWEEN_SIGNALS);
            (received, receiver)
        });
        receiver = again;
        match received {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => return Err(PyRuntimeError::new_err(message(&*panic))),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work ended without a result"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancelled.0.store(true, Ordering::Relaxed);
                    return Err(interrupt);
                }
            }
        }
    }
}

/// The message for a panic, which is a defect of this package.
fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("defect in f2-softmax, please report it: {}", said.unwrap_or("no message"))
}
