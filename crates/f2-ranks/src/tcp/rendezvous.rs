//! How ranks connect: rank 0 listens, and the others connect to it.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::Place;
use super::frame::{self, Kind};
use crate::{Address, Error};

/// How long to wait before a retry.
const RETRY: Duration = Duration::from_millis(50);
/// The first bytes that a rank sends; its number and the number of ranks follow.
const HELLO: &[u8; 8] = b"f2 ranks";

/// Listens at an address as rank 0; port 0 stands for any free port.
pub(super) fn listen(address: &Address) -> Result<TcpListener, Error> {
    // At all addresses, since the host's name may resolve to another one on the host itself.
    let host = if is_loopback(&address.host) { "127.0.0.1" } else { "0.0.0.0" };
    let listener = TcpListener::bind((host, address.port));
    let listener = listener.and_then(|own| own.set_nonblocking(true).map(|()| own));
    listener.map_err(|reason| not_listening(address, &reason))
}

pub(super) fn not_listening(address: &Address, reason: &io::Error) -> Error {
    Error::Listen { address: address.to_string(), reason: reason.to_string() }
}

/// Accepts the connections of all other ranks; returns them in order of rank. `check` fails if it
/// is pointless to wait any longer.
pub(super) fn accept_all(
    listener: &TcpListener,
    place: &Place,
    check: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Vec<TcpStream>, Error> {
    let began = Instant::now();
    let mut streams: Vec<Option<TcpStream>> = (1..place.size).map(|_| None).collect();
    while streams.iter().any(Option::is_none) {
        match listener.accept() {
            Ok((stream, _)) => accept(stream, place, &mut streams)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                check()?;
                if began.elapsed() >= place.limit {
                    return Err(absent(place, &streams));
                }
                thread::sleep(RETRY);
            }
            Err(error) => return Err(not_listening(&place.address, &error)),
        }
    }
    Ok(streams.into_iter().flatten().collect())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.")
}

fn absent(place: &Place, streams: &[Option<TcpStream>]) -> Error {
    let missing = streams.iter().enumerate().filter(|(_, stream)| stream.is_none());
    Error::Absent {
        missing: missing.map(|(index, _)| index + 1).collect(),
        size: place.size,
        address: place.address.to_string(),
        seconds: place.limit.as_secs(),
    }
}

/// Accepts the connection of a rank; one from anything else is closed.
fn accept(
    mut stream: TcpStream,
    place: &Place,
    streams: &mut [Option<TcpStream>],
) -> Result<(), Error> {
    let prepared = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(5))));
    let hello = prepared.and_then(|()| frame::read(&mut stream));
    let Ok((Kind::Message, hello)) = hello else { return Ok(()) };
    let Some((rank, size)) = read_hello(&hello) else { return Ok(()) };
    if size != place.size {
        let found = size.to_string();
        let what = "the number of ranks".to_owned();
        return Err(Error::Different { rank, what, found, expected: place.size.to_string() });
    }
    match rank.checked_sub(1).and_then(|index| streams.get_mut(index)) {
        Some(missing @ None) => *missing = Some(stream),
        _ => {
            let reason = format!("two processes at {} are rank {rank}", place.address);
            return Err(Error::Launch { reason });
        }
    }
    Ok(())
}

fn read_hello(hello: &[u8]) -> Option<(usize, usize)> {
    let numbers = hello.strip_prefix(HELLO)?;
    let (rank, size) = (numbers.get(..4)?, numbers.get(4..8)?);
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default()) as usize;
    Some((number(rank), number(size)))
}

/// Connects to rank 0, which may start to listen later.
pub(super) fn connect_to_rank_zero(place: &Place) -> Result<TcpStream, Error> {
    let began = Instant::now();
    loop {
        let failed = match connect(place) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if began.elapsed() >= place.limit {
            return Err(Error::Unreachable {
                rank: place.rank,
                address: place.address.to_string(),
                seconds: place.limit.as_secs(),
                reason: failed.to_string(),
            });
        }
        thread::sleep(RETRY);
    }
}

fn connect(place: &Place) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (place.address.host.as_str(), place.address.port).to_socket_addrs()? {
        let limit = place.limit.clamp(Duration::from_millis(1), Duration::from_secs(5));
        match TcpStream::connect_timeout(&address, limit) {
            Ok(mut stream) => {
                stream.set_nodelay(true)?;
                let numbers = [place.rank as u32, place.size as u32];
                let mut hello = HELLO.to_vec();
                hello.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
                frame::write(&mut stream, Kind::Message, &hello)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
