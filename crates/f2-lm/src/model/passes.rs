//! The decoder's two passes over a batch: forward from tokens to hidden states, backward from the
//! gradient of the hidden states to that of every parameter below the head.

use f2_engine::{Device, Norm, Sequences};

use super::block::{ActivationGradients, Attention, Backward, Pass, Residual, Site};
use super::{Activations, Decoder, Model};

impl<D: Device> Activations<D> {
    /// Computes the hidden states of a batch.
    pub(super) fn forward(&mut self, pass: &Pass<'_, D>, sequences: Sequences, tokens: &D::Tokens) {
        let decoder = &pass.model.decoder;
        let Self { residuals, blocks, log_sums, branch, .. } = self;
        embed(pass, sequences, tokens, &mut residuals[0]);
        for ((block, inside), log_sums) in decoder.blocks.iter().zip(blocks).zip(log_sums) {
            let [start, middle, end] = &mut residuals[2 * block.layer..][..3] else {
                unreachable!("the residual stream has two states to a block, and one more")
            };
            let attention = Attention::Full { sequences, log_sums };
            block.attention(pass, attention, start, inside, branch, middle);
            let next = decoder.norm_after(block.layer);
            block.feed_forward(pass, next, middle, inside, branch, end);
        }
    }

    /// Adds the gradients of every parameter below the head to `gradients`, from the gradient of
    /// the hidden states (see [`hidden_and_gradient`](Self::hidden_and_gradient)) after a
    /// [`forward`](Self::forward) of the same batch.
    pub(super) fn backward(
        &mut self,
        pass: &Pass<'_, D>,
        sequences: Sequences,
        tokens: &D::Tokens,
        gradients: &mut D::Floats,
    ) {
        let Model { device, decoder, .. } = pass.model;
        let Self { residuals, blocks, log_sums, branch, gradients: activations } = self;
        let width = decoder.shape.model.width;
        device.zero_activations(pass.rows * width, &mut activations.stream);
        let mut backward = Backward { pass, branch, activations, parameters: gradients };
        let layers = decoder.blocks.iter().zip(blocks).zip(log_sums);
        for ((block, inside), log_sums) in layers.rev() {
            let [start, middle, end] = &residuals[2 * block.layer..][..3] else {
                unreachable!("the residual stream has two states to a block, and one more")
            };
            let next = decoder.norm_after(block.layer);
            block.feed_forward_backward(&mut backward, next, [middle, end], inside);
            block.attention_backward(&mut backward, sequences, log_sums, [start, middle], inside);
        }
        embed_backward(&mut backward, sequences, tokens, &residuals[0]);
    }
}

impl Decoder {
    /// The norm that follows block `layer`: the next block's first, or the final one.
    pub(super) fn norm_after(&self, layer: usize) -> Norm {
        self.blocks.get(layer + 1).map_or(self.final_norm, |block| block.attention_norm)
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
