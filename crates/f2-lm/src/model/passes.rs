//! The decoder's two passes over a batch: forward from tokens to hidden states, backward from the
//! gradient of the hidden states to that of every parameter below the head; and their buffers.

use std::ops::Range;

use f2_engine::{Device, Error, Sequences};

use super::block::{
    ActivationGradients, Attention, Backward, BlockActivations, Pass, Residual, Site,
};
use super::{Decoder, Model};
use crate::config::ModelConfig;

/// The activations a forward pass saves for its backward pass, and the gradients of activations in
/// that, allocated once for the largest batch.
pub(super) struct Activations<D: Device> {
    /// The residual stream before every block and after the last: `layers + 1`.
    pub(super) starts: Vec<Residual<D>>,
    /// The activations of each block; a single buffer with recomputation, which runs a block's
    /// forward pass again before its backward pass.
    pub(super) insides: Vec<Inside<D>>,
    /// Whether activations are recomputed.
    recomputes: bool,
    /// The output of a branch, added to the residual stream, and later its gradient,
    /// `[positions, width]`.
    pub(super) branch: D::Activations,
    pub(super) gradients: ActivationGradients<D>,
}

/// The activations of a block that its forward pass saves for its backward pass.
pub(super) struct Inside<D: Device> {
    block: BlockActivations<D>,
    /// The residual stream between the two branches.
    middle: Residual<D>,
    /// Of attention, `[heads, positions]`.
    log_sums: D::Floats,
}

impl<D: Device> Activations<D> {
    /// Buffers for batches of up to `positions` positions.
    pub(super) fn new(
        device: &D,
        decoder: &Decoder,
        positions: usize,
        recomputes: bool,
    ) -> Result<Self, Error> {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let columns = |columns: usize| device.activations(positions * columns);
        let starts = (0..=model.layers).map(|_| Residual::new(device, model, positions));
        let insides = (0..insides(model, recomputes)).map(|_| {
            Ok(Inside {
                block: BlockActivations::new(device, model, positions)?,
                middle: Residual::new(device, model, positions)?,
                log_sums: device.floats(positions * model.heads)?,
            })
        });
        Ok(Self {
            starts: starts.collect::<Result<_, Error>>()?,
            insides: insides.collect::<Result<_, Error>>()?,
            recomputes,
            branch: columns(width)?,
            gradients: ActivationGradients {
                normed: columns(width)?,
                stream: columns(width)?,
                wide: columns(inner.max(3 * width))?,
            },
        })
    }

    /// The bytes [`new`](Self::new) allocates on the device.
    pub(super) fn bytes(decoder: &Decoder, positions: usize, recomputes: bool) -> usize {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let insides = insides(model, recomputes);
        let residuals = model.layers + 1 + insides;
        let activations = insides * (4 * width + 2 * inner)
            + residuals * 2 * width
            + 3 * width
            + inner.max(3 * width);
        let floats = insides * model.heads + residuals * 2;
        positions * (activations * D::ACTIVATION_BYTES + floats * size_of::<f32>())
    }

    /// The hidden states the head reads, `[positions, width]`.
    pub(super) fn hidden(&self) -> &D::Activations {
        &self.starts[self.starts.len() - 1].normed
    }

    /// The hidden states, and the buffer of their gradient.
    pub(super) fn hidden_and_gradient(&mut self) -> (&D::Activations, &mut D::Activations) {
        (&self.starts[self.starts.len() - 1].normed, &mut self.gradients.normed)
    }
}

/// The number of blocks whose activations are saved.
fn insides(model: &ModelConfig, recomputes: bool) -> usize {
    if recomputes { 1 } else { model.layers }
}

impl<D: Device> Activations<D> {
    /// Computes the hidden states of a batch.
    pub(super) fn forward(&mut self, pass: &Pass<'_, D>, sequences: Sequences, tokens: &D::Tokens) {
        let decoder = &pass.model.decoder;
        let Self { starts, insides, branch, .. } = self;
        embed(pass, sequences, tokens, &mut starts[0]);
        for block in &decoder.blocks {
            let [start, end] = &mut starts[block.layer..][..2] else {
                unreachable!("the residual stream has a state before every block, and one more")
            };
            let place = block.layer % insides.len();
            let Inside { block: inside, middle, log_sums } = &mut insides[place];
            let attention = Attention::Full { sequences, log_sums };
            block.attention(pass, attention, start, inside, branch, middle);
            let next = decoder.norm_after(block.layer);
            block.feed_forward(pass, next, middle, inside, branch, end);
        }
    }

    /// Adds the gradients of every parameter below the head to `gradients`, from the gradient of
    /// the hidden states (see [`hidden_and_gradient`](Self::hidden_and_gradient)) after a
    /// [`forward`](Self::forward) of the same batch. Runs only some of the decoder's
    /// [`stages`](Decoder::stages); the calls must run all of them, in order.
    pub(super) fn backward(
        &mut self,
        pass: &Pass<'_, D>,
        sequences: Sequences,
        tokens: &D::Tokens,
        stages: Range<usize>,
        gradients: &mut D::Floats,
    ) {
        let Model { device, decoder, .. } = pass.model;
        let Self { starts, insides, recomputes, branch, gradients: activations } = self;
        let width = decoder.shape.model.width;
        if stages.start == 0 {
            device.zero_activations(pass.rows * width, &mut activations.stream);
        }
        let mut backward = Backward { pass, branch, activations, parameters: gradients };
        for block in decoder.blocks.iter().rev().take(stages.end).skip(stages.start) {
            let (start, end) = (&starts[block.layer], &starts[block.layer + 1]);
            let place = block.layer % insides.len();
            let Inside { block: inside, middle, log_sums } = &mut insides[place];
            // Those of the last block are still in the buffer.
            if *recomputes && block.layer + 1 < decoder.blocks.len() {
                let attention = Attention::Full { sequences, log_sums };
                block.attention(pass, attention, start, inside, backward.branch, middle);
                block.expand(pass, middle, inside);
            }
            let next = decoder.norm_after(block.layer);
            block.feed_forward_backward(&mut backward, next, [middle, end], inside);
            block.attention_backward(&mut backward, sequences, log_sums, [start, middle], inside);
        }
        if stages.end == decoder.stages() {
            embed_backward(&mut backward, sequences, tokens, &starts[0]);
        }
    }
}

fn embed<D: Device>(
    pass: &Pass<'_, D>,
    sequences: Sequences,
    tokens: &D::Tokens,
    start: &mut Residual<D>,
) {
    let Model { device, decoder, weights } = pass.model;
    let dropout = pass.dropout(Site::Embedding);
    device.embed(sequences, decoder.embedding, weights, tokens, dropout, &mut start.sum);
    let Residual { sum, normed, statistics } = start;
    let norm = decoder.blocks[0].attention_norm;
    device.norm(pass.rows, norm, weights, sum, normed, statistics);
}

fn embed_backward<D: Device>(
    backward: &mut Backward<'_, D>,
    sequences: Sequences,
    tokens: &D::Tokens,
    start: &Residual<D>,
) {
    let Backward { pass, activations, parameters, .. } = backward;
    let Model { device, decoder, weights } = pass.model;
    let ActivationGradients { normed: d_normed, stream: d_sum, .. } = &mut **activations;
    let norm = decoder.blocks[0].attention_norm;
    let Residual { sum, statistics, .. } = start;
    device.norm_backward(pass.rows, norm, weights, sum, statistics, d_normed, d_sum, parameters);
    let dropout = pass.dropout(Site::Embedding);
    device.embed_backward(sequences, decoder.embedding, tokens, dropout, d_sum, parameters);
}
