//! From the gradient of the hidden states to that of every parameter below the head.

use f2_engine::{Device, Norm};

use super::activations::{Descent, Kept, Station};
use super::pass::Site;
use super::{Activations, Decoder, Pass};

impl Decoder {
    /// Adds the gradients of every parameter below the head to `gradients`, from the gradient of
    /// the hidden states (see [`Activations::hidden_and_gradient`]) after a
    /// [`forward`](Self::forward) with the same `pass`.
    pub fn backward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        activations: &mut Activations<D>,
        gradients: &mut D::Floats,
    ) {
        let Activations { layers, stations, branch: d_branch, descent } = activations;
        pass.device.zero_activations(pass.rows() * self.shape.model.width, &mut descent.stream);
        let mut way_down = WayDown { decoder: self, pass, d_branch, descent, gradients };
        for (layer, kept) in layers.iter().enumerate().rev() {
            let [start, middle, end] = &stations[2 * layer..2 * layer + 3] else {
                unreachable!("a block has three stations")
            };
            way_down.feed_forward(layer, [middle, end], kept);
            way_down.attend(layer, [start, middle], kept);
        }
        way_down.embed(&stations[0]);
    }
}

/// A backward pass between two stations.
struct WayDown<'a, D: Device> {
    decoder: &'a Decoder,
    pass: &'a Pass<'a, D>,
    /// Of what a branch added to the residual stream, `[positions, width]`.
    d_branch: &'a mut D::Activations,
    descent: &'a mut Descent<D>,
    gradients: &'a mut D::Floats,
}

impl<D: Device> WayDown<'_, D> {
    fn feed_forward(&mut self, layer: usize, [middle, end]: [&Station<D>; 2], kept: &Kept<D>) {
        self.residual(self.decoder.norm_after(layer), Site::FeedForward(layer), end);
        let Self { decoder, pass, d_branch, descent, gradients } = self;
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let block = &decoder.blocks[layer];
        let Descent { normed: d_normed, wide: d_before, .. } = &mut **descent;
        let Kept { before_gelu, expanded, .. } = kept;
        device.linear_backward_gelu(
            rows,
            block.contract,
            weights,
            before_gelu,
            expanded,
            d_branch,
            d_before,
            gradients,
        );
        let (input, expand) = (&middle.normed, block.expand);
        device.linear_backward(rows, expand, weights, input, d_before, d_normed, gradients);
    }

    fn attend(&mut self, layer: usize, [start, middle]: [&Station<D>; 2], kept: &Kept<D>) {
        let block = &self.decoder.blocks[layer];
        self.residual(block.feed_forward_norm, Site::Attention(layer), middle);
        let Self { decoder, pass, d_branch, descent, gradients } = self;
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let Descent { normed: d_normed, wide: d_qkv, .. } = &mut **descent;
        let Kept { qkv, attended, log_sums, .. } = kept;
        // The norm's gradient has been used up, so its buffer is free for the heads'.
        let d_attended = &mut *d_normed;
        let out = block.attention_out;
        device.linear_backward(rows, out, weights, attended, d_branch, d_attended, gradients);
        let (sequences, heads) = (pass.sequences, decoder.heads);
        device.attention_backward(sequences, heads, qkv, attended, log_sums, d_attended, d_qkv);
        let input = &start.normed;
        device.linear_backward(rows, block.qkv, weights, input, d_qkv, d_normed, gradients);
    }

    /// Through the norm after a branch and into the branch, whose gradient is then in `d_branch`.
    fn residual(&mut self, norm: Norm, site: Site, after: &Station<D>) {
        let Self { decoder, pass, d_branch, descent, gradients } = self;
        let Descent { normed: d_normed, stream: d_sum, .. } = &mut **descent;
        pass.device.residual_norm_backward(
            pass.rows(),
            norm,
            pass.weights,
            pass.dropout(decoder, site),
            &after.sum,
            &after.statistics,
            d_normed,
            d_sum,
            d_branch,
            gradients,
        );
    }

    fn embed(&mut self, start: &Station<D>) {
        let Self { decoder, pass, descent, gradients, .. } = self;
        let Descent { normed: d_normed, stream: d_sum, .. } = &mut **descent;
        let (rows, weights) = (pass.rows(), pass.weights);
        let norm = decoder.blocks[0].attention_norm;
        let Station { sum, statistics, .. } = start;
        pass.device.norm_backward(rows, norm, weights, sum, statistics, d_normed, d_sum, gradients);
        let (sequences, embedding) = (pass.sequences, decoder.embedding);
        let dropout = pass.dropout(decoder, Site::Embedding);
        pass.device.embed_backward(sequences, embedding, pass.tokens, dropout, d_sum, gradients);
    }
}
