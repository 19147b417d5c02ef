//! The connection of a rank to the others, as training uses it.

use f2_engine::{Device, HostPeers, Rendezvous};
use f2_ranks::{Control, Fingerprint, Transport};

use super::Directive;
use crate::Error;

/// The connection of this rank to the others: messages between hosts, floats between devices.
pub struct Ranks<D: Device> {
    /// Floats between devices. Dropped before `control`: that may wait for other ranks, and the
    /// loss of one is still noticed meanwhile.
    pub peers: D::Peers,
    /// Messages between hosts.
    pub control: Control,
    /// Whether gradients are sent during the backward pass. The bits are the same either way, and
    /// ranks need not agree.
    pub overlap: bool,
}

/// The environment variable that turns [`overlap`](Ranks::overlap) off if it is 0.
const OVERLAP: &str = "F2_EXCHANGE_OVERLAP";

impl<D: Device> Ranks<D> {
    /// Connects a device with those of the other ranks, over their hosts. `transport` carries the
    /// floats of devices that have no connection of their own.
    pub fn join(
        device: &D,
        mut control: Control,
        transport: Option<Box<dyn Transport>>,
    ) -> Result<Self, Error> {
        let peers = device.join(&mut Hosts { control: &mut control, transport });
        let peers = peers.inspect_err(|error| control.fail(&error.to_string()))?;
        let overlap = std::env::var_os(OVERLAP).is_none_or(|given| given != "0");
        Ok(Self { peers, control, overlap })
    }

    /// Whether this is rank 0, which makes decisions and writes the run.
    pub fn leads(&self) -> bool {
        self.control.leads()
    }

    /// The number of this rank, and how many there are.
    pub(in crate::train) fn place(&self) -> [usize; 2] {
        [self.control.rank(), self.control.size()]
    }

    /// Tells the others why this rank ends, unless they fail in the same way. Closing the
    /// connection then no longer waits for them.
    pub fn tell(&mut self, error: &Error) {
        if matches!(error, Error::NotFinite { .. }) {
            return;
        }
        D::abandon(&mut self.peers);
        if !matches!(error, Error::Ranks(_)) {
            self.control.fail(&error.to_string());
        }
    }

    /// Refuses ranks whose fingerprints differ.
    pub(in crate::train) fn compare(&mut self, print: &Fingerprint) -> Result<(), Error> {
        Ok(print.compare(&mut self.control)?)
    }

    /// Runs `work` on rank 0 alone. All others learn whether it succeeded.
    pub(in crate::train) fn lead<T>(
        &mut self,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let done = if self.leads() { work().map(Some) } else { Ok(None) };
        let told = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let reason = self.control.broadcast(told.as_bytes())?;
        if self.leads() || reason.is_empty() {
            return done;
        }
        let reason = String::from_utf8_lossy(&reason).into_owned();
        Err(f2_ranks::Error::Failed { rank: 0, reason }.into())
    }

    /// The directive of rank 0, on every rank.
    pub(in crate::train) fn follow(&mut self, own: Directive) -> Result<Directive, Error> {
        let directive = Directive::from_bytes(&self.control.broadcast(&own.to_bytes())?);
        Ok(directive.ok_or_else(|| garbled(0))?)
    }

    /// The sums of all batches of windows, in their order: rank r has those of batch r, r + size, …
    pub(in crate::train) fn interleave(&mut self, own: &[f64]) -> Result<Vec<f64>, Error> {
        let bytes: Vec<u8> = own.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let all = self.control.all_gather(&bytes)?;
        let count = all.iter().map(Vec::len).sum::<usize>() / size_of::<f64>();
        let sum = |index: usize| {
            let (rank, place) = (index % all.len(), index / all.len());
            let sums = all[rank].as_chunks().0;
            let sum = sums.get(place).ok_or_else(|| garbled(rank))?;
            Ok(f64::from_le_bytes(*sum))
        };
        (0..count).map(sum).collect()
    }
}

impl<D: Device> Drop for Ranks<D> {
    fn drop(&mut self) {
        self.control.leave();
    }
}

fn garbled(rank: usize) -> f2_ranks::Error {
    f2_ranks::Error::Lost { rank, reason: "its message was garbled".to_owned() }
}

/// The hosts of the ranks, for a device that joins them.
struct Hosts<'a> {
    control: &'a mut Control,
    transport: Option<Box<dyn Transport>>,
}

impl Rendezvous for Hosts<'_> {
    fn rank(&self) -> usize {
        self.control.rank()
    }

    fn size(&self) -> usize {
        self.control.size()
    }

    fn share(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, f2_engine::Error> {
        self.control.broadcast(&bytes).map_err(|error| exchange(&error))
    }

    fn host_peers(&mut self) -> Option<Box<dyn HostPeers>> {
        self.transport
            .take()
            .map(|transport| Box::new(HostTransport(transport)) as Box<dyn HostPeers>)
    }
}

fn exchange(error: &f2_ranks::Error) -> f2_engine::Error {
    f2_engine::Error::Exchange { reason: error.to_string() }
}

/// Carries the floats of a device that has no connection of its own.
struct HostTransport(Box<dyn Transport>);

impl HostPeers for HostTransport {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), f2_engine::Error> {
        self.0.exchange(sends, receives).map_err(|error| exchange(&error))
    }
}
