//! Several devices of one kind that share work: a thread for each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Builder};

use crate::Error;

/// Devices of one kind, each opened by the thread that works with it.
pub struct Devices<'a, D, E = Error> {
    count: usize,
    deals: bool,
    open: &'a (dyn Fn(usize) -> Result<D, E> + Sync),
}

/// The link from the work on one device to that on the others and to the caller.
pub struct Worker<'a, M> {
    /// Parts of the work that no device has taken.
    pub parts: &'a Parts,
    /// Passes a message on to the thread that started the work.
    pub tell: &'a mut dyn FnMut(M),
    /// Whether to stop: because the user asked, or because another device failed.
    pub stop: &'a dyn Fn() -> bool,
}

/// Numbered parts of some work, each taken once, by any device that is free. The result of a part
/// must not depend on the device.
#[derive(Debug)]
pub struct Parts {
    count: usize,
    taken: AtomicUsize,
}

impl Parts {
    /// `count` parts, none of them taken.
    pub fn new(count: usize) -> Self {
        Self { count, taken: AtomicUsize::new(0) }
    }

    /// The next part that no device has taken.
    pub fn next(&self) -> Option<usize> {
        let part = self.taken.fetch_add(1, Ordering::Relaxed);
        (part < self.count).then_some(part)
    }
}

impl<'a, D, E: From<Error> + Send> Devices<'a, D, E> {
    /// `count` devices, to which work is dealt out in whole batches; `open` opens one by its
    /// number, from 0. Their results do not depend on how many there are.
    pub fn new(count: usize, open: &'a (dyn Fn(usize) -> Result<D, E> + Sync)) -> Self {
        Self { count: count.max(1), deals: true, open }
    }

    /// One device, which may do its work without dividing it into batches.
    pub fn one(open: &'a (dyn Fn(usize) -> Result<D, E> + Sync)) -> Self {
        Self { count: 1, deals: false, open }
    }

    /// Opens the first of them.
    pub(crate) fn open_first(&self) -> Result<D, E> {
        (self.open)(0)
    }

    /// Whether work is dealt out in batches.
    pub(crate) fn deals(&self) -> bool {
        self.deals
    }

    /// Runs `work` on every device and gathers the results in the order of the devices. Messages
    /// reach `observer` on the calling thread, which also does the work of a single device.
    /// When a device fails the others stop, and the failure is returned.
    pub fn share<M: Send, T: Send>(
        &self,
        parts: &Parts,
        work: &(impl Fn(D, Worker<'_, M>) -> Result<T, E> + Sync),
        observer: &mut dyn FnMut(M),
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<T>, E> {
        if self.count == 1 {
            let worker = Worker { parts, tell: observer, stop: &|| stop() };
            return Ok(vec![work((self.open)(0)?, worker)?]);
        }
        let failed = AtomicBool::new(false);
        let stop = || failed.load(Ordering::Relaxed) || stop();
        let run = |number: usize, messages: &Sender<M>| {
            // Sending fails only if the calling thread panicked.
            let tell = &mut |message| drop(messages.send(message));
            let worker = Worker { parts, tell, stop: &stop };
            let result = (self.open)(number).and_then(|device| work(device, worker));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            result
        };
        thread::scope(|scope| {
            let (sender, messages) = channel();
            let run = &run;
            let threads: Vec<_> = (0..self.count)
                .map(|number| {
                    let sender = sender.clone();
                    let started = Builder::new().spawn_scoped(scope, move || run(number, &sender));
                    started.inspect_err(|_| failed.store(true, Ordering::Relaxed))
                })
                .collect();
            drop(sender);
            messages.into_iter().for_each(&mut *observer);
            let results = threads.into_iter().map(|thread| match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Error::without_threads(self.count, &error).into()),
            });
            results.collect::<Vec<_>>().into_iter().collect()
        })
    }
}

impl<D, E> std::fmt::Debug for Devices<'_, D, E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Devices({})", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once_by_some_device() {
        for count in 1..=4 {
            let devices: Devices<'_, usize> = Devices::new(count, &Ok);
            let work = |_: usize, worker: Worker<'_, usize>| {
                let mut done = Vec::new();
                while let Some(part) = worker.parts.next() {
                    (worker.tell)(part);
                    done.push(part);
                }
                Ok(done)
            };
            let mut told = Vec::new();
            let results = devices
                .share(&Parts::new(50), &work, &mut |part| told.push(part), &|| false)
                .unwrap();
            let mut done = results.concat();
            done.sort_unstable();
            told.sort_unstable();
            assert_eq!(results.len(), count);
            assert!(done.iter().copied().eq(0..50) && told == done);
        }
    }

    /// Runs itself again in a process that cannot start any thread: no address space has room for
    /// such a stack.
    #[test]
    fn threads_that_cannot_be_had_are_an_error() {
        const STACK: [&str; 2] = ["RUST_MIN_STACK", "281474976710656"];
        if std::env::var(STACK[0]).as_deref() != Ok(STACK[1]) {
            let name = "devices::tests::threads_that_cannot_be_had_are_an_error";
            let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
            let output = tests.args(["--exact", name]).env(STACK[0], STACK[1]).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let devices: Devices<'_, usize> = Devices::new(3, &Ok);
        let work = |_: usize, _: Worker<'_, ()>| Ok(());
        let error = devices.share(&Parts::new(0), &work, &mut |()| {}, &|| false).unwrap_err();
        assert!(error.to_string().starts_with("cannot start 3 threads: "), "{error}");
    }

    /// The others wait only for the request to stop.
    #[test]
    fn when_a_device_fails_the_others_stop() {
        let open = |number: usize| match number {
            1 => Err(Error::TooFewTokens { tokens: 1 }),
            number => Ok(number),
        };
        let devices: Devices<'_, usize> = Devices::new(3, &open);
        let work = |_: usize, worker: Worker<'_, ()>| {
            while !(worker.stop)() {
                thread::yield_now();
            }
            Ok(())
        };
        let result = devices.share(&Parts::new(0), &work, &mut |()| {}, &|| false);
        assert!(matches!(result, Err(Error::TooFewTokens { .. })));
    }
}
