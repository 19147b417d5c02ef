//! What is minimised, one file each. An objective is handed a [`Step`] and leaves the gradient of
//! its batch behind; how it gets there, in one pass or in several, on the text or on what the model
//! makes of it, is its own affair.

mod face;
#[cfg(test)]
mod golden;
mod likelihood;
mod sequence;
mod step;
mod unlikelihood;

use f2_engine::Device;

pub use face::Face;
pub use likelihood::Likelihood;
pub use sequence::SequenceUnlikelihood;
pub use step::{Step, StepBatch, StepBuffers};
pub use unlikelihood::Unlikelihood;

use crate::Error;
use crate::config::{ObjectiveName, TrainConfig};
use crate::model::Network;

/// A loss the decoder can be trained with.
pub trait Objective<D: Device> {
    /// Adds the loss and the gradient of a step's batch to those of its network.
    fn accumulate(&mut self, step: &mut Step<'_, D>) -> Result<(), Error>;

    /// Says which token ends a text, before the first step; an objective that counts tokens does
    /// not count it.
    fn expect_end_of_text(&mut self, _token: u32) {}

    /// Whether a step's gradient depends on the parameters and the text alone, so that it can be
    /// begun, and given up, before anything is known of the step before.
    fn may_run_ahead(&self) -> bool {
        false
    }

    /// The state that a resumed run needs to go on exactly; null where there is none.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Takes back what [`state`](Self::state) gave, or says why it cannot.
    fn restore(&mut self, _state: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }
}

/// The objective a configuration asks for, with all it needs to train `network`.
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
