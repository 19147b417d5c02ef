//! Signals that request an orderly end: Ctrl-C, SIGTERM (sent by `kill`, Slurm and `docker stop`)
//! and SIGHUP (a closed connection). After the first a verb saves its work and ends; a second ends
//! the process at once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Kind;

/// The time of the first signal, in milliseconds of a monotonic clock; 0 if none has come.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Signals within this many milliseconds of the first are the same request: `timeout` signals the
/// process and its group, a closing terminal the shell and its jobs.
const SAME_REQUEST: u64 = 500;

/// Installs the handlers. From here on the verb must poll [`asked`].
pub(crate) fn listen() {
    platform::listen();
}

/// Installs the handlers during `work`, for a verb that polls [`asked`] nowhere else, and restores
/// the former ones. On Windows, where handlers cannot be removed, they stay.
pub(crate) fn listen_during<T>(work: impl FnOnce() -> T) -> T {
    platform::listen_during(work)
}

/// Handles Ctrl-C only, for a verb that reads from a terminal: other signals end it at once.
pub(crate) fn listen_to_keys() {
    platform::listen_to_keys();
}

/// Clears a request to stop, once the current work has stopped and the verb continues.
pub(crate) fn forget() {
    ASKED.store(0, Ordering::SeqCst);
}

/// Whether the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) != 0
}

/// Ends the process at once, without waiting for threads or exit handlers of libraries.
pub(crate) fn end_now(kind: Kind) -> ! {
    platform::end_now(kind)
}

/// Records a signal at the time `now`. Whether it is a second request.
fn is_second(asked: &AtomicU64, now: u64) -> bool {
    match asked.compare_exchange(0, now.max(1), Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => false,
        Err(first) => now.saturating_sub(first) >= SAME_REQUEST,
    }
}

#[cfg(unix)]
mod platform {
    use std::mem::MaybeUninit;

    use libc::{SA_RESTART, SIG_IGN, SIGHUP, SIGINT, SIGTERM, c_int, sigaction, sighandler_t};

    use super::{ASKED, Kind, is_second};

    const SIGNALS: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

    pub(super) fn listen() {
        for signal in SIGNALS {
            // `nohup` ignores hang-ups on purpose. Ctrl-C is ignored in every background job of a
            // script, and such jobs should be stoppable all the same.
            if signal == SIGINT || action_of(signal).sa_sigaction != SIG_IGN {
                handle(signal);
            }
        }
    }

    pub(super) fn listen_during<T>(work: impl FnOnce() -> T) -> T {
        let before = SIGNALS.map(|signal| (signal, action_of(signal)));
        listen();
        let result = work();
        before.iter().for_each(|(signal, action)| set(*signal, action));
        result
    }

    pub(super) fn listen_to_keys() {
        handle(SIGINT);
    }

    fn action_of(signal: c_int) -> sigaction {
        let mut action = MaybeUninit::<sigaction>::zeroed();
        // SAFETY: the call only writes the current action through a pointer of the right type, and
        // an action of zeros is valid.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        }
    }

    fn handle(signal: c_int) {
        // SAFETY: an action of zeros is valid.
        let mut action = unsafe { MaybeUninit::<sigaction>::zeroed().assume_init() };
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as sighandler_t;
        action.sa_flags = SA_RESTART;
        set(signal, &action);
    }

    fn set(signal: c_int, action: &sigaction) {
        // SAFETY: the handler is the system's or `on_signal`, which has the type that the flags
        // promise and is async-signal-safe. On failure the signal keeps its former action.
        unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
    }

    /// May interrupt any code: it only uses an atomic and reads the clock.
    extern "C" fn on_signal(_: c_int) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes the time through a valid pointer; async-signal-safe.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        if is_second(&ASKED, now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000) {
            end_now(Kind::Interrupted);
        }
    }

    pub(super) fn end_now(kind: Kind) -> ! {
        // SAFETY: ends the process without running anything else; async-signal-safe.
        unsafe { libc::_exit(kind as c_int) }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::time::Instant;

    use super::{ASKED, Kind, SAME_REQUEST, is_second};

    pub(super) fn listen() {
        let began = Instant::now();
        // A verb that runs others calls this several times: the first handler stays.
        let _ = ctrlc::set_handler(move || {
            if is_second(&ASKED, began.elapsed().as_millis() as u64 + SAME_REQUEST) {
                end_now(Kind::Interrupted);
            }
        });
    }

    pub(super) fn end_now(kind: Kind) -> ! {
        std::process::exit(kind as i32)
    }

    pub(super) fn listen_during<T>(work: impl FnOnce() -> T) -> T {
        listen();
        work()
    }

    pub(super) fn listen_to_keys() {
        listen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn after_the_work_signals_have_their_effect_of_before() {
        let handles = || {
            // SAFETY: writes the current action through a valid pointer; all zeros are a valid one.
            let handler = unsafe {
                let mut action = std::mem::zeroed::<libc::sigaction>();
                libc::sigaction(libc::SIGTERM, std::ptr::null(), &raw mut action);
                action.sa_sigaction
            };
            handler != libc::SIG_DFL
        };
        assert_eq!((handles(), listen_during(handles), handles()), (false, true, false));
    }

    #[test]
    fn only_a_later_signal_is_a_second_one() {
        let asked = AtomicU64::new(0);
        assert!(!is_second(&asked, 10_000));
        assert!(!is_second(&asked, 10_000 + SAME_REQUEST - 1));
        assert!(is_second(&asked, 10_000 + SAME_REQUEST));
    }
}
