//! The connection of a GPU to those of all other ranks, by NCCL.

use std::cell::OnceCell;
use std::ffi::{c_int, c_void};

use cudarc::driver::DriverError;
use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclDataType_t};

use super::nccl::{Nccl, NcclId, failed};
use super::side::Side;
use crate::Error;
use crate::cuda::runtime::{Address, Stream};
use crate::cuda::{Cuda, Precision};

/// NCCL's result of an operation that has not finished yet.
const IN_PROGRESS: c_int = 7;

/// The connection of one rank's GPU to all others.
pub struct NcclPeers {
    nccl: &'static Nccl,
    comm: ncclComm_t,
    rank: usize,
    stream: Stream,
    /// The stream of messages that overlap with computation, created when it is first needed;
    /// `None` if it could not be created.
    side: OnceCell<Option<Side>>,
    /// Whether messages were enqueued on it that the device's stream does not wait for yet.
    begun: bool,
    /// Whether the exchange failed: then dropping this does not wait for messages.
    failed: bool,
}

// SAFETY: a communicator may be used by any thread, one at a time; every use borrows this
// exclusively.
unsafe impl Send for NcclPeers {}

/// A message between ranks, from or to GPU memory.
#[derive(Clone, Copy)]
pub(super) enum Message {
    Send {
        to: usize,
        start: Address,
        bytes: usize,
    },
    Receive {
        from: usize,
        start: Address,
        bytes: usize,
    },
    /// From every rank to all others, in place: rank `j` has `each` bytes at `start + j · each`.
    Gather {
        start: Address,
        each: usize,
    },
    /// From rank `from` to all others; `start` is the place in this rank's memory.
    Broadcast {
        from: usize,
        start: Address,
        bytes: usize,
    },
}

impl<P: Precision> Cuda<P> {
    /// Joins the group of `ranks` ranks that share `id`, and waits for all of them. Each needs a
    /// GPU of its own, unless NCCL treats their processes as different hosts (`NCCL_HOSTID`).
    pub fn connect(&self, id: NcclId, rank: usize, ranks: usize) -> Result<NcclPeers, Error> {
        let nccl = Nccl::get()?;
        self.stream.context().bind_to_thread().map_err(failed)?;
        let mut comm: ncclComm_t = std::ptr::null_mut();
        // SAFETY: writes a communicator to a valid place; this thread has the GPU's context.
        let joined = unsafe {
            (nccl.comm_init_rank)(&raw mut comm, ranks as c_int, id.raw(), rank as c_int)
        };
        let what = format!("connecting rank {rank} of {ranks}");
        nccl.check(&what, std::ptr::null_mut(), joined).map_err(|reason| {
            // The messages of older and of newer versions.
            let shared = reason.contains("Duplicate GPU") || reason.contains("same GPU");
            failed(reason + if shared { "; each rank needs a GPU of its own" } else { "" })
        })?;
        let stream = self.stream.clone();
        Ok(NcclPeers {
            nccl,
            comm,
            rank,
            stream,
            side: OnceCell::new(),
            begun: false,
            failed: false,
        })
    }
}

impl NcclPeers {
    /// The number of this rank, from 0.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Enqueues all messages as one operation. Messages between two ranks arrive in order.
    ///
    /// # Safety
    /// The addresses lie in buffers of this device that have so many bytes from there on.
    pub(super) unsafe fn exchange(
        &mut self,
        what: &str,
        messages: &[Message],
    ) -> Result<(), Error> {
        let stream = self.stream.raw().cast();
        // SAFETY: as the caller guarantees.
        unsafe { self.exchange_on(stream, what, messages) }
    }

    /// [`exchange`](Self::exchange) on a second stream, overlapped with what is enqueued on the
    /// device's stream afterwards: messages wait for everything enqueued there so far, and
    /// [`finish_exchanges`](Self::finish_exchanges) makes it wait for them. Without a second stream
    /// they are enqueued on the device's own.
    ///
    /// # Safety
    /// As for [`exchange`](Self::exchange); until [`finish_exchanges`](Self::finish_exchanges) no
    /// operation may write to memory that is sent from, or use memory that is received into.
    pub(super) unsafe fn begin_exchange(
        &mut self,
        what: &str,
        messages: &[Message],
    ) -> Result<(), Error> {
        let Some(side) = self.side.get_or_init(|| Side::new(&self.stream).ok()) else {
            // SAFETY: as the caller guarantees.
            return unsafe { self.exchange(what, messages) };
        };
        let (followed, stream) = (side.follow(&self.stream), side.raw().cast());
        self.note_driver(what, followed)?;
        self.begun = true;
        // SAFETY: as the caller guarantees; the stream lives as long as this.
        unsafe { self.exchange_on(stream, what, messages) }
    }

    /// Makes the device's stream wait for all messages of [`begin_exchange`](Self::begin_exchange).
    pub(super) fn finish_exchanges(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.begun) {
            return Ok(());
        }
        let Some(Some(side)) = self.side.get() else { return Ok(()) };
        let led = side.lead(&self.stream);
        self.note_driver("waiting for gradients", led)
    }

    /// # Safety
    /// As for [`exchange`](Self::exchange); the stream is one of this device.
    unsafe fn exchange_on(
        &mut self,
        stream: cudaStream_t,
        what: &str,
        messages: &[Message],
    ) -> Result<(), Error> {
        if messages.is_empty() {
            return self.check_async_error(what);
        }
        self.stream.count_operation();
        let nccl = self.nccl;
        // SAFETY: no arguments; the group is ended below.
        let mut result = unsafe { (nccl.group_start)() };
        for message in messages {
            if result == 0 {
                // SAFETY: as the caller guarantees.
                result = unsafe { self.enqueue(*message, stream) };
            }
        }
        // SAFETY: started above. The group is ended even if a message was rejected.
        let ended = unsafe { (nccl.group_end)() };
        let result = if result == 0 { ended } else { result };
        self.note(what, result)?;
        self.check_async_error(what)
    }

    /// # Safety
    /// As for [`exchange`](Self::exchange).
    unsafe fn enqueue(&self, message: Message, stream: cudaStream_t) -> c_int {
        let (nccl, comm, byte) = (self.nccl, self.comm, ncclDataType_t::ncclUint8);
        // SAFETY: the caller guarantees the addresses; communicator and stream outlive the call.
        unsafe {
            match message {
                Message::Send { to, start, bytes } => {
                    (nccl.send)(start as *const c_void, bytes, byte, to as c_int, comm, stream)
                }
                Message::Receive { from, start, bytes } => {
                    (nccl.receive)(start as *mut c_void, bytes, byte, from as c_int, comm, stream)
                }
                Message::Gather { start, each } => {
                    // In place: a rank sends from where it would receive its own part.
                    let sent = start + (self.rank * each) as u64;
                    let (read, written) = (sent as *const c_void, start as *mut c_void);
                    (nccl.all_gather)(read, written, each, byte, comm, stream)
                }
                Message::Broadcast { from, start, bytes } => {
                    let (read, written) = (start as *const c_void, start as *mut c_void);
                    (nccl.broadcast)(read, written, bytes, byte, from as c_int, comm, stream)
                }
            }
        }
    }

    /// Makes dropping this abort the group instead of waiting for other ranks.
    pub(super) fn abandon(&mut self) {
        self.failed = true;
    }

    /// Checks for errors since the last call, such as a lost rank: an operation that waits for it
    /// never ends.
    fn check_async_error(&mut self, what: &str) -> Result<(), Error> {
        let mut state = 0;
        // SAFETY: writes one number to a valid place.
        let result = unsafe { (self.nccl.comm_get_async_error)(self.comm, &raw mut state) };
        let state = if state == IN_PROGRESS { 0 } else { state };
        self.note(what, if result == 0 { state } else { result })
    }

    fn note_driver(&mut self, what: &str, result: Result<(), DriverError>) -> Result<(), Error> {
        result.map_err(|error| {
            self.failed = true;
            Error::Exchange { reason: format!("{what}: {error}") }
        })
    }

    fn note(&mut self, what: &str, result: c_int) -> Result<(), Error> {
        self.nccl.check(what, self.comm, result).map_err(|reason| {
            self.failed = true;
            Error::Exchange { reason }
        })
    }
}

impl Drop for NcclPeers {
    fn drop(&mut self) {
        let bound = self.stream.context().bind_to_thread();
        self.stream.note("leaving the group", bound);
        // SAFETY: created in `connect`, destroyed here only.
        unsafe {
            // Destroying it waits for all messages, which may never arrive if a rank failed.
            if self.failed || std::thread::panicking() {
                (self.nccl.comm_abort)(self.comm);
            } else {
                (self.nccl.comm_destroy)(self.comm);
            }
        }
    }
}

impl std::fmt::Debug for NcclPeers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "NcclPeers(rank {})", self.rank)
    }
}
