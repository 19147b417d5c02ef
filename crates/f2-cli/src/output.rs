//! Results on standard output.

use std::io::{self, Write as _};

use crate::failure::{Failure, Kind, Outcome};

/// Prints a result. A reader who has seen enough and left, like `head`, is no failure.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Device, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
