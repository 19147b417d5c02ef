//! Ranks that are processes, on one host or many: rank 0 listens at an address, and all others
//! connect to it. Heartbeats are sent both ways; the loss of one rank ends all.

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

/// The time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// A rank that sends nothing for this long is lost.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a rank that knows of a loss may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// The reason for a rank that ends without giving one.
const EARLY: &str = "it ended before the others";
/// How often a waiting thread checks whether a rank was lost.
const POLL: Duration = Duration::from_millis(50);

/// A rank, and where it connects to the others.
#[derive(Clone, Debug)]
pub struct Place {
    /// The number of this rank.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// Where rank 0 listens.
    pub address: Address,
    /// How long to wait for the others to connect.
    pub limit: Duration,
}

/// Connects to the other ranks. If one is lost later and this rank does not end by itself because
/// it is stuck in an exchange, `end` is called with the reason; it must not return.
pub fn rendezvous(place: &Place, end: fn(&Error)) -> Result<Control, Error> {
    if place.rank > 0 {
        return connect(place, vec![(0, rendezvous::connect_to_rank_zero(place)?)], end);
    }
    let listener = rendezvous::listen(&place.address)?;
    let streams = rendezvous::accept_all(&listener, place, &mut || Ok(()))?;
    connect(place, (1..).zip(streams).collect(), end)
}

/// Starts the threads of a rank's connections; each stream comes with the rank at its other end.
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
    // If a thread cannot be started, dropping `connections` tells the other ranks.
    let mut connections = Connections { hub, inboxes: Vec::new(), finished: false };
    for (rank, stream) in streams {
        let (sender, receiver) = channel();
        connections.inboxes.push((rank, receiver));
        let hub = Arc::clone(&connections.hub);
        start(place.rank, move || hub.listen(rank, stream, &sender))?;
    }
    let hub = Arc::clone(&connections.hub);
    start(place.rank, move || hub.send_heartbeats())?;
    Ok(Control::new(place.rank, place.size, Box::new(connections)))
}

/// Starts a thread.
fn start(rank: usize, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| Error::Threads { rank, reason: error.to_string() })
}

fn writer(rank: usize, stream: &TcpStream) -> Result<(usize, Mutex<TcpStream>), Error> {
    let prepared = stream.set_read_timeout(Some(SILENCE)).and_then(|()| stream.try_clone());
    let stream = prepared.map_err(|error| Error::Lost { rank, reason: error.to_string() })?;
    Ok((rank, Mutex::new(stream)))
}

/// The connections of a process, shared by its reading and writing threads.
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
            // The thread that reads from a rank detects its loss.
            let _ = self.write(*rank, kind, bytes);
        }
    }

    fn send_heartbeats(&self) {
        let mut last = Instant::now();
        while !self.state.is_over() && self.state.failure().is_none() {
            thread::sleep(POLL);
            if last.elapsed() >= HEARTBEAT {
                last = Instant::now();
                self.write_all(Kind::Alive, &[]);
            }
        }
    }

    /// Reads the messages of a rank until it is done or lost.
    fn listen(&self, from: usize, mut stream: TcpStream, inbox: &Sender<Vec<u8>>) {
        let error = loop {
            match frame::read(&mut stream) {
                Ok((Kind::Message, bytes)) => drop(inbox.send(bytes)),
                Ok((Kind::Alive, _)) => {}
                Ok((Kind::Farewell, _)) => return,
                Ok((Kind::Failure, bytes)) => break decode_failure(from, &bytes),
                Err(error) => break Error::Lost { rank: from, reason: in_words(&error) },
            }
        };
        if !self.state.is_over() {
            self.lose(&error);
        }
    }

    /// Records a loss, tells the other ranks, and ends the process if it does not end by itself.
    fn lose(&self, error: &Error) {
        if !self.state.record(error.clone()) {
            return;
        }
        if self.rank == 0 {
            self.write_all(Kind::Failure, &encode_failure(error));
        }
        self.end_unless_over(error);
    }

    /// Ends the process if it does not end by itself.
    fn end_unless_over(&self, error: &Error) {
        let began = Instant::now();
        while began.elapsed() < GRACE {
            if self.state.is_over() {
                return;
            }
            thread::sleep(POLL);
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

/// The payload of a failure frame: the rank, whether it was lost, and the reason.
fn encode_failure(error: &Error) -> Vec<u8> {
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

fn decode_failure(from: usize, bytes: &[u8]) -> Error {
    let Some((number, [lost, reason @ ..])) = bytes.split_first_chunk() else {
        return Error::Lost { rank: from, reason: "it did not say why it ended".to_owned() };
    };
    let rank = u32::from_le_bytes(*number) as usize;
    let reason = String::from_utf8_lossy(reason).into_owned();
    if *lost == 1 { Error::Lost { rank, reason } } else { Error::Failed { rank, reason } }
}

/// The connections of a rank: rank 0 has one to every other rank, the others one to rank 0.
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
            match inbox.recv_timeout(POLL) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => {
                    // The reading thread records a loss before it drops its sender.
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
        // If another rank failed first, this failure is its consequence.
        if self.hub.state.failure().is_none() {
            self.hub.write_all(Kind::Failure, &encode_failure(&error));
        }
    }

    fn finish(&mut self) {
        self.finished = true;
    }

    fn leave(&mut self) {
        if self.finished {
            return;
        }
        // Ignored by the others if they were told of a failure before.
        self.fail(EARLY);
        let (rank, hub) = (self.hub.rank, Arc::clone(&self.hub));
        let error = Error::Failed { rank, reason: EARLY.to_owned() };
        // If the thread cannot be started, this rank waits as long as the others do.
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
            // Everything written before still arrives.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
