//! The caller and its workers, who share jobs of many small tasks.
//!
//! A step of training is hundreds of jobs, most of them shorter than it takes to put a thread to
//! sleep and wake it. So workers look out for the next job for a while before they sleep, the
//! caller works too, and it waits only for workers that have joined: one that wakes late finds the
//! job closed and is not missed.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use crate::Error;

/// Looks a waiting thread takes before it lets others run: tens of microseconds.
const LOOKS: usize = 2_000;
/// How often a worker does so before it sleeps: a millisecond in all. Whoever wakes a thread may get
/// it on the wrong core, beside another that works; within a step nobody should sleep.
const TURNS: usize = 20;

/// Set while workers may join the job; below it, their number; above it, the job's.
const OPEN: u64 = 1 << 31;
const NUMBER_SHIFT: u32 = 32;

/// A fixed set of threads, the caller's among them.
#[derive(Debug)]
pub(super) struct Team {
    state: Arc<State>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose job it is.
    turn: Mutex<()>,
}

struct State {
    /// The job's number, whether it is open and how many workers are at it.
    desk: AtomicU64,
    job: UnsafeCell<Job>,
    /// The first task nobody has taken.
    next: AtomicUsize,
    failure: Mutex<Option<Box<dyn Any + Send>>>,
    asleep: Box<[AtomicBool]>,
    dismissed: AtomicBool,
}

/// `task(0)`, …, `task(tasks - 1)`.
#[derive(Clone, Copy)]
struct Job {
    task: *const (dyn Fn(usize) + Sync),
    tasks: usize,
}

// SAFETY: `job` is written while the desk is closed and nobody is at it, and read by those who
// joined; all else is atomic or locked.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("desk", &self.desk).finish_non_exhaustive()
    }
}

impl Team {
    /// The caller and `count - 1` workers.
    pub(super) fn new(count: usize) -> Result<Self, Error> {
        let workers = count - 1;
        let state = Arc::new(State {
            desk: AtomicU64::new(0),
            job: UnsafeCell::new(Job { task: &|_| (), tasks: 0 }),
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
            asleep: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            dismissed: AtomicBool::new(false),
        });
        let mut team = Self { state, workers: Vec::new(), turn: Mutex::new(()) };
        for index in 0..workers {
            let state = Arc::clone(&team.state);
            let worker = thread::Builder::new()
                .name(format!("f2-engine-{}", index + 1))
                .spawn(move || state.serve(index))
                .map_err(|error| Error::Threads { threads: count, reason: error.to_string() })?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    pub(super) fn count(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task(0)`, …, `task(tasks - 1)`, each once, on any thread, in any order. A caller that
    /// finds the workers busy with another's job does it all itself.
    pub(super) fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let turn = match self.turn.try_lock() {
            _ if tasks <= 1 || self.workers.is_empty() => None,
            Ok(turn) => Some(turn),
            // A task of the caller's panicked once; the job was closed all the same.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if turn.is_none() {
            return (0..tasks).for_each(task);
        }
        let state = &*self.state;
        // SAFETY: the task outlives this call, and nobody reads it after the job is closed below.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        let job = Job { task, tasks };
        // SAFETY: the last job is closed and everybody has left it; this thread has the turn.
        unsafe { *state.job.get() = job };
        *state.failure() = None;
        state.next.store(0, Ordering::Relaxed);
        let number = (state.desk.load(Ordering::Relaxed) >> NUMBER_SHIFT) + 1;
        state.desk.store(number << NUMBER_SHIFT | OPEN, Ordering::SeqCst);
        self.wake(tasks - 1);
        let closing = Closing(state);
        // SAFETY: the job is this thread's own.
        unsafe { state.work(job) };
        drop(closing);
        let failure = state.failure().take();
        drop(turn);
        if let Some(failure) = failure {
            resume_unwind(failure);
        }
    }

    /// Wakes up to `most` workers that sleep.
    fn wake(&self, most: usize) {
        let asleep = self.workers.iter().zip(&self.state.asleep);
        for (worker, _) in asleep.filter(|(_, flag)| flag.swap(false, Ordering::SeqCst)).take(most)
        {
            worker.thread().unpark();
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.state.dismissed.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker's panics were handed to the caller; it has none of its own.
            let _ = worker.join();
        }
    }
}

/// Closes the job when the caller is done, even by a panic, and waits for those who are at it.
struct Closing<'a>(&'a State);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.next.store(usize::MAX / 2, Ordering::Relaxed);
        self.0.desk.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0;
        while self.0.desk.load(Ordering::Acquire) & (OPEN - 1) != 0 {
            pause(&mut looks);
        }
    }
}

/// Waits a moment; every so often, lets others run.
fn pause(looks: &mut usize) {
    *looks += 1;
    if looks.is_multiple_of(LOOKS) {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

impl State {
    fn failure(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker's life.
    fn serve(&self, index: usize) {
        let mut last = 0;
        while let Some(number) = self.next_job(index, last) {
            last = number;
            if !self.join(number) {
                continue;
            }
            // SAFETY: joined, so the job stays as it is until this thread leaves.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { self.work(*self.job.get()) }));
            if let Err(failure) = result {
                self.next.store(usize::MAX / 2, Ordering::Relaxed);
                *self.failure() = Some(failure);
            }
            self.desk.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits for a job other than the last one; `None` when the team is dismissed.
    fn next_job(&self, index: usize, last: u64) -> Option<u64> {
        let news = || {
            let number = self.desk.load(Ordering::SeqCst) >> NUMBER_SHIFT;
            number != last || self.dismissed.load(Ordering::SeqCst)
        };
        let mut looks = 0;
        while !news() {
            pause(&mut looks);
            if looks > TURNS * LOOKS {
                // Said before the last look, so that a job opened after it finds the flag.
                self.asleep[index].store(true, Ordering::SeqCst);
                if !news() {
                    thread::park();
                }
                self.asleep[index].store(false, Ordering::SeqCst);
            }
        }
        let number = self.desk.load(Ordering::SeqCst) >> NUMBER_SHIFT;
        (!self.dismissed.load(Ordering::SeqCst)).then_some(number)
    }

    /// Whether the job was still open.
    fn join(&self, number: u64) -> bool {
        let open = |desk: u64| desk >> NUMBER_SHIFT == number && desk & OPEN != 0;
        self.desk
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |desk| {
                open(desk).then_some(desk + 1)
            })
            .is_ok()
    }

    /// Takes tasks until none is left.
    ///
    /// # Safety
    /// The job's task must be alive.
    unsafe fn work(&self, job: Job) {
        // SAFETY: as the caller vouches.
        let task = unsafe { &*job.task };
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= job.tasks {
                break;
            }
            task(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        let team = Team::new(3).unwrap();
        for tasks in (0..50).chain([1000]) {
            let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            team.run(tasks, &|task| {
                runs[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1), "{tasks}");
        }
    }

    #[test]
    fn workers_who_slept_are_woken() {
        let team = Team::new(2).unwrap();
        while !team.state.asleep[0].load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // Each task waits for the other: one thread alone would never finish.
        let barrier = std::sync::Barrier::new(2);
        team.run(2, &|_| {
            barrier.wait();
        });
    }

    #[test]
    fn a_task_may_ask_for_more_and_others_may_call() {
        let team = Team::new(2).unwrap();
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        team.run(4, &|_| {
                            team.run(3, &|task| {
                                total.fetch_add(task, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 2 * 100 * 4 * 3);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_team_usable() {
        let team = Team::new(3).unwrap();
        for bad in [0, 63] {
            let result = catch_unwind(AssertUnwindSafe(|| {
                team.run(64, &|task| {
                    thread::sleep(std::time::Duration::from_micros(50));
                    assert!(task != bad, "task {bad}");
                });
            }));
            let message = result.unwrap_err();
            assert_eq!(message.downcast_ref::<String>().unwrap(), &format!("task {bad}"));
        }
        let total = AtomicUsize::new(0);
        team.run(10, &|task| {
            total.fetch_add(task, Ordering::Relaxed);
        });
        assert_eq!(total.into_inner(), 45);
    }
}
