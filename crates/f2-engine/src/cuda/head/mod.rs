//! Output heads: a softmax over all tokens, or F²'s over classes and within each.

mod draw;
mod loss;
mod targets;

use super::memory::{Buffer, Indices, Weights};
use super::product::{Matrix, Target};
use super::runtime::{Address, Grid, kernels};
use super::{Cuda, Precision};
use crate::{Classes, Drawn, Error, Head, Heads, IGNORED, Labels, Parameter, Sampling};
use draw::Draws;
use loss::Gradients;
use targets::Targets;

kernels! {
    FILL_WORDS: (usize, u32, Address) = fill_words;
    FIRST_MAXIMA: (usize, usize, Address, Address, Address) = first_maxima;
    LOG_SOFTMAX: (usize, Address) = log_softmax;
    F2_POSTERIOR: (usize, usize, Address, Address, Address) = f2_posterior;
    SOFTMAX_SHORT_ROWS: (usize, usize, usize, usize, Address, Address, Address, Address, Address, bool, Address, Address) = softmax_short_rows;
    SOFTMAX_LONG_ROWS: (usize, usize, usize, Address, Address, Address, bool, Address, Address, Address, Address, Address, Address, f32, f32) = softmax_long_rows;
    DRAW_TOKENS: (usize, usize, Address, Address, Address, bool, f64, usize, f64, Address, Address, Address) = draw_tokens;
}

impl<P: Precision> Heads for Cuda<P> {
    type Targets = Targets<P::Element>;
    type Draws = Draws;

    fn targets(&self, positions: usize, head: &Head) -> Result<Targets<P::Element>, Error> {
        Targets::new(&self.stream, positions, head)
    }

    fn target_bytes(positions: usize, head: &Head) -> usize {
        Targets::<P::Element>::bytes(positions, head)
    }

    fn load_targets(&self, head: &Head, labels: &Labels<'_>, to: &mut Targets<P::Element>) {
        to.load(head, labels);
    }

    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets<P::Element>) {
        to.reweigh(weights);
    }

    fn loss(
        &self,
        head: &Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
    ) {
        self.loss_and_gradients(head, weights, targets, hidden, losses, None);
    }

    fn loss_backward(
        &self,
        head: &Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
        d_hidden: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let gradients = Gradients { d_hidden, parameters: gradients };
        self.loss_and_gradients(head, weights, targets, hidden, losses, Some(&gradients));
    }

    /// Uses logits in full precision: rounded ones would often tie.
    fn predictions(
        &self,
        head: &Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        predictions: &mut Indices,
    ) {
        let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
        let positions = targets.positions;
        predictions.resize(positions);
        let arguments = (positions, IGNORED, predictions.start());
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(FILL_WORDS, Grid::items(positions), arguments) };
        let (entries, order) = (targets.entries(), targets.order());
        self.gather_rows(entries, width, order, hidden.at(0), targets.hidden.at(0));
        for chunk in targets.chunks(0..entries, vocabulary, size_of::<f32>()) {
            let hidden = targets.hidden.at(chunk.start * width);
            let logits = targets.logits.at(0);
            self.logits_at(chunk.len(), head.tokens, weights, hidden, logits);
            if let Some(classes) = &head.classes {
                self.add_class_logs(chunk.len(), head, classes, weights, hidden, logits);
            }
            // SAFETY: the operation's buffers have these sizes.
            unsafe {
                self.launch(
                    FIRST_MAXIMA,
                    Grid::blocks(chunk.len(), 256),
                    (vocabulary, chunk.start, order, logits, predictions.start()),
                );
            }
        }
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        logits: &mut Buffer<f32>,
    ) {
        self.logits_at(rows, matrix, weights, hidden.at(0), logits.at(0));
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer<f32>) {
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(LOG_SOFTMAX, Grid::blocks(rows, 512), (columns, logits.at(0))) };
    }

    fn log_posterior(
        &self,
        rows: usize,
        head: &Head,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        log_posterior: &mut Buffer<f32>,
    ) {
        let Some(classes) = &head.classes else {
            self.logits(rows, head.tokens, weights, hidden, log_posterior);
            return self.log_softmax(rows, head.tokens.rows, log_posterior);
        };
        let (hidden, to) = (hidden.at(0), log_posterior.at(0));
        self.logits_at(rows, head.tokens, weights, hidden, to);
        self.add_class_logs(rows, head, classes, weights, hidden, to);
    }

    fn draws(&self, rows: usize) -> Result<Option<Draws>, Error> {
        Draws::new(&self.stream, rows).map(Some)
    }

    fn can_draw(&self, head: &Head) -> bool {
        draw::is_possible(head)
    }

    fn draw(
        &self,
        head: &Head,
        sampling: &Sampling,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        uniforms: &[[f64; 2]],
        logits: &mut Buffer<f32>,
        draws: &mut Draws,
    ) -> Result<Vec<Drawn>, Error> {
        let rows = uniforms.len();
        let is_joint = sampling.class.is_none();
        self.logits_at(rows, head.tokens, weights, hidden.at(0), logits.at(0));
        let mut by_class = Some([0, 0]);
        if let Some(classes) = &head.classes {
            if is_joint {
                self.add_class_logs(rows, head, classes, weights, hidden.at(0), logits.at(0));
            }
            by_class = self.class_logits(rows, classes, weights, hidden.at(0));
        }
        let Some(by_class) = by_class else {
            // Out of memory; the failure is recorded.
            return self.stream.synchronise().map(|()| Vec::new());
        };
        self.draw_tokens(head, sampling, by_class, uniforms, logits, draws);
        draws.read(rows)
    }
}

impl<P: Precision> Cuda<P> {
    /// `logits: [rows, matrix.rows]`.
    fn logits_at(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Weights<P>,
        hidden: u64,
        logits: u64,
    ) {
        let vectors = Matrix::new(weights.real(matrix), matrix.columns).transposed();
        let hidden = Matrix::new(hidden, matrix.columns);
        let to = Target::float(logits, matrix.rows);
        self.product([rows, matrix.rows, matrix.columns], hidden, vectors, to);
    }

    /// The addresses of the classes' ends and of their logits in scratch, `[rows, classes]`;
    /// `None`, with the failure recorded, if out of memory.
    fn class_logits(
        &self,
        rows: usize,
        classes: &Classes,
        weights: &Weights<P>,
        hidden: u64,
    ) -> Option<[u64; 2]> {
        let ends: Vec<u64> = classes.ends.chunks(2).map(pair).collect();
        let ends = self.lists.load(&self.stream, &ends)?;
        let logits = self.scratch(rows * classes.count() * size_of::<f32>())?;
        self.logits_at(rows, classes.vectors, weights, hidden, logits);
        Some([ends, logits])
    }

    /// Turns the logits of all tokens, `[rows, vocabulary]`, into log-posteriors.
    fn add_class_logs(
        &self,
        rows: usize,
        head: &Head,
        classes: &Classes,
        weights: &Weights<P>,
        hidden: u64,
        logits: u64,
    ) {
        let by_class = self.class_logits(rows, classes, weights, hidden);
        let Some([ends, class_logits]) = by_class else { return };
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                F2_POSTERIOR,
                Grid::blocks(rows, 256).by(classes.count()),
                (classes.count(), head.tokens.rows, ends, class_logits, logits),
            );
        }
    }
}

/// Packs one or two words into one, the first in the lower half.
fn pair(words: &[u32]) -> u64 {
    u64::from(words[0]) | words.get(1).map_or(0, |&word| u64::from(word) << 32)
}
