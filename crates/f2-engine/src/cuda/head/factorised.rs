//! F²-Softmax: a softmax over classes for every position, and one within the target's class.

use super::plain::Gradients;
use super::softmax::{Rows, Softmax};
use super::targets::{Targets, stride};
use crate::F2Head;
use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::product::{Matrix, Target};
use crate::cuda::{Cuda, Precision};

impl<P: Precision> Cuda<P> {
    /// Likelihoods of classes and of tokens in them, and gradients where they are wanted.
    pub(super) fn factorised_loss(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &Buffer<f32>,
        gradients: Option<&Gradients<'_, P::Element>>,
    ) {
        losses.zero(0..2 * targets.positions);
        self.class_loss(head, weights, targets, hidden, losses, gradients);
        let (entries, width, order) = (targets.entries(), head.tokens.columns, targets.order());
        self.gather_rows(entries, width, order, hidden.at(0), targets.hidden.at(0));
        for group in targets.groups() {
            let softmax = Softmax {
                vectors: head.tokens.slice(group.members.clone()),
                entries: group.entries.clone(),
                hidden: targets.hidden.at(0),
                d_hidden: gradients.map(|_| targets.d_hidden.at(0)),
                losses: [losses.at(targets.positions), 0],
            };
            let parameters = gradients.map(|gradients| gradients.parameters);
            self.softmax_head(&softmax, weights, targets, parameters);
        }
        if let Some(gradients) = gradients {
            let places = [order, targets.d_hidden.at(0), gradients.d_hidden.at(0)];
            self.scatter_rows(entries, width, true, places);
        }
    }

    /// The softmax over classes; overwrites the gradient of the hidden states.
    fn class_loss(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &Buffer<f32>,
        gradients: Option<&Gradients<'_, P::Element>>,
    ) {
        let (classes, width) = (head.classes.rows, head.classes.columns);
        let positions = targets.positions;
        let matrix = Matrix::new(weights.real(head.classes), width);
        let hidden = Matrix::new(hidden.at(0), width);
        let logits = targets.class_logits.at(0);
        let to = Target::real(logits, stride(classes));
        self.product([positions, classes, width], hidden, matrix.transposed(), to);
        self.softmax_short_rows(&Rows {
            logits,
            count: positions,
            columns: classes,
            first: 0,
            aims: targets.class_aims(),
            losses: losses.at(0),
            backward: gradients.is_some(),
        });
        if let Some(Gradients { d_hidden, parameters }) = gradients {
            let d_logits = Matrix::new(logits, stride(classes));
            let to = Target::real(d_hidden.at(0), width);
            self.product([positions, width, classes], d_logits, matrix, to);
            let to = Target::sum(parameters.at(head.classes.offset), width);
            self.product([classes, width, positions], d_logits.transposed(), hidden, to);
        }
    }
}
