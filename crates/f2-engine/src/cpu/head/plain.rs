//! The plain softmax: one pass over the whole output matrix.

use super::chunks::{self as head, Gradients, Vectors};
use super::targets::Targets;
use crate::cpu::product::{Products, Write};
use crate::cpu::simd::{Arithmetic, maximum, vectorised};
use crate::{IGNORED, SoftmaxHead};

fn vectors(head: SoftmaxHead, weights: &[f32]) -> Vectors<'_> {
    Vectors { rows: &weights[head.tokens.range()], width: head.tokens.columns, first: 0 }
}

pub(super) fn loss(
    products: Products<'_>,
    head: SoftmaxHead,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
    losses: &mut [f32],
) {
    let (likelihoods, penalties) = halves(targets, losses);
    let vectors = vectors(head, weights);
    head::loss(products, 0, vectors, targets, hidden, |position, [likelihood, penalty]| {
        likelihoods[position] = likelihood;
        penalties[position] = penalty;
    });
}

pub(super) fn loss_backward(
    products: Products<'_>,
    head: SoftmaxHead,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
    losses: &mut [f32],
    d_hidden: &mut [f32],
    gradients: &mut [f32],
) {
    let positions = targets.ids.len();
    if targets.order.len() < positions {
        d_hidden[..positions * head.tokens.columns].fill(0.0);
    }
    let (likelihoods, penalties) = halves(targets, losses);
    let vectors = vectors(head, weights);
    let d_vectors = &mut gradients[head.tokens.range()];
    let mut into = Gradients { d_hidden, write: Write::Overwrite, d_vectors };
    head::loss_backward(products, 0, vectors, targets, hidden, &mut into, |position, parts| {
        [likelihoods[position], penalties[position]] = parts;
    });
}

/// `losses: [2, positions]`, zero for positions that are ignored.
fn halves<'a>(targets: &Targets, losses: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
    let positions = targets.ids.len();
    let losses = &mut losses[..2 * positions];
    losses.fill(0.0);
    losses.split_at_mut(positions)
}

pub(super) fn predictions(
    products: Products<'_>,
    head: SoftmaxHead,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
    predictions: &mut Vec<u32>,
) {
    predictions.clear();
    predictions.resize(targets.ids.len(), IGNORED);
    let vectors = vectors(head, weights);
    let count = vectors.count();
    head::for_each_chunk(products, 0, vectors, targets, hidden, |positions, chunk| {
        let (logits, winners) = (&*chunk.logits, &mut chunk.losses[..positions.len()]);
        products.threads.zip_chunks([(winners, 1)], |row, [winner]| {
            // Ids are far below 2²⁴: a float holds them exactly.
            winner[0] = first_maximum(&logits[row * count..(row + 1) * count]) as f32;
        });
        for (&position, winner) in positions.iter().zip(winners) {
            predictions[position as usize] = *winner as u32;
        }
    });
    targets.predicted();
}

vectorised! {
    fn first_maximum(logits: &[f32]) -> usize = first_maximum_kernel
}

#[inline(always)]
fn first_maximum_kernel<A: Arithmetic>(logits: &[f32]) -> usize {
    let largest = maximum(logits);
    logits.iter().position(|&logit| logit == largest).unwrap_or(0)
}
