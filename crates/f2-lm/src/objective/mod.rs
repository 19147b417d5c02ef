//! What is minimised: hidden states, head and targets in; loss and their gradients out. One file
//! each.

mod f2;
mod mle;

use f2_engine::Device;

pub use f2::F2;
pub use mle::Mle;

use crate::config::ObjectiveName;
use crate::model::Head;

/// One micro-batch as an objective sees it.
pub struct LossPass<'a, D: Device> {
    /// Does the work.
    pub device: &'a D,
    /// The output layer.
    pub head: &'a Head,
    /// All parameters.
    pub weights: &'a D::Weights,
    /// The decoder's output, `[positions, width]`.
    pub hidden: &'a D::Activations,
    /// The next token of every position, or [`f2_engine::IGNORED`].
    pub ids: &'a [u32],
    /// Tokens in a row of the batch.
    pub sequence: usize,
    /// How much each position counts: one over the targets of the whole step.
    pub weight: f32,
    /// The engine's own form of the targets, to be loaded here.
    pub targets: &'a mut D::Targets,
    /// `[2, positions]`: each position's share of the loss in two parts, whose sum is the loss.
    pub losses: &'a mut D::Floats,
}

/// Where the gradients of a [`LossPass`] go.
pub struct LossGradients<'a, D: Device> {
    /// Overwritten with the gradient of the hidden states, `[positions, width]`.
    pub d_hidden: &'a mut D::Activations,
    /// The head's gradients are added to this.
    pub parameters: &'a mut D::Floats,
}

/// A loss the decoder can be trained with.
pub trait Objective<D: Device> {
    /// Its name in configurations.
    fn name(&self) -> ObjectiveName;

    /// The loss of a micro-batch and its gradients.
    fn loss_backward(&mut self, pass: LossPass<'_, D>, gradients: LossGradients<'_, D>);

    /// What must be saved so that a resumed run goes on exactly; null where there is nothing.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Takes back what [`state`](Self::state) gave, or says why it cannot.
    fn restore(&mut self, _state: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }
}

/// The objective of that name.
pub fn objective<D: Device>(name: ObjectiveName) -> Box<dyn Objective<D>> {
    match name {
        ObjectiveName::Mle => Box::new(Mle),
        ObjectiveName::F2 => Box::new(F2),
    }
}

/// The negative log-likelihood of the full posterior, whatever the head: what perplexity is made
/// of. Leaves each position's share in `pass.losses`.
pub fn likelihood<D: Device>(pass: LossPass<'_, D>) {
    let LossPass { device, head, weights, hidden, targets, losses, .. } = pass;
    match head {
        Head::Plain(head) => {
            mle::load(device, pass.ids, pass.weight, targets);
            device.softmax_loss(*head, weights, targets, hidden, losses);
        }
        Head::F2(head) => {
            f2::load(device, head, pass.ids, pass.weight, targets);
            device.f2_loss(head, weights, targets, hidden, losses);
        }
    }
}
