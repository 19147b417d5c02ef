use f2_engine::{Device, Labels};

use super::{LossGradients, LossPass, Objective};
use crate::config::ObjectiveName;
use crate::model::Head;

/// Maximum likelihood: mean cross-entropy of the plain softmax.
#[derive(Clone, Copy, Debug)]
pub struct Mle;

impl<D: Device> Objective<D> for Mle {
    fn name(&self) -> ObjectiveName {
        ObjectiveName::Mle
    }

    fn loss_backward(&mut self, pass: LossPass<'_, D>, gradients: LossGradients<'_, D>) {
        let Head::Plain(head) = pass.head else { panic!("maximum likelihood has a plain head") };
        load(pass.device, pass.ids, pass.weight, pass.targets);
        pass.device.softmax_loss_backward(
            *head,
            pass.weights,
            pass.targets,
            pass.hidden,
            pass.losses,
            gradients.d_hidden,
            gradients.parameters,
        );
    }
}

pub(super) fn load<D: Device>(device: &D, ids: &[u32], weight: f32, targets: &mut D::Targets) {
    device.load_targets(&Labels::plain(ids, weight), targets);
}
