//! Work on all cores with results in order and bounded memory.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::Result;

/// Runs `work` on every item, on `threads` threads with a state each, and passes the results to
/// `finish` in the order of the items. Returns the states.
///
/// A free thread takes the next item under a lock, so reading needs no thread of its own. A thread
/// that gets too far ahead of the slowest waits, so memory stays bounded. The first error stops
/// all threads, and so does a panic, which makes the caller panic.
pub(crate) fn in_order<I, S: Send, R: Send>(
    threads: usize,
    items: impl Iterator<Item = Result<I>> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) -> Result<R> + Sync,
    finish: impl FnMut(R) -> Result<()> + Send,
) -> Result<Vec<S>> {
    let line = Line {
        items: Mutex::new(items.enumerate()),
        finished: Mutex::new(Finished {
            next: 0,
            waiting: BTreeMap::new(),
            finish,
            failed: None,
            panicked: false,
        }),
        moved: Condvar::new(),
        ahead: 2 * threads,
    };
    let states = std::thread::scope(|scope| {
        let serve = || {
            let _alarm = Alarm(&line);
            let mut state = state();
            while line.turn(&mut state, &work) {}
            state
        };
        // If threads cannot be spawned, fewer share the work; with none, the caller does it.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, serve).ok();
        let threads: Vec<_> = (0..threads.max(1)).filter_map(spawn).collect();
        if threads.is_empty() {
            return vec![serve()];
        }
        threads.into_iter().map(|thread| thread.join().expect("workers do not panic")).collect()
    });
    match line.finished.into_inner().expect("workers do not panic").failed {
        Some(error) => Err(error),
        None => Ok(states),
    }
}

struct Line<T, R, F> {
    items: Mutex<T>,
    finished: Mutex<Finished<R, F>>,
    /// Signalled when `next` advances or something fails.
    moved: Condvar,
    /// How many items beyond the one that is due may be in progress.
    ahead: usize,
}

struct Finished<R, F> {
    /// The item whose result is due.
    next: usize,
    waiting: BTreeMap<usize, R>,
    finish: F,
    failed: Option<crate::Error>,
    panicked: bool,
}

/// Wakes waiting threads when a thread they may be waiting for has panicked.
struct Alarm<'a, T, R, F>(&'a Line<T, R, F>);

impl<T, R, F> Drop for Alarm<'_, T, R, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.finished.lock().unwrap_or_else(PoisonError::into_inner).panicked = true;
            self.0.moved.notify_all();
        }
    }
}

impl<I, R, T, F> Line<T, R, F>
where
    T: Iterator<Item = (usize, Result<I>)>,
    F: FnMut(R) -> Result<()>,
{
    /// Processes one item; false if there is nothing more to do.
    fn turn<S>(&self, state: &mut S, work: &impl Fn(&mut S, I) -> Result<R>) -> bool {
        let drawn = self.items.lock().expect("workers do not panic").next();
        let Some((index, item)) = drawn else { return false };
        if !self.wait_for_room(index) {
            return false;
        }
        let result = item.and_then(|item| work(state, item));
        let mut finished = self.finished.lock().expect("workers do not panic");
        let going_on = finished.take(index, result);
        self.moved.notify_all();
        going_on
    }

    /// Waits until item `index` is not too far ahead; false if something failed meanwhile.
    fn wait_for_room(&self, index: usize) -> bool {
        let mut finished = self.finished.lock().expect("workers do not panic");
        while finished.goes_on() && index > finished.next + self.ahead {
            finished = self.moved.wait(finished).expect("workers do not panic");
        }
        finished.goes_on()
    }
}

impl<R, F: FnMut(R) -> Result<()>> Finished<R, F> {
    /// Takes a result and finishes all that are due; false if something failed.
    fn take(&mut self, index: usize, result: Result<R>) -> bool {
        let outcome = result.and_then(|result| {
            self.waiting.insert(index, result);
            while let Some(due) = self.waiting.remove(&self.next) {
                (self.finish)(due)?;
                self.next += 1;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
        self.goes_on()
    }

    fn goes_on(&self) -> bool {
        self.failed.is_none() && !self.panicked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn results_come_in_order_whoever_is_faster() {
        let mut seen = Vec::new();
        let done = in_order(
            4,
            (0..200_u64).map(Ok),
            || 0_u64,
            |done, item| {
                // Uneven work, so that threads overtake each other.
                std::thread::sleep(std::time::Duration::from_micros(item * 7919 % 300));
                *done += 1;
                Ok(item * 2)
            },
            |result| {
                seen.push(result);
                Ok(())
            },
        );
        assert_eq!(done.unwrap().iter().sum::<u64>(), 200);
        assert!(seen.into_iter().eq((0..200).map(|item| item * 2)));
    }

    #[test]
    #[should_panic(expected = "workers do not panic")]
    fn a_panic_leaves_nobody_waiting() {
        let work = |(): &mut (), item: u64| if item == 5 { panic!("on purpose") } else { Ok(item) };
        let _ = in_order(3, (0..1_000_000).map(Ok), || (), work, |_| Ok(()));
    }

    #[test]
    fn the_first_error_ends_it() {
        let mut finished = 0;
        let outcome = in_order(
            3,
            (0..1_000_000).map(|item| if item == 50 { Err(Error::Interrupted) } else { Ok(item) }),
            || (),
            |(), item| Ok(item),
            |_| {
                finished += 1;
                Ok(())
            },
        );
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert!(finished <= 50, "{finished}");
    }
}
