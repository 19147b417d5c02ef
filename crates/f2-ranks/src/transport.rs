//! Numbers between ranks that compute on CPUs.

use crate::Error;

/// Carries numbers between ranks.
pub trait Transport: Send {
    /// The number of this rank.
    fn rank(&self) -> usize;

    /// Sends and receives everything listed; each slice comes with the destination or source rank.
    /// Messages between two ranks arrive in order.
    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error>;
}
