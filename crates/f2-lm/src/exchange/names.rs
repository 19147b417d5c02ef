//! What GPT-2's tensors are called elsewhere, and how they lie.

use f2_engine::NamedParameter;

/// What the names of a `GPT2LMHeadModel`'s trunk begin with; those of a `GPT2Model` do not.
pub(super) const PREFIX: &str = "transformer.";
/// The output matrix, which is no part of the trunk.
pub(super) const OUTPUT: &str = "lm_head.weight";
/// The token embedding, without prefix: every GPT-2 has one.
pub(super) const EMBEDDING: &str = "wte.weight";

/// A parameter as `transformers` stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// Its name, without prefix.
    pub(super) name: String,
    /// Its shape there.
    pub(super) shape: Vec<usize>,
    /// Whether it is stored as `[inputs, outputs]`, the other way round.
    pub(super) transposed: bool,
}

impl Foreign {
    /// The name with the prefix of the trunk, which the output matrix never has.
    pub(super) fn prefixed(&self, prefix: &str) -> String {
        if self.name == OUTPUT { self.name.clone() } else { format!("{prefix}{}", self.name) }
    }
}

/// The place of one of our parameters in a GPT-2 of `transformers`; none for the class vectors,
/// which no GPT-2 has.
pub(super) fn foreign(named: &NamedParameter) -> Option<Foreign> {
    let (name, linear) = match named.name.as_str() {
        "embedding.tokens" => (EMBEDDING.to_owned(), false),
        "embedding.positions" => ("wpe.weight".to_owned(), false),
        "final_norm.gain" => ("ln_f.weight".to_owned(), false),
        "final_norm.bias" => ("ln_f.bias".to_owned(), false),
        "head.tokens" => (OUTPUT.to_owned(), false),
        name => {
            let (layer, part) = name.strip_prefix("block.")?.split_once('.')?;
            let (part, tensor) = part.rsplit_once('.')?;
            let (part, linear) = match part {
                "attention_norm" => ("ln_1", false),
                "qkv" => ("attn.c_attn", true),
                "attention_out" => ("attn.c_proj", true),
                "feed_forward_norm" => ("ln_2", false),
                "expand" => ("mlp.c_fc", true),
                "contract" => ("mlp.c_proj", true),
                _ => return None,
            };
            let tensor = if tensor == "bias" { "bias" } else { "weight" };
            (format!("h.{layer}.{part}.{tensor}"), linear && tensor == "weight")
        }
    };
    let mut shape = named.shape.clone();
    if linear {
        shape.reverse();
    }
    Some(Foreign { name, shape, transposed: linear })
}

/// Whether a tensor, named without prefix, is a causal mask: older versions stored those beside
/// the weights.
pub(super) fn is_mask(name: &str) -> bool {
    name.starts_with("h.") && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"))
}

/// `[rows, columns]` to `[columns, rows]`.
pub(super) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut turned = vec![0.0; values.len()];
    for (row, values) in values.chunks_exact(columns).enumerate() {
        for (column, value) in values.iter().enumerate() {
            turned[column * rows + row] = *value;
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::model::{Decoder, ModelShape};

    #[test]
    fn every_parameter_but_the_class_vectors_has_a_place() {
        let model = ModelConfig { layers: 1, ..ModelConfig::default() };
        let shape = ModelShape { model, positions: 8, vocabulary: 50, class_ends: vec![5, 50] };
        let decoder = Decoder::new(shape);
        let lines = decoder.layout.parameters().iter().map(|named| match foreign(named) {
            Some(found) => {
                format!("{} → {} {:?}\n", named.name, found.prefixed(PREFIX), found.shape)
            }
            None => format!("{} → nowhere\n", named.name),
        });
        insta::assert_snapshot!(lines.collect::<String>());
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let values: Vec<f32> = (0..6).map(|value| value as f32).collect();
        assert_eq!(transpose(&values, 2, 3), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(transpose(&transpose(&values, 2, 3), 3, 2), values);
    }
}
