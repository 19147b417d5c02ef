use f2_engine::{Device, F2Head, Labels};

use super::{LossGradients, LossPass, Objective};
use crate::config::ObjectiveName;
use crate::model::Head;

/// F²-Softmax: the cross-entropy of the class plus that of the token inside its class, each
/// class a dense product of its own.
#[derive(Clone, Copy, Debug)]
pub struct F2;

impl<D: Device> Objective<D> for F2 {
    fn name(&self) -> ObjectiveName {
        ObjectiveName::F2
    }

    fn loss_backward(&mut self, pass: LossPass<'_, D>, gradients: LossGradients<'_, D>) {
        let Head::F2(head) = pass.head else { panic!("F² has a head of classes") };
        load(pass.device, head, pass.ids, pass.weight, pass.targets);
        pass.device.f2_loss_backward(
            head,
            pass.weights,
            pass.targets,
            pass.hidden,
            pass.losses,
            gradients.d_hidden,
            gradients.parameters,
        );
    }
}

pub(super) fn load<D: Device>(
    device: &D,
    head: &F2Head,
    ids: &[u32],
    weight: f32,
    targets: &mut D::Targets,
) {
    device.load_targets(&Labels::classed(ids, weight, &head.ends), targets);
}
