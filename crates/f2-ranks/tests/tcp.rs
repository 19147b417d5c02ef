//! Ranks connected over TCP on this host: threads stand for processes, each with a connection.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use f2_ranks::{Address, Control, Error, Fingerprint, Place, rendezvous};

fn never(error: &Error) {
    panic!("a rank did not end by itself: {error}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn place(rank: usize, size: usize, port: u16, seconds: u64) -> Place {
    let address = Address { host: "127.0.0.1".to_owned(), port };
    Place { rank, size, address, limit: Duration::from_secs(seconds) }
}

/// Runs `body` as each of `size` ranks.
fn ranks<R: Send>(size: usize, body: impl Fn(&mut Control) -> R + Sync) -> Vec<R> {
    let port = free_port();
    thread::scope(|scope| {
        let body = &body;
        let start = |rank| {
            scope.spawn(move || {
                let mut control = rendezvous(&place(rank, size, port, 30), never).unwrap();
                let result = body(&mut control);
                control.finish();
                result
            })
        };
        let started: Vec<_> = (0..size).map(start).collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn messages_reach_all() {
    let results = ranks(4, |control| {
        let all = control.all_gather(&[control.rank() as u8]).unwrap();
        let mut counts = [1, control.rank() as u64];
        control.sum(&mut counts).unwrap();
        (all.concat(), control.broadcast(&[9]).unwrap(), counts)
    });
    assert!(results.iter().all(|result| *result == (vec![0, 1, 2, 3], vec![9], [4, 6])));
}

#[test]
fn a_difference_names_rank_and_value() {
    let results = ranks(3, |control| {
        let mut print = Fingerprint::default();
        print.add("the corpus", &"abc");
        let rate = if control.rank() == 2 { 0.1 } else { 0.2 };
        print.add("the setting optimiser.learning_rate", &rate);
        print.compare(control).map_err(|error| error.to_string())
    });
    let expected = "rank 2 differs from rank 0 in the setting optimiser.learning_rate: 0.1 instead \
                    of 0.2";
    assert!(results.iter().all(|result| result.as_ref().unwrap_err() == expected), "{results:?}");
}

#[test]
fn a_rank_that_fails_tells_the_others_why() {
    let results = ranks(3, |control| {
        if control.rank() == 1 {
            control.fail("its text is damaged");
            return None;
        }
        control.barrier().err()
    });
    let expected = Some(Error::Failed { rank: 1, reason: "its text is damaged".to_owned() });
    assert_eq!(results, [expected.clone(), None, expected]);
}

/// As if a process is killed: its connection is closed without a message.
#[test]
fn a_rank_that_dies_is_named_by_all_others() {
    let port = free_port();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for rank in [0, 2] {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut control = rendezvous(&place(rank, 3, port, 30), never).unwrap();
                sender.send((rank, control.barrier().unwrap_err())).unwrap();
            });
        }
        let mut hello = vec![0, 16, 0, 0, 0];
        hello.extend(b"f2 ranks\x01\0\0\0\x03\0\0\0");
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let mut stream = connect();
        while stream.is_err() {
            thread::sleep(Duration::from_millis(20));
            stream = connect();
        }
        stream.unwrap().write_all(&hello).unwrap();
    });
    drop(sender);
    let mut seen: Vec<(usize, Error)> = receiver.iter().collect();
    seen.sort_by_key(|(rank, _)| *rank);
    assert_eq!(seen.len(), 2);
    for (rank, error) in seen {
        assert!(matches!(error, Error::Lost { rank: 1, .. }), "{rank}: {error}");
    }
}

static ENDED: Mutex<Option<Error>> = Mutex::new(None);

fn ended(error: &Error) {
    *ENDED.lock().unwrap() = Some(error.clone());
}

/// A rank that waits for numbers does not read its messages.
#[test]
fn a_rank_that_is_stuck_is_ended() {
    let port = free_port();
    thread::scope(|scope| {
        let stuck = scope.spawn(move || {
            let control = rendezvous(&place(0, 2, port, 30), ended).unwrap();
            while ENDED.lock().unwrap().is_none() {
                thread::sleep(Duration::from_millis(50));
            }
            drop(control);
        });
        let mut control = rendezvous(&place(1, 2, port, 30), never).unwrap();
        control.fail("its memory is full");
        drop(control);
        stuck.join().unwrap();
    });
    let expected = Error::Failed { rank: 1, reason: "its memory is full".to_owned() };
    assert_eq!(ENDED.lock().unwrap().clone(), Some(expected));
}

/// As when a rank fails before it can say why.
#[test]
fn a_rank_that_cannot_leave_is_ended_and_the_others_know() {
    static LEFT: Mutex<Option<Error>> = Mutex::new(None);
    let left = |error: &Error| *LEFT.lock().unwrap() = Some(error.clone());
    let port = free_port();
    thread::scope(|scope| {
        let first = scope.spawn(move || {
            let mut control = rendezvous(&place(0, 2, port, 30), never).unwrap();
            control.barrier().unwrap_err().to_string()
        });
        let mut control = rendezvous(&place(1, 2, port, 30), left).unwrap();
        control.leave();
        assert_eq!(first.join().unwrap(), "rank 1 failed: it ended before the others");
        while LEFT.lock().unwrap().is_none() {
            thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
fn a_rank_that_leaves_early_is_named() {
    let port = free_port();
    thread::scope(|scope| {
        let first = scope.spawn(move || {
            let mut control = rendezvous(&place(0, 2, port, 30), never).unwrap();
            control.barrier().unwrap_err().to_string()
        });
        drop(rendezvous(&place(1, 2, port, 30), never).unwrap());
        assert_eq!(first.join().unwrap(), "rank 1 failed: it ended before the others");
    });
}

/// Rank 1 is a process that cannot start threads: no address space has room for such a stack.
#[test]
fn a_rank_without_threads_says_so() {
    const STACK: [&str; 2] = ["RUST_MIN_STACK", "281474976710656"];
    const PORT: &str = "F2_TEST_PORT";
    if let Ok(port) = std::env::var(PORT) {
        let error = rendezvous(&place(1, 2, port.parse().unwrap(), 30), never).unwrap_err();
        assert!(matches!(error, Error::Threads { rank: 1, .. }), "{error}");
        return;
    }
    let port = free_port();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_rank_without_threads_says_so"])
        .envs([STACK, [PORT, &port.to_string()]].map(|[name, value]| (name, value)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut control = rendezvous(&place(0, 2, port, 30), never).unwrap();
    let error = control.barrier().unwrap_err().to_string();
    assert_eq!(error, "rank 1 failed: it ended before the others");
    let output = other.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
fn nobody_at_the_address() {
    let port = free_port();
    let error = rendezvous(&place(1, 2, port, 1), never).unwrap_err().to_string();
    let start = format!("rank 1 did not reach rank 0 at 127.0.0.1:{port} within 1 seconds");
    assert!(error.starts_with(&start), "{error}");
    let error = rendezvous(&place(0, 3, port, 0), never).unwrap_err().to_string();
    let expected = format!("rank 1, 2 of 3 did not connect to 127.0.0.1:{port} within 0 seconds");
    assert_eq!(error, expected);
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = rendezvous(&place(0, 2, port, 1), never).unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
}

#[test]
fn other_numbers_of_ranks_do_not_meet() {
    let port = free_port();
    let error = thread::scope(|scope| {
        let first = scope.spawn(move || rendezvous(&place(0, 2, port, 30), never).err());
        // Rank 0 ends at once, so this rank may or may not have connected.
        let _ = rendezvous(&place(1, 3, port, 30), never);
        first.join().unwrap().unwrap()
    });
    let expected = "rank 1 differs from rank 0 in the number of ranks: 3 instead of 2";
    assert_eq!(error.to_string(), expected);
}
