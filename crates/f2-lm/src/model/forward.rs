//! From tokens to hidden states.

use f2_engine::{Device, Norm};

use super::activations::{Kept, Station};
use super::pass::Site;
use super::{Activations, Decoder, Pass};

impl Decoder {
    /// Hidden states of a batch, left in [`Activations::hidden`], `[positions, width]`.
    pub fn forward<D: Device>(&self, pass: &Pass<'_, D>, activations: &mut Activations<D>) {
        let Activations { layers, stations, branch, .. } = activations;
        self.embed(pass, &mut stations[0]);
        for (layer, kept) in layers.iter_mut().enumerate() {
            let [start, middle, end] = &mut stations[2 * layer..2 * layer + 3] else {
                unreachable!("a block has three stations")
            };
            self.attend(pass, layer, start, kept, branch, middle);
            self.feed_forward(pass, layer, middle, kept, branch, end);
        }
    }

    /// The norm that follows block `layer`: the next block's first, or the final one.
    pub(super) fn norm_after(&self, layer: usize) -> Norm {
        self.blocks.get(layer + 1).map_or(self.final_norm, |block| block.attention_norm)
    }

    fn embed<D: Device>(&self, pass: &Pass<'_, D>, start: &mut Station<D>) {
        let Pass { device, sequences, weights, tokens, .. } = *pass;
        let dropout = pass.dropout(self, Site::Embedding);
        device.embed(sequences, self.embedding, weights, tokens, dropout, &mut start.sum);
        device.norm(
            pass.rows(),
            self.blocks[0].attention_norm,
            weights,
            &start.sum,
            &mut start.normed,
            &mut start.statistics,
        );
    }

    fn attend<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        layer: usize,
        start: &Station<D>,
        kept: &mut Kept<D>,
        branch: &mut D::Activations,
        middle: &mut Station<D>,
    ) {
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let block = &self.blocks[layer];
        let Kept { qkv, attended, log_sums, .. } = kept;
        device.linear(rows, block.qkv, weights, &start.normed, qkv);
        device.attention(pass.sequences, self.heads, qkv, attended, log_sums);
        device.linear(rows, block.attention_out, weights, attended, branch);
        device.residual_norm(
            rows,
            block.feed_forward_norm,
            weights,
            pass.dropout(self, Site::Attention(layer)),
            &start.sum,
            branch,
            &mut middle.sum,
            &mut middle.normed,
            &mut middle.statistics,
        );
    }

    fn feed_forward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        layer: usize,
        middle: &Station<D>,
        kept: &mut Kept<D>,
        branch: &mut D::Activations,
        end: &mut Station<D>,
    ) {
        let (device, weights, rows) = (pass.device, pass.weights, pass.rows());
        let block = &self.blocks[layer];
        let Kept { before_gelu, expanded, .. } = kept;
        device.linear_gelu(rows, block.expand, weights, &middle.normed, before_gelu, expanded);
        device.linear(rows, block.contract, weights, expanded, branch);
        device.residual_norm(
            rows,
            self.norm_after(layer),
            weights,
            pass.dropout(self, Site::FeedForward(layer)),
            &middle.sum,
            branch,
            &mut end.sum,
            &mut end.normed,
            &mut end.statistics,
        );
    }
}
