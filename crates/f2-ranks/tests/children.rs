//! Ranks that rank 0 starts itself: the children are this program again, controlled by a variable.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use f2_ranks::{Children, Control, Error, Launch, Launcher, Place, rendezvous};

/// The variable that sets what a child does.
const DEED: &str = "F2_TEST_DEED";
const LIMIT: Duration = Duration::from_secs(60);

fn never(error: &Error) {
    panic!("a rank did not end by itself: {error}");
}

/// Starts three ranks; rank 2 does `deed`, the others behave normally.
fn three(deed: &str) -> Result<(Children, Control), Error> {
    let command = |rank| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "being_a_child"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.env(DEED, if rank == 2 { deed } else { "" });
        command
    };
    Children::start(3, LIMIT, &command, never)
}

/// The code of a child; does nothing when run as a test.
#[test]
fn being_a_child() {
    let Ok(deed) = std::env::var(DEED) else { return };
    let launch = Launch::from_environment().unwrap().unwrap();
    assert_eq!((launch.launcher, launch.size), (Launcher::RankZero, 3));
    assert_eq!(launch.local_rank, launch.rank);
    if deed == "leave" {
        std::process::exit(3);
    }
    let address = launch.address.unwrap();
    let place = Place { rank: launch.rank, size: launch.size, address, limit: LIMIT };
    let mut control = rendezvous(&place, never).unwrap();
    if deed == "die" {
        std::process::abort();
    }
    let _ = control.all_gather(&[launch.rank as u8]);
    control.finish();
    if deed == "stay" {
        drop(control);
        std::thread::sleep(Duration::from_secs(600));
    }
}

#[test]
fn children_and_their_parent_are_ranks() {
    let (children, mut control) = three("").unwrap();
    assert_eq!((control.rank(), control.size()), (0, 3));
    assert_eq!(control.all_gather(&[0]).unwrap(), [[0], [1], [2]]);
    control.finish();
    drop(control);
    drop(children);
}

/// Immediately, not after the time that ranks wait for each other.
#[test]
fn one_that_ends_before_it_is_met_is_named() {
    let began = Instant::now();
    let error = three("leave").unwrap_err();
    assert!(matches!(error, Error::Ended { rank: 2, .. }), "{error}");
    assert!(error.to_string().contains(": exit "), "{error}");
    assert!(began.elapsed() < LIMIT / 2);
}

#[test]
fn one_that_dies_is_lost() {
    let (_children, mut control) = three("die").unwrap();
    let error = control.all_gather(&[0]).unwrap_err();
    assert!(matches!(error, Error::Lost { rank: 2, .. }), "{error}");
}

#[test]
fn one_that_stays_is_ended() {
    let began = Instant::now();
    let (children, mut control) = three("stay").unwrap();
    control.all_gather(&[0]).unwrap();
    control.finish();
    drop((control, children));
    assert!(began.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Children::start(2, LIMIT, &|_| Command::new("/no/such/program"), never);
    assert!(matches!(error.unwrap_err(), Error::Start { rank: 1, .. }));
}
