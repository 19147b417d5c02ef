//! Numbers between ranks that compute on CPUs.

use crate::Error;

/// Carries numbers between the hosts of ranks.
pub trait Transport: Send {
    /// The number of this rank.
    fn rank(&self) -> usize;

    /// Sends and receives everything listed, each with the rank it goes to or comes from. Messages
    /// between two ranks arrive in their order.
    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error>;
}
