//! New tokens of sequences whose earlier ones are cached.

use f2_engine::Device;

use super::{Activations, Decoder, Pass};

/// What new tokens meet in place of the rest of their sequences.
pub struct NewTokens<'a, D: Device> {
    /// The tokens, sequence by sequence.
    pub tokens: &'a D::Indices,
    /// Which sequence each belongs to, and where in it.
    pub spans: &'a D::Spans,
    /// Keys and values of all tokens before; theirs are added.
    pub cache: &'a mut D::Cache,
}

impl Decoder {
    /// Hidden states of new tokens, left in [`Activations::hidden`], `[tokens, width]`. `pass` has
    /// as many positions as there are new tokens, and no dropout.
    pub fn forward_new<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        new: &mut NewTokens<'_, D>,
        activations: &mut Activations<D>,
    ) {
        let Activations { layers, stations, branch, .. } = activations;
        let start = &mut stations[0];
        let (device, weights) = (pass.device, pass.weights);
        device.embed_spans(self.embedding, weights, new.tokens, new.spans, &mut start.sum);
        self.norm_first(pass, start);
        for (layer, kept) in layers.iter_mut().enumerate() {
            let [start, middle, end] = &mut stations[2 * layer..2 * layer + 3] else {
                unreachable!("a block has three stations")
            };
            self.attend(pass, layer, start, kept, branch, middle, |kept| {
                let (qkv, out) = (&kept.qkv, &mut kept.attended);
                device.attention_cached(layer, new.spans, qkv, new.cache, out);
            });
            self.feed_forward(pass, layer, middle, kept, branch, end);
        }
    }
}
