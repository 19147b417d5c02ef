//! How ranks meet: rank 0 listens, the others find it.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::Place;
use super::frame::{self, Kind};
use crate::{Address, Error};

/// How long to wait before trying again.
const AGAIN: Duration = Duration::from_millis(50);
/// The first bytes that a rank sends; its number and that of all ranks follow.
const HELLO: &[u8; 8] = b"f2 ranks";

/// Listens at an address as rank 0; with port 0 at any that is free.
pub(super) fn listen(address: &Address) -> Result<TcpListener, Error> {
    // All of the host's addresses: the name of rank 0's host may mean another one on itself.
    let host = if is_loopback(&address.host) { "127.0.0.1" } else { "0.0.0.0" };
    let listener = TcpListener::bind((host, address.port));
    let listener = listener.and_then(|own| own.set_nonblocking(true).map(|()| own));
    listener.map_err(|reason| not_listening(address, &reason))
}

pub(super) fn not_listening(address: &Address, reason: &io::Error) -> Error {
    Error::Listen { address: address.to_string(), reason: reason.to_string() }
}

/// The connections of rank 0 to all others, in their order. `check` fails where waiting for them is in
/// vain.
pub(super) fn welcome(
    listener: &TcpListener,
    place: &Place,
    check: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Vec<TcpStream>, Error> {
    let began = Instant::now();
    let mut guests: Vec<Option<TcpStream>> = (1..place.size).map(|_| None).collect();
    while guests.iter().any(Option::is_none) {
        match listener.accept() {
            Ok((stream, _)) => admit(stream, place, &mut guests)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                check()?;
                if began.elapsed() >= place.limit {
                    return Err(absent(place, &guests));
                }
                thread::sleep(AGAIN);
            }
            Err(error) => return Err(not_listening(&place.address, &error)),
        }
    }
    Ok(guests.into_iter().flatten().collect())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.")
}

fn absent(place: &Place, guests: &[Option<TcpStream>]) -> Error {
    let missing = guests.iter().enumerate().filter(|(_, guest)| guest.is_none());
    Error::Absent {
        missing: missing.map(|(index, _)| index + 1).collect(),
        size: place.size,
        address: place.address.to_string(),
        seconds: place.limit.as_secs(),
    }
}

/// Lets a rank in. Whatever is no rank is sent away.
fn admit(
    mut stream: TcpStream,
    place: &Place,
    guests: &mut [Option<TcpStream>],
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
    match rank.checked_sub(1).and_then(|index| guests.get_mut(index)) {
        Some(guest @ None) => *guest = Some(stream),
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

/// The connection of another rank to rank 0, which may begin to listen later.
pub(super) fn visit(place: &Place) -> Result<TcpStream, Error> {
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
        thread::sleep(AGAIN);
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
