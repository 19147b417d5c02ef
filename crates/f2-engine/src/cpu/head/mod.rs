//! Output heads: a softmax over all tokens, or those of F² over classes and within each class.

mod chunks;
mod classes;
mod row;
mod targets;

use std::convert::Infallible;

use super::Cpu;
use super::memory::Buffer;
use super::product::{Matrix, Write};
use super::simd::{Arithmetic, dot, maximum, vectorised};
use crate::{Classes, Drawn, Error, Head, Heads, IGNORED, Labels, Parameter, Sampling};
use chunks::{Gradients, Vectors, for_each_chunk};
use row::{RowTarget, log_sum};
use targets::Targets;

impl Heads for Cpu {
    type Targets = Targets;
    type Draws = Infallible;

    fn targets(&self, positions: usize, head: &Head) -> Result<Targets, Error> {
        Targets::new(positions, head)
    }

    fn target_bytes(positions: usize, head: &Head) -> usize {
        Targets::bytes(positions, head)
    }

    fn load_targets(&self, head: &Head, labels: &Labels<'_>, to: &mut Targets) {
        to.load(head.class_ends(), labels);
    }

    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets) {
        to.reweigh(weights);
    }

    fn loss(
        &self,
        head: &Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
    ) {
        let products = self.products();
        let mut losses = Losses::cleared(head, targets, losses);
        if let Some(classes) = &head.classes {
            classes::logits(products, classes, weights, targets, hidden);
            classes::each_row(
                products.threads,
                classes,
                targets,
                losses.parts[0],
                |row, logits| row.loss(logits)[0],
            );
        }
        for class in 0..targets.classes() {
            let vectors = Vectors::of(head, class, weights);
            let record = |position, parts| losses.set(position, parts);
            chunks::loss(products, class, vectors, targets, hidden, record);
        }
    }

    fn loss_backward(
        &self,
        head: &Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
        d_hidden: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        let mut losses = Losses::cleared(head, targets, losses);
        let positions = targets.ids.len();
        if let Some(classes) = &head.classes {
            classes::logits(products, classes, weights, targets, hidden);
            let backward = |row: RowTarget<'_>, logits: &mut [f32]| row.loss_backward(logits)[0];
            classes::each_row(products.threads, classes, targets, losses.parts[0], backward);
            classes::propagate(products, classes, weights, targets, hidden, d_hidden, gradients);
        } else if targets.order.len() < positions {
            d_hidden[..positions * head.tokens.columns].fill(0.0);
        }
        // The softmax over classes has written the gradients of all hidden states.
        let write = if head.classes.is_some() { Write::Add } else { Write::Overwrite };
        for class in 0..targets.classes() {
            let vectors = Vectors::of(head, class, weights);
            let d_vectors = &mut gradients[head.part(class).1.range()];
            let mut into = Gradients { d_hidden, write, d_vectors };
            let record = |position, parts| losses.set(position, parts);
            chunks::loss_backward(products, class, vectors, targets, hidden, &mut into, record);
        }
    }

    fn predictions(
        &self,
        head: &Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        predictions: &mut Vec<u32>,
    ) {
        predictions.clear();
        predictions.resize(targets.ids.len(), IGNORED);
        let width = head.tokens.columns;
        let vectors = Vectors { rows: &weights[head.tokens.range()], width, first: 0 };
        let count = vectors.count();
        let products = self.products();
        for class in 0..targets.classes() {
            for_each_chunk(products, class, vectors, targets, hidden, |positions, chunk| {
                let (hidden, winners) = (chunk.hidden, &mut chunk.losses[..positions.len()]);
                let rows = [(&mut *chunk.logits, count), (&mut *winners, 1)];
                products.threads.zip_chunks(rows, |row, [logits, winner]| {
                    if let Some(classes) = &head.classes {
                        add_class_logs(classes, weights, &hidden[row * width..][..width], logits);
                    }
                    // `f32` represents ids below 2²⁴ exactly.
                    winner[0] = first_maximum(logits) as f32;
                });
                for (&position, winner) in positions.iter().zip(winners) {
                    predictions[position as usize] = *winner as u32;
                }
            });
        }
        if head.classes.is_none() {
            targets.predicted();
        }
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Buffer,
        hidden: &Buffer,
        logits: &mut Buffer,
    ) {
        let vectors = Matrix::rows(&weights[matrix.range()], matrix.columns).transposed();
        let hidden = Matrix::rows(hidden, matrix.columns);
        let dims = [rows, matrix.rows, matrix.columns];
        self.products().product(dims, hidden, vectors, logits, Write::Overwrite);
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer) {
        self.threads.zip_chunks([(&mut logits[..rows * columns], columns)], |_, [row]| {
            let log_sum = log_sum(row);
            for value in row {
                *value -= log_sum;
            }
        });
    }

    fn log_posterior(
        &self,
        rows: usize,
        head: &Head,
        weights: &Buffer,
        hidden: &Buffer,
        log_posterior: &mut Buffer,
    ) {
        let (vocabulary, width) = (head.tokens.rows, head.tokens.columns);
        self.logits(rows, head.tokens, weights, hidden, log_posterior);
        let Some(classes) = &head.classes else {
            return self.log_softmax(rows, vocabulary, log_posterior);
        };
        let out = &mut log_posterior[..rows * vocabulary];
        self.threads.zip_chunks([(out, vocabulary)], |row, [out]| {
            add_class_logs(classes, weights, &hidden[row * width..(row + 1) * width], out);
        });
    }

    fn draws(&self, _rows: usize) -> Result<Option<Infallible>, Error> {
        Ok(None)
    }

    fn can_draw(&self, _head: &Head) -> bool {
        false
    }

    fn draw(
        &self,
        _head: &Head,
        _sampling: &Sampling,
        _weights: &Buffer,
        _hidden: &Buffer,
        _uniforms: &[[f64; 2]],
        _logits: &mut Buffer,
        draws: &mut Infallible,
    ) -> Result<Vec<Drawn>, Error> {
        match *draws {}
    }
}

/// The two terms of every position's loss, zero at ignored positions.
struct Losses<'a> {
    parts: [&'a mut [f32]; 2],
    has_classes: bool,
}

impl<'a> Losses<'a> {
    fn cleared(head: &Head, targets: &Targets, losses: &'a mut [f32]) -> Self {
        let positions = targets.ids.len();
        let losses = &mut losses[..2 * positions];
        losses.fill(0.0);
        let (first, second) = losses.split_at_mut(positions);
        Self { parts: [first, second], has_classes: head.classes.is_some() }
    }

    /// Writes a token's likelihood and penalties. With classes, the first term is the class's and
    /// is not changed.
    fn set(&mut self, position: usize, [likelihood, penalties]: [f32; 2]) {
        let [first, second] = &mut self.parts;
        if self.has_classes {
            second[position] = likelihood;
        } else {
            (first[position], second[position]) = (likelihood, penalties);
        }
    }
}

/// Turns the logits of all tokens into log-posteriors, for one hidden state of an F² head.
fn add_class_logs(classes: &Classes, weights: &[f32], hidden: &[f32], tokens: &mut [f32]) {
    let vectors = weights[classes.vectors.range()].chunks(hidden.len());
    let logits: Vec<f32> = vectors.map(|vector| dot(hidden, vector)).collect();
    let class_sum = log_sum(&logits);
    for (class, logit) in logits.iter().enumerate() {
        let slice = &mut tokens[classes.members(class)];
        let shift = logit - class_sum - log_sum(slice);
        for value in slice {
            *value += shift;
        }
    }
}

vectorised! {
    fn first_maximum(logits: &[f32]) -> usize = first_maximum_kernel
}

#[inline(always)]
fn first_maximum_kernel<A: Arithmetic>(logits: &[f32]) -> usize {
    let largest = maximum(logits);
    logits.iter().position(|&logit| logit == largest).unwrap_or(0)
}
