//! Messages on a connection: a kind, a length, the bytes.

use std::io::{self, Read, Write};

/// The longest message; a longer one does not come from a rank.
const LONGEST: u32 = 1 << 30;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message of the run.
    Message = 0,
    /// A heartbeat.
    Alive = 1,
    /// A rank's number and why it ended.
    Failure = 2,
    /// The rank is done.
    Farewell = 3,
}

pub(super) fn write(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let mut frame = vec![kind as u8];
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(bytes);
    to.write_all(&frame)
}

pub(super) fn read(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut header = [0; 5];
    from.read_exact(&mut header)?;
    let kind = match header[0] {
        0 => Kind::Message,
        1 => Kind::Alive,
        2 => Kind::Failure,
        3 => Kind::Farewell,
        _ => return Err(foreign()),
    };
    let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
    if length > LONGEST {
        return Err(foreign());
    }
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((kind, bytes))
}

fn foreign() -> io::Error {
    let reason = "it sent an invalid message; another program may answer at its address";
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
