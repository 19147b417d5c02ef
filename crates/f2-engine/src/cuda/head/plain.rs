//! The plain softmax: one pass over the whole output matrix.

use super::softmax::Softmax;
use super::targets::Targets;
use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::product::{Matrix, Target};
use crate::cuda::runtime::{Grid, arguments};
use crate::cuda::{Cuda, Precision};
use crate::{IGNORED, SoftmaxHead};

/// Where gradients go.
pub(super) struct Gradients<'a, E> {
    pub(super) d_hidden: &'a Buffer<E>,
    pub(super) parameters: &'a Buffer<f32>,
}

impl<P: Precision> Cuda<P> {
    /// Likelihoods and penalties of all positions, and gradients where they are wanted.
    pub(super) fn plain_loss(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &Buffer<f32>,
        gradients: Option<&Gradients<'_, P::Element>>,
    ) {
        let (positions, width) = (targets.positions, head.tokens.columns);
        let entries = targets.entries();
        losses.zero(0..2 * positions);
        // Where every position counts, entries are positions: nothing has to be moved.
        let all = entries == positions;
        let from = if all { hidden } else { &targets.hidden };
        if !all {
            self.gather_rows(entries, width, targets.order(), hidden.at(0), from.at(0));
        }
        let to =
            gradients.map(|gradients| if all { gradients.d_hidden } else { &targets.d_hidden });
        let softmax = Softmax {
            vectors: head.tokens,
            entries: 0..entries,
            hidden: from.at(0),
            d_hidden: to.map(|to| to.at(0)),
            losses: [losses.at(0), losses.at(positions)],
        };
        let parameters = gradients.map(|gradients| gradients.parameters);
        self.softmax_head(&softmax, weights, targets, parameters);
        if let (Some(Gradients { d_hidden, .. }), false) = (gradients, all) {
            d_hidden.zero(0..positions * width);
            let places = [targets.order(), targets.d_hidden.at(0), d_hidden.at(0)];
            self.scatter_rows(entries, width, false, places);
        }
    }

    /// The most likely tokens, from logits in full precision: rounded ones would often tie.
    pub(super) fn plain_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        predictions: u64,
    ) {
        let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
        let positions = targets.positions;
        let arguments = arguments![positions, IGNORED, predictions];
        self.launch("fill_words", Grid::items(positions), arguments);
        let (entries, order) = (targets.entries(), targets.order());
        self.gather_rows(entries, width, order, hidden.at(0), targets.hidden.at(0));
        let matrix = Matrix::new(weights.real(head.tokens), width).transposed();
        for chunk in targets.chunks(0..entries, vocabulary, size_of::<f32>()) {
            let hidden = Matrix::new(targets.hidden.at(chunk.start * width), width);
            let logits = targets.logits.at(0);
            let to = Target::float(logits, vocabulary);
            self.product([chunk.len(), vocabulary, width], hidden, matrix, to);
            self.launch(
                "first_maxima",
                Grid::blocks(chunk.len(), 256),
                arguments![vocabulary, chunk.start, order, logits, predictions],
            );
        }
    }
}
