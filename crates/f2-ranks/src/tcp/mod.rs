//! Ranks that are processes, on one host or many: rank 0 listens at an address, all others connect to
//! it. Signs of life go both ways; the loss of one ends all.

mod children;
mod frame;
mod rendezvous;

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{Control, Link};
use crate::state::State;
use crate::{Address, Error};
use frame::Kind;

pub use children::Children;

/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(2);
/// Without any for so long, a rank is lost.
const SILENCE: Duration = Duration::from_secs(20);
/// A rank that knows of a loss has so long to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// Why others lose a rank that leaves without a reason of its own.
const EARLY: &str = "it ended before the others";
/// How often a thread that waits looks whether a rank was lost.
const GLANCE: Duration = Duration::from_millis(50);

/// A rank, and where it meets the others.
#[derive(Clone, Debug)]
pub struct Place {
    /// The number of this rank.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// Where rank 0 listens.
    pub address: Address,
    /// How long to wait for the others.
    pub limit: Duration,
}

/// Meets the other ranks at an address. Where one is lost later and this rank does not end by itself,
/// being stuck in some exchange, `end` is called with the reason; it must not return.
pub fn rendezvous(place: &Place, end: fn(&Error)) -> Result<Control, Error> {
    if place.rank > 0 {
        return connect(place, vec![(0, rendezvous::visit(place)?)], end);
    }
    let listener = rendezvous::listen(&place.address)?;
    let guests = rendezvous::welcome(&listener, place, &mut || Ok(()))?;
    connect(place, (1..).zip(guests).collect(), end)
}

/// The connection of a rank over its streams, each with the rank at its other end.
fn connect(
    place: &Place,
    streams: Vec<(usize, TcpStream)>,
    end: fn(&Error),
) -> Result<Control, Error> {
    let hub = Arc::new(Hub {
        rank: place.rank,
        state: State::default(),
        writers: streams
            .iter()
            .map(|(rank, stream)| writer(*rank, stream))
            .collect::<Result<_, _>>()?,
        end,
    });
    // Where a thread is missing its end tells the other ranks.
    let mut connections = Connections { hub, inboxes: Vec::new(), finished: false };
    for (rank, stream) in streams {
        let (sender, receiver) = channel();
        connections.inboxes.push((rank, receiver));
        let hub = Arc::clone(&connections.hub);
        start(place.rank, move || hub.listen(rank, stream, &sender))?;
    }
    let hub = Arc::clone(&connections.hub);
    start(place.rank, move || hub.beat())?;
    Ok(Control::new(place.rank, place.size, Box::new(connections)))
}

/// Starts a thread that listens or beats.
fn start(rank: usize, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| Error::Threads { rank, reason: error.to_string() })
}

fn writer(rank: usize, stream: &TcpStream) -> Result<(usize, Mutex<TcpStream>), Error> {
    let prepared = stream.set_read_timeout(Some(SILENCE)).and_then(|()| stream.try_clone());
    let stream = prepared.map_err(|error| Error::Lost { rank, reason: error.to_string() })?;
    Ok((rank, Mutex::new(stream)))
}

/// The connections of a process, shared by the threads that listen and the one that speaks.
struct Hub {
    rank: usize,
    state: State,
    writers: Vec<(usize, Mutex<TcpStream>)>,
    end: fn(&Error),
}

impl Hub {
    fn write(&self, to: usize, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let Some((_, stream)) = self.writers.iter().find(|(rank, _)| *rank == to) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        frame::write(&mut *stream.lock().unwrap_or_else(PoisonError::into_inner), kind, bytes)
    }

    fn write_all(&self, kind: Kind, bytes: &[u8]) {
        for (rank, _) in &self.writers {
            // A rank that is gone is noticed where it is listened to.
            let _ = self.write(*rank, kind, bytes);
        }
    }

    fn beat(&self) {
        let mut last = Instant::now();
        while !self.state.is_over() && self.state.failure().is_none() {
            thread::sleep(GLANCE);
            if last.elapsed() >= BEAT {
                last = Instant::now();
                self.write_all(Kind::Alive, &[]);
            }
        }
    }

    /// Reads what a rank says until it is done or lost.
    fn listen(&self, from: usize, mut stream: TcpStream, inbox: &Sender<Vec<u8>>) {
        let error = loop {
            match frame::read(&mut stream) {
                Ok((Kind::Message, bytes)) => drop(inbox.send(bytes)),
                Ok((Kind::Alive, _)) => {}
                Ok((Kind::Farewell, _)) => return,
                Ok((Kind::Failure, bytes)) => break failure(from, &bytes),
                Err(error) => break Error::Lost { rank: from, reason: in_words(&error) },
            }
        };
        if !self.state.is_over() {
            self.lose(&error);
        }
    }

    /// Takes note of a loss and passes it on. The process ends, by itself or not.
    fn lose(&self, error: &Error) {
        if !self.state.note(error.clone()) {
            return;
        }
        if self.rank == 0 {
            self.write_all(Kind::Failure, &told(error));
        }
        self.end_unless_over(error);
    }

    /// Ends the process where it does not end by itself.
    fn end_unless_over(&self, error: &Error) {
        let began = Instant::now();
        while began.elapsed() < GRACE {
            if self.state.is_over() {
                return;
            }
            thread::sleep(GLANCE);
        }
        (self.end)(error);
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "its connection was closed".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing was heard of it for {} seconds", SILENCE.as_secs())
        }
        _ => error.to_string(),
    }
}

/// A failure as it is sent: the rank, whether it was lost, and the reason.
fn told(error: &Error) -> Vec<u8> {
    let (rank, lost, reason) = match error {
        Error::Lost { rank, reason } => (*rank, 1, reason.clone()),
        Error::Failed { rank, reason } => (*rank, 0, reason.clone()),
        other => (0, 0, other.to_string()),
    };
    let mut bytes = (rank as u32).to_le_bytes().to_vec();
    bytes.push(lost);
    bytes.extend(reason.into_bytes());
    bytes
}

fn failure(from: usize, bytes: &[u8]) -> Error {
    let Some((number, [lost, reason @ ..])) = bytes.split_first_chunk() else {
        return Error::Lost { rank: from, reason: "it did not say why it ended".to_owned() };
    };
    let rank = u32::from_le_bytes(*number) as usize;
    let reason = String::from_utf8_lossy(reason).into_owned();
    if *lost == 1 { Error::Lost { rank, reason } } else { Error::Failed { rank, reason } }
}

/// The connections of a rank: rank 0 has one to every other, the others one to rank 0.
struct Connections {
    hub: Arc<Hub>,
    inboxes: Vec<(usize, Receiver<Vec<u8>>)>,
    finished: bool,
}

impl Connections {
    fn lost(&self, rank: usize, reason: &str) -> Error {
        let lost = || Error::Lost { rank, reason: reason.to_owned() };
        self.hub.state.failure().unwrap_or_else(lost)
    }
}

impl Link for Connections {
    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Error> {
        if let Some(failure) = self.hub.state.failure() {
            return Err(failure);
        }
        let sent = self.hub.write(to, Kind::Message, message);
        sent.map_err(|error| self.lost(to, &error.to_string()))
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, Error> {
        let Some((_, inbox)) = self.inboxes.iter().find(|(rank, _)| *rank == from) else {
            return Err(self.lost(from, "there is no connection to it"));
        };
        loop {
            match inbox.recv_timeout(GLANCE) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => {
                    // Its thread notes a loss just before it lets go.
                    return Err(self.lost(from, EARLY));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(failure) = self.hub.state.failure() {
                        return Err(failure);
                    }
                }
            }
        }
    }

    fn fail(&mut self, reason: &str) {
        let error = Error::Failed { rank: self.hub.rank, reason: reason.to_owned() };
        // Where another's failure came first, this one is its consequence.
        if self.hub.state.failure().is_none() {
            self.hub.write_all(Kind::Failure, &told(&error));
        }
    }

    fn finish(&mut self) {
        self.finished = true;
    }

    fn leave(&mut self) {
        if self.finished {
            return;
        }
        // After a failure that was told this one is not heard.
        self.fail(EARLY);
        let (rank, hub) = (self.hub.rank, Arc::clone(&self.hub));
        let error = Error::Failed { rank, reason: EARLY.to_owned() };
        // Without the thread this rank waits as long as the others do.
        let _ = start(rank, move || hub.end_unless_over(&error));
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.hub.state.finish();
        if !self.finished {
            self.fail(EARLY);
        }
        self.hub.write_all(Kind::Farewell, &[]);
        for (_, stream) in &self.hub.writers {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            // What was written still arrives.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
