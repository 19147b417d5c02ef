//! From the gradient of the hidden states to that of every parameter below the head.

use f2_engine::Device;

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
        for (layer, kept) in layers.iter().enumerate().rev() {
            let [start, middle, end] = &stations[2 * layer..2 * layer + 3] else {
                unreachable!("a block has three stations")
            };
            self.feed_forward_backward(
                pass,
                layer,
                [middle, end],
                kept,
                d_branch,
                descent,
                gradients,
            );
            self.attend_backward(pass, layer, [start, middle], kept, d_branch, descent, gradients);
        }
        self.embed_backward(pass, &stations[0], descent, gradients);
    }

    #[allow(clippy::too_many_arguments, reason = "one half of a block names all it touches")]
    fn feed_forward_backward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        layer: usize,
        [middle, end]: [&Station<D>; 2],
        kept: &Kept<D>,
        d_branch: &mut D::Activations,
        descent: &mut Descent<D>,
        gradients: &mut D::Floats,
    ) {
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let block = &self.blocks[layer];
        let Descent { normed: d_normed, stream: d_sum, wide: d_before } = descent;
        device.residual_norm_backward(
            rows,
            self.norm_after(layer),
            weights,
            pass.dropout(self, Site::FeedForward(layer)),
            &end.sum,
            &end.statistics,
            d_normed,
            d_sum,
            d_branch,
            gradients,
        );
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

    #[allow(clippy::too_many_arguments, reason = "one half of a block names all it touches")]
    fn attend_backward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        layer: usize,
        [start, middle]: [&Station<D>; 2],
        kept: &Kept<D>,
        d_branch: &mut D::Activations,
        descent: &mut Descent<D>,
        gradients: &mut D::Floats,
    ) {
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let block = &self.blocks[layer];
        let Descent { normed: d_normed, stream: d_sum, wide: d_qkv } = descent;
        device.residual_norm_backward(
            rows,
            block.feed_forward_norm,
            weights,
            pass.dropout(self, Site::Attention(layer)),
            &middle.sum,
            &middle.statistics,
            d_normed,
            d_sum,
            d_branch,
            gradients,
        );
        let Kept { qkv, attended, log_sums, .. } = kept;
        // The norm's gradient has been used up, so its buffer is free for the heads'.
        let d_attended = &mut *d_normed;
        let out = block.attention_out;
        device.linear_backward(rows, out, weights, attended, d_branch, d_attended, gradients);
        let (sequences, heads) = (pass.sequences, self.heads);
        device.attention_backward(sequences, heads, qkv, attended, log_sums, d_attended, d_qkv);
        let input = &start.normed;
        device.linear_backward(rows, block.qkv, weights, input, d_qkv, d_normed, gradients);
    }

    fn embed_backward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        start: &Station<D>,
        descent: &mut Descent<D>,
        gradients: &mut D::Floats,
    ) {
        let Descent { normed: d_normed, stream: d_sum, .. } = descent;
        pass.device.norm_backward(
            pass.rows(),
            self.blocks[0].attention_norm,
            pass.weights,
            &start.sum,
            &start.statistics,
            d_normed,
            d_sum,
            gradients,
        );
        pass.device.embed_backward(
            pass.sequences,
            self.embedding,
            pass.tokens,
            pass.dropout(self, Site::Embedding),
            d_sum,
            gradients,
        );
    }
}
