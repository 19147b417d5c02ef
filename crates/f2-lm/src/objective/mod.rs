//! The losses a decoder is trained with: likelihood here, the others in a file each. An objective
//! is given a [`Step`] and adds the loss and the gradient of its batch, in as many passes as it
//! needs.

mod face;
#[cfg(test)]
mod golden;
mod sequence;
mod step;
mod unlikelihood;

use f2_engine::Device;

pub use face::Face;
pub use sequence::SequenceUnlikelihood;
pub use step::{Step, StepBatch, StepBuffers};
pub use unlikelihood::Unlikelihood;

use crate::Error;
use crate::config::{ObjectiveName, TrainConfig};
use crate::model::Network;

/// Replaces counts by their sums over all ranks.
pub type Total<'a> = dyn FnMut(&mut [u64]) -> Result<(), Error> + 'a;

/// A loss the decoder can be trained with.
pub trait Objective<D: Device> {
    /// Collects what the loss depends on in the whole batch, shard by shard, before any gradient.
    fn survey(&mut self, _step: &mut Step<'_, D>) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the survey. `total` sums counts over all ranks.
    fn settle(&mut self, _total: &mut Total<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Adds the loss and the gradient of a step's batch, or of its current shard, to those of the
    /// network. It calls [`Step::backward`] at most once for each micro-batch: in the last one
    /// parts of the gradient may already be sent to other ranks.
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error>;

    /// Sets the token that ends a text, before the first step; an objective that counts tokens
    /// leaves it out.
    fn expect_end_of_text(&mut self, _token: u32) {}

    /// Whether a step's gradient depends on the parameters and the text alone, so that it can be
    /// computed ahead, and discarded, before the outcome of the step before is known.
    fn may_run_ahead(&self) -> bool {
        false
    }

    /// The state that a resumed run needs to continue exactly; `Null` if there is none.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Restores a state that [`state`](Self::state) returned; the error says why it cannot.
    fn restore(&mut self, _state: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }
}

/// The mean negative log-likelihood under the model's own head. With the plain softmax this is
/// maximum likelihood; with classes it is F²-Softmax: the cross-entropy of the class plus that of
/// the token inside its class.
#[derive(Clone, Copy, Debug)]
pub struct Likelihood;

impl<D: Device> Objective<D> for Likelihood {
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error> {
        for index in 0..step.micro_batches() {
            step.forward(index)?;
            step.backward(step.mean(), None)?;
        }
        Ok(())
    }

    fn may_run_ahead(&self) -> bool {
        true
    }
}

/// The objective of a configuration, with the buffers it needs to train `network`.
pub fn objective<D: Device>(
    config: &TrainConfig,
    network: &Network<D>,
) -> Result<Box<dyn Objective<D>>, Error> {
    let vocabulary = network.model.decoder.shape.vocabulary;
    Ok(match config.objective.name {
        ObjectiveName::Mle | ObjectiveName::F2 => Box::new(Likelihood),
        ObjectiveName::Unlikelihood => {
            Box::new(Unlikelihood::new(&config.unlikelihood, vocabulary))
        }
        ObjectiveName::UnlikelihoodSequence => {
            Box::new(SequenceUnlikelihood::new(config, network)?)
        }
        ObjectiveName::Face => Box::new(Face::new(&config.face, vocabulary)),
    })
}
