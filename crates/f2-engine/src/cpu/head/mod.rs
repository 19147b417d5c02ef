//! Output heads: the plain softmax and F²'s.

mod chunks;
mod factorised;
mod plain;
mod posterior;
mod row;
mod targets;

use std::convert::Infallible;

use super::Cpu;
use super::memory::Buffer;
use crate::{DrawHead, Drawn, Error, F2Head, Heads, Labels, Parameter, SoftmaxHead, TokenLaw};
use targets::Targets;

impl Heads for Cpu {
    type Targets = Targets;
    type Draws = Infallible;

    fn targets(
        &self,
        positions: usize,
        width: usize,
        vocabulary: usize,
        classes: usize,
    ) -> Result<Targets, Error> {
        Targets::new(positions, width, vocabulary, classes)
    }

    fn target_bytes(positions: usize, width: usize, vocabulary: usize, classes: usize) -> usize {
        Targets::bytes(positions, width, vocabulary, classes)
    }

    fn load_targets(&self, labels: &Labels<'_>, to: &mut Targets) {
        to.load(labels);
    }

    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets) {
        to.reweigh(weights);
    }

    fn draws(&self, _rows: usize) -> Result<Option<Infallible>, Error> {
        Ok(None)
    }

    fn softmax_loss(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
    ) {
        plain::loss(self.products(), head, weights, targets, hidden, losses);
    }

    fn softmax_loss_backward(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
        d_hidden: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        plain::loss_backward(products, head, weights, targets, hidden, losses, d_hidden, gradients);
    }

    fn softmax_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        predictions: &mut Vec<u32>,
    ) {
        plain::predictions(self.products(), head, weights, targets, hidden, predictions);
    }

    fn f2_loss(
        &self,
        head: &F2Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
    ) {
        factorised::loss(self.products(), head, weights, targets, hidden, losses);
    }

    fn f2_loss_backward(
        &self,
        head: &F2Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
        d_hidden: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        factorised::loss_backward(
            products, head, weights, targets, hidden, losses, d_hidden, gradients,
        );
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Buffer,
        hidden: &Buffer,
        logits: &mut Buffer,
    ) {
        posterior::logits(self.products(), rows, matrix, weights, hidden, logits);
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer) {
        posterior::log_softmax(&self.threads, rows, columns, logits);
    }

    fn f2_log_posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Buffer,
        hidden: &Buffer,
        log_posterior: &mut Buffer,
    ) {
        posterior::f2_log_posterior(self.products(), rows, head, weights, hidden, log_posterior);
    }

    fn draw(
        &self,
        _head: DrawHead<'_>,
        _law: TokenLaw,
        _weights: &Buffer,
        _hidden: &Buffer,
        _uniforms: &[[f64; 2]],
        _logits: &mut Buffer,
        draws: &mut Infallible,
    ) -> Result<Vec<Drawn>, Error> {
        match *draws {}
    }
}
