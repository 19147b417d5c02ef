//! Faults by plan: a debug build lets one change of the disk fail, so that a test can try them all.
//!
//! The environment variable `F2_FAULT` is the plan: `fail:7` makes the 7th change fail and no
//! other, `full:7` the 7th and all that come after it, as a full disk would, and `kill:7` ends the
//! process at the 7th as `kill -9` would. It is an environment variable because what a test has to
//! try is the program itself, in a process of its own; and it is known to debug builds alone, so
//! that no release can be made to fail.
//!
//! A fault that struck says so on standard error, beginning with `fault:`. A test counts up until
//! a run of the program does not say it: then every change has failed once.

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable with the plan.
pub const PLAN: &str = "F2_FAULT";

/// The plan this process was given.
static GIVEN: LazyLock<Option<FaultPlan>> = LazyLock::new(|| {
    let text = std::env::var(PLAN).ok()?;
    Some(FaultPlan::parse(&text).unwrap_or_else(|| panic!("{PLAN}={text} is no plan of faults")))
});
/// Changes of the disk so far.
static CHANGES: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FaultPlan {
    kind: Kind,
    /// Which change of the disk, from 1.
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fail,
    Full,
    Kill,
}

impl FaultPlan {
    fn parse(text: &str) -> Option<Self> {
        let (kind, number) = text.split_once(':')?;
        let kind = match kind {
            "fail" => Kind::Fail,
            "full" => Kind::Full,
            "kill" => Kind::Kill,
            _ => return None,
        };
        Some(Self { kind, number: number.parse().ok()? })
    }

    fn strikes(self, change: u64) -> bool {
        change == self.number || (self.kind == Kind::Full && change > self.number)
    }
}

/// Fails where the plan says so.
pub(crate) fn may_strike(change: &str, path: &Path) -> io::Result<()> {
    may_strike_after(change, path, || ())
}

/// [`may_strike`] that does some of the work before.
pub(crate) fn may_strike_after(
    change: &str,
    path: &Path,
    some_work: impl FnOnce(),
) -> io::Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let Some(plan) = *GIVEN else { return Ok(()) };
    let number = CHANGES.fetch_add(1, Ordering::SeqCst) + 1;
    if !plan.strikes(number) {
        return Ok(());
    }
    some_work();
    let words = format!("fault: {change} of {}, change {number} of the disk\n", path.display());
    // Standard error may be what is lost.
    let _ = io::Write::write_all(&mut io::stderr(), words.as_bytes());
    match plan.kind {
        Kind::Fail => Err(io::Error::other("a fault by plan")),
        Kind::Full => Err(io::ErrorKind::StorageFull.into()),
        Kind::Kill => std::process::exit(137),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_strikes_once_or_from_there_on() {
        let strikes = |text: &str| -> Vec<bool> {
            let plan = FaultPlan::parse(text).unwrap();
            (1..=4).map(|change| plan.strikes(change)).collect()
        };
        assert_eq!(strikes("fail:2"), [false, true, false, false]);
        assert_eq!(strikes("kill:4"), [false, false, false, true]);
        assert_eq!(strikes("full:3"), [false, false, true, true]);
        assert!(
            ["", "7", "fail", "fail:x", "flood:3"]
                .into_iter()
                .all(|t| FaultPlan::parse(t).is_none())
        );
    }
}
