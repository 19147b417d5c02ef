//! Failures of a verb: the message, the advice and the exit code.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use f2_files::{LockError, ReadError, WriteError};

/// The documented exit codes. 0 is success; 1 is reserved for checks that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The arguments or the configuration are wrong.
    Usage = 2,
    /// A file is missing, broken, or not what it should be.
    Data = 3,
    /// The device, memory, disk or network failed.
    Device = 4,
    /// The user interrupted the program.
    Interrupted = 130,
}

/// A failure: message, advice and exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    advice: Option<String>,
    /// Whether another process prints it.
    reported: bool,
}

/// Advice if the system refuses to start threads.
pub(crate) const FREE_THREADS: &str = "\
    end other programs, or raise the limits on processes (`ulimit -u`) and memory; if RUST_MIN_STACK \
    is set, unset it";

/// Advice on a file that cannot be read.
pub(crate) const CHECK_NAME: &str = "check its name and that it may be read";

/// Advice on a file that cannot be written, depending on the system's error.
pub(crate) fn advice_on_writing(error: &WriteError) -> &'static str {
    match error.source.kind() {
        ErrorKind::NotFound => "make the folder it lies in, or choose another place",
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => "choose another name",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "choose a place that you may write to"
        }
        _ => "free some space or choose another place; nothing was left half-written",
    }
}

/// The result of a verb.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Display) -> Self {
        Self { kind, message: message.to_string(), advice: None, reported: false }
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn data(message: impl Display) -> Self {
        Self::new(Kind::Data, message)
    }

    /// The failure to start a thread; `work` says what for.
    pub(crate) fn without_thread(work: &str, error: &io::Error) -> Self {
        Self::new(Kind::Device, format!("cannot start a thread {work}: {error}"))
            .advise(FREE_THREADS)
    }

    /// The message alone.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Marks the failure as printed by another process.
    pub(crate) fn reported(self) -> Self {
        Self { reported: true, ..self }
    }

    /// Puts a prefix before the message.
    pub(crate) fn before(mut self, prefix: &str) -> Self {
        self.message.insert_str(0, prefix);
        self
    }

    /// Adds advice.
    pub(crate) fn advise(mut self, advice: impl Display) -> Self {
        self.advice = Some(advice.to_string());
        self
    }

    /// Adds advice, if there is any.
    pub(crate) fn advise_if(self, advice: Option<impl Display>) -> Self {
        match advice {
            Some(advice) => self.advise(advice),
            None => self,
        }
    }

    /// Whether the user interrupted the program.
    pub(crate) fn is_interruption(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Prints the failure to standard error and gives the process its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.reported {
            remark!("error: {}", self.message);
            if let Some(advice) = &self.advice {
                remark!("  help: {advice}");
            }
        }
        ExitCode::from(self.kind as u8)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::data(error).advise(CHECK_NAME)
    }
}

/// A failure of the disk, not of the data.
impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        let advice = advice_on_writing(&error);
        Self::new(Kind::Device, error).advise(advice)
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Write(error) => error.into(),
            LockError::InUse { ref lock, .. } => {
                let lock = lock.display();
                Self::usage(&error).advise(format!(
                    "wait for it or choose another folder; if that process no longer runs, remove \
                     {lock}"
                ))
            }
        }
    }
}
