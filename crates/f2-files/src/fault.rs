//! Injected faults: in a debug build, any change to the disk can be made to fail, so that tests can
//! try each of them.
//!
//! The environment variable `F2_FAULT` is the plan: `fail:7` makes only the 7th change fail,
//! `full:7` the 7th and all later ones, as a full disk would, and `kill:7` ends the process at the
//! 7th as `kill -9` would. It is an environment variable because tests run the program itself as a
//! subprocess; only debug builds read it, so that no release build can be made to fail.
//!
//! Each fault prints a line beginning with `fault:` to standard error. A test counts up until a
//! run prints none: then every change has failed once.

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable with the plan.
pub const PLAN: &str = "F2_FAULT";

/// The plan of this process.
static GIVEN: LazyLock<Option<FaultPlan>> = LazyLock::new(|| {
    let text = std::env::var(PLAN).ok()?;
    Some(FaultPlan::parse(&text).unwrap_or_else(|| panic!("{PLAN}={text} is not a fault plan")))
});
/// The number of changes to the disk so far.
static CHANGES: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FaultPlan {
    kind: Kind,
    /// The number of the change that fails, from 1.
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

/// Fails if the plan says so.
pub(crate) fn may_strike(change: &str, path: &Path) -> io::Result<()> {
    may_strike_after(change, path, || ())
}

/// [`may_strike`] that does part of the work before it fails.
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
    // Standard error may be closed.
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
