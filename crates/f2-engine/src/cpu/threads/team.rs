//! A thread pool: the calling thread and its workers share jobs of many small tasks.
//!
//! A training step is hundreds of jobs, most of them shorter than it takes to put a thread to
//! sleep and wake it. So workers spin for a while before they sleep, the caller runs tasks too, and
//! it waits only for workers that have joined the job: one that wakes late finds the job closed and
//! delays no one.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

use crate::Error;

/// Iterations a waiting thread spins before it yields: tens of microseconds.
const SPINS: usize = 2_000;
/// How often a worker yields before it sleeps: about a millisecond in total. A woken thread may be
/// scheduled on the core of another that is running, so no worker should sleep within a step.
const YIELDS: usize = 20;

/// The bit of [`State::status`] that is set while workers may join the job. The bits below count
/// the workers that have joined; those from [`GENERATION_SHIFT`] on are the job's generation.
const OPEN: u64 = 1 << 31;
const GENERATION_SHIFT: u32 = 32;

/// A fixed set of threads, including the caller's.
#[derive(Debug)]
pub(super) struct Team {
    state: Arc<State>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose job the workers run.
    caller: Mutex<()>,
}

struct State {
    /// The job's generation, whether it is open, and how many workers have joined it.
    status: AtomicU64,
    job: UnsafeCell<Job>,
    /// The next task to be taken.
    next: AtomicUsize,
    failure: Mutex<Option<Box<dyn Any + Send>>>,
    asleep: Box<[AtomicBool]>,
    shutdown: AtomicBool,
}

/// The calls `task(0)`, …, `task(tasks - 1)`.
#[derive(Clone, Copy)]
struct Job {
    task: *const (dyn Fn(usize) + Sync),
    tasks: usize,
}

// SAFETY: `job` is written while the job is closed and no worker has joined, and read by workers
// that have joined; the other fields are atomic or locked.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Team {
    /// A team of the caller and `count - 1` workers.
    pub(super) fn new(count: usize) -> Result<Self, Error> {
        let workers = count - 1;
        let state = Arc::new(State {
            status: AtomicU64::new(0),
            job: UnsafeCell::new(Job { task: &|_| (), tasks: 0 }),
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
            asleep: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            shutdown: AtomicBool::new(false),
        });
        let mut team = Self { state, workers: Vec::new(), caller: Mutex::new(()) };
        for index in 0..workers {
            let state = Arc::clone(&team.state);
            let worker = thread::Builder::new()
                .name(format!("f2-engine-{}", index + 1))
                .spawn(move || state.run_worker(index))
                .map_err(|error| Error::Threads { threads: count, reason: error.to_string() })?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    pub(super) fn count(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task(0)`, …, `task(tasks - 1)`, each once, on any thread, in any order. If the workers
    /// are busy with another caller's job, the caller runs all tasks itself.
    pub(super) fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let caller = match self.caller.try_lock() {
            _ if tasks <= 1 || self.workers.is_empty() => None,
            Ok(guard) => Some(guard),
            // A task panicked on a calling thread; its job was closed nevertheless.
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if caller.is_none() {
            return (0..tasks).for_each(task);
        }
        let state = &*self.state;
        // SAFETY: the task outlives this call, and no thread uses it after the job is closed below.
        let task = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task)
        };
        let job = Job { task, tasks };
        // SAFETY: the last job is closed, all workers have left it, and this thread holds the lock.
        unsafe { *state.job.get() = job };
        *state.failure() = None;
        state.next.store(0, Ordering::Relaxed);
        let generation = (state.status.load(Ordering::Relaxed) >> GENERATION_SHIFT) + 1;
        state.status.store(generation << GENERATION_SHIFT | OPEN, Ordering::SeqCst);
        self.wake(tasks - 1);
        let closing = Closing(state);
        // SAFETY: the job is this thread's own.
        unsafe { state.work(job) };
        drop(closing);
        let failure = state.failure().take();
        drop(caller);
        if let Some(failure) = failure {
            resume_unwind(failure);
        }
    }

    /// Wakes up to `most` sleeping workers.
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
        self.state.shutdown.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // Panics of tasks are passed to the caller; workers do not panic otherwise.
            let _ = worker.join();
        }
    }
}

/// Closes the job when the caller has finished or panicked, and waits for workers that have joined.
struct Closing<'a>(&'a State);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.next.store(usize::MAX / 2, Ordering::Relaxed);
        self.0.status.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0;
        while self.0.status.load(Ordering::Acquire) & (OPEN - 1) != 0 {
            pause(&mut spins);
        }
    }
}

/// Spins once; yields every [`SPINS`] calls.
fn pause(spins: &mut usize) {
    *spins += 1;
    if spins.is_multiple_of(SPINS) {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

impl State {
    fn failure(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of a worker thread.
    fn run_worker(&self, index: usize) {
        let mut last = 0;
        while let Some(generation) = self.next_job(index, last) {
            last = generation;
            if !self.join(generation) {
                continue;
            }
            // SAFETY: this thread has joined, so the job does not change until it leaves.
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { self.work(*self.job.get()) }));
            if let Err(failure) = result {
                self.next.store(usize::MAX / 2, Ordering::Relaxed);
                *self.failure() = Some(failure);
            }
            self.status.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Waits for a job after the one of generation `last`; `None` on shutdown.
    fn next_job(&self, index: usize, last: u64) -> Option<u64> {
        let changed = || {
            let generation = self.status.load(Ordering::SeqCst) >> GENERATION_SHIFT;
            generation != last || self.shutdown.load(Ordering::SeqCst)
        };
        let mut spins = 0;
        while !changed() {
            pause(&mut spins);
            if spins > YIELDS * SPINS {
                // Set before the check, so that a caller that opens a job after it sees the flag.
                self.asleep[index].store(true, Ordering::SeqCst);
                if !changed() {
                    thread::park();
                }
                self.asleep[index].store(false, Ordering::SeqCst);
            }
        }
        let generation = self.status.load(Ordering::SeqCst) >> GENERATION_SHIFT;
        (!self.shutdown.load(Ordering::SeqCst)).then_some(generation)
    }

    /// Joins the job of a generation; false if it is already closed.
    fn join(&self, generation: u64) -> bool {
        let open = |status: u64| status >> GENERATION_SHIFT == generation && status & OPEN != 0;
        self.status
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |status| {
                open(status).then_some(status + 1)
            })
            .is_ok()
    }

    /// Takes tasks until none is left.
    ///
    /// # Safety
    /// The job's task must be alive.
    unsafe fn work(&self, job: Job) {
        // SAFETY: guaranteed by the caller.
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
    fn sleeping_workers_are_woken() {
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
    fn jobs_nest_and_several_threads_may_call() {
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
