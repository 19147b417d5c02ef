//! Signals that ask for an orderly end: Ctrl-C, SIGTERM (as `kill`, Slurm and `docker stop` send it)
//! and SIGHUP (a closed connection). After the first one a verb saves its work, a second one ends at
//! once.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Kind;

/// When the first signal came, in milliseconds by a clock of the system; 0 before it came.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Signals that come this soon, in milliseconds, after the first are the same request: `timeout`
/// signals the process and its group, a closing terminal the shell and its jobs.
const SAME_REQUEST: u64 = 500;

/// Starts listening. From here on a verb is expected to look at [`asked`] now and then.
pub(crate) fn listen() {
    platform::listen();
}

/// Listens during `work` alone, for a verb that looks at [`asked`] nowhere else: signals have their effect of
/// before afterwards. Where handlers cannot be taken back (Windows) they stay.
pub(crate) fn listen_during<T>(work: impl FnOnce() -> T) -> T {
    platform::listen_during(work)
}

/// Starts listening to Ctrl-C alone, for a verb that waits for keys: other signals end it at once.
pub(crate) fn listen_to_keys() {
    platform::listen_to_keys();
}

/// Lets a request to stop be over: what was running has stopped, and the verb continues.
pub(crate) fn forget() {
    ASKED.store(0, Ordering::SeqCst);
}

/// Whether the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) != 0
}

/// Ends the process without waiting for anything: not for threads, nor for what libraries do at an end.
pub(crate) fn end_now(kind: Kind) -> ! {
    platform::end_now(kind)
}

/// Takes note of a signal that came `now`. Whether it was one too many.
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
            // `nohup` has hang-ups ignored, and means it. Ctrl-C is ignored by every job a script
            // put into the background; those are meant to be stopped all the same.
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
        // SAFETY: the call only writes the current action to a place of the right type, and
        // everything in that is valid as zeros.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        }
    }

    fn handle(signal: c_int) {
        // SAFETY: an action of zeros is valid.
        let mut action = unsafe { MaybeUninit::<sigaction>::zeroed().assume_init() };
        action.sa_sigaction = heard as extern "C" fn(c_int) as sighandler_t;
        action.sa_flags = SA_RESTART;
        set(signal, &action);
    }

    fn set(signal: c_int, action: &sigaction) {
        // SAFETY: the action's handler is the system's or ours, which has the type the flags promise and
        // does only what a handler may. A failure leaves the signal's own action, which ends us.
        unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
    }

    /// May interrupt any code at any place: it touches an atomic number and asks for the time.
    extern "C" fn heard(_: c_int) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes the time to a place of the right type; a handler may call it.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        if is_second(&ASKED, now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000) {
            end_now(Kind::Interrupted);
        }
    }

    pub(super) fn end_now(kind: Kind) -> ! {
        // SAFETY: ends the process without running anything else; a handler may call it.
        unsafe { libc::_exit(kind as c_int) }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::time::Instant;

    use super::{ASKED, Kind, SAME_REQUEST, is_second};

    pub(super) fn listen() {
        let began = Instant::now();
        // Verbs that run others listen once for all of them; the first handler stays.
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
            // SAFETY: writes the current action to a place that all zeros are valid for.
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
