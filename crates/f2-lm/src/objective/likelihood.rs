//! Maximum likelihood, plain or factorised.

use f2_engine::Device;

use super::{Objective, Step};
use crate::Error;

/// The mean negative log-likelihood under the model's own head. With the plain softmax this is
/// maximum likelihood; with classes it is F²-Softmax: the cross-entropy of the class plus that of
/// the token inside its class.
#[derive(Clone, Copy, Debug)]
pub struct Likelihood;

impl<D: Device> Objective<D> for Likelihood {
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        for index in 0..step.micro_batches() {
            step.forward(index)?;
            step.backward(step.mean(), None);
        }
        Ok(())
    }

    fn may_run_ahead(&self) -> bool {
        true
    }
}
