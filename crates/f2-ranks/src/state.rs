//! The state of a process's connections: the first failure, and whether the process is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Error;

/// State shared by all threads of a process's connections.
#[derive(Default)]
pub(crate) struct State {
    failure: Mutex<Option<Error>>,
    over: AtomicBool,
}

impl State {
    /// Records a failure unless there is one already; returns whether it was the first.
    pub(crate) fn record(&self, error: Error) -> bool {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let first = failure.is_none();
        failure.get_or_insert(error);
        first
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn finish(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}
