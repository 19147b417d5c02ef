//! Output heads: the plain softmax and F²'s.

mod draw;
mod factorised;
mod plain;
mod posterior;
mod softmax;
mod targets;

use super::memory::{Buffer, Indices, Weights};
use super::runtime::{Grid, arguments};
use super::{Cuda, Precision};
use crate::{DrawHead, Drawn, Error, F2Head, Heads, Labels, Parameter, SoftmaxHead, TokenLaw};
use draw::Draws;
use plain::Gradients;
use targets::Targets;

impl<P: Precision> Heads for Cuda<P> {
    type Targets = Targets<P::Element>;
    type Draws = Draws;

    fn targets(
        &self,
        positions: usize,
        width: usize,
        vocabulary: usize,
        classes: usize,
    ) -> Result<Targets<P::Element>, Error> {
        Targets::new(&self.stream, positions, width, vocabulary, classes)
    }

    fn target_bytes(positions: usize, width: usize, vocabulary: usize, classes: usize) -> usize {
        Targets::<P::Element>::bytes(positions, width, vocabulary, classes)
    }

    fn load_targets(&self, labels: &Labels<'_>, to: &mut Targets<P::Element>) {
        to.load(labels);
    }

    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets<P::Element>) {
        to.reweigh(weights);
    }

    fn draws(&self, rows: usize) -> Result<Option<Draws>, Error> {
        Draws::new(&self.stream, rows).map(Some)
    }

    fn softmax_loss(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
    ) {
        self.plain_loss(head, weights, targets, hidden, losses, None);
    }

    fn softmax_loss_backward(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
        d_hidden: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let gradients = Gradients { d_hidden, parameters: gradients };
        self.plain_loss(head, weights, targets, hidden, losses, Some(&gradients));
    }

    fn softmax_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        predictions: &mut Indices,
    ) {
        predictions.resize(targets.positions);
        self.plain_predictions(head, weights, targets, hidden, predictions.start());
    }

    fn f2_loss(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
    ) {
        self.factorised_loss(head, weights, targets, hidden, losses, None);
    }

    fn f2_loss_backward(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
        d_hidden: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let gradients = Gradients { d_hidden, parameters: gradients };
        self.factorised_loss(head, weights, targets, hidden, losses, Some(&gradients));
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        logits: &mut Buffer<f32>,
    ) {
        self.logits_at(rows, matrix, weights, hidden, logits.at(0));
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer<f32>) {
        self.launch("log_softmax", Grid::blocks(rows, 512), arguments![columns, logits.at(0)]);
    }

    fn f2_log_posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        log_posterior: &mut Buffer<f32>,
    ) {
        self.posterior(rows, head, weights, hidden, log_posterior);
    }

    fn draw(
        &self,
        head: DrawHead<'_>,
        law: TokenLaw,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        uniforms: &[[f64; 2]],
        logits: &mut Buffer<f32>,
        draws: &mut Draws,
    ) -> Result<Vec<Drawn>, Error> {
        self.draw_tokens(head, law, weights, hidden, uniforms, logits, draws)
    }
}
