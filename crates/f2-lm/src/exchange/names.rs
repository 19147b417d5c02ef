//! Names and layouts of the tensors in a folder of `transformers`.

use f2_engine::NamedParameter;

/// The prefix of the trunk's tensors in a model with a head; a bare `GPT2Model` has none.
pub(super) const PREFIX: &str = "transformer.";
/// The first matrix of the head: the token vectors of a plain model, the class vectors of an F²
/// model. The shape of the latter makes `GPT2LMHeadModel` refuse the file, which would otherwise
/// load with a head that was never trained.
pub(super) const OUTPUT: &str = "lm_head.weight";
/// The token vectors of an F² model that are not tied to the embedding.
pub(super) const F2_TOKENS: &str = "lm_head.tokens.weight";
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
    /// The name with the prefix of the trunk, which the head's tensors never have.
    pub(super) fn prefixed(&self, prefix: &str) -> String {
        if self.name.starts_with("lm_head.") {
            self.name.clone()
        } else {
            format!("{prefix}{}", self.name)
        }
    }
}

/// The tensor of `transformers` that holds a parameter of a decoder.
pub(super) fn foreign(named: &NamedParameter, is_f2: bool) -> Foreign {
    let find = || {
        let (name, linear) = place(&named.name, is_f2)?;
        let mut shape = named.shape.clone();
        if linear {
            shape.reverse();
        }
        Some(Foreign { name, shape, transposed: linear })
    };
    find().expect("every parameter of a decoder has a tensor")
}

/// The name of a parameter's tensor, and whether it is stored transposed.
fn place(name: &str, is_f2: bool) -> Option<(String, bool)> {
    let own = match name {
        "embedding.tokens" => EMBEDDING,
        "embedding.positions" => "wpe.weight",
        "final_norm.gain" => "ln_f.weight",
        "final_norm.bias" => "ln_f.bias",
        "head.tokens" if is_f2 => F2_TOKENS,
        "head.classes" | "head.tokens" => OUTPUT,
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
            return Some((format!("h.{layer}.{part}.{tensor}"), linear && tensor == "weight"));
        }
    };
    Some((own.to_owned(), false))
}

/// Whether a tensor, named without prefix, is a causal mask: older versions stored those beside
/// the weights.
pub(super) fn is_mask(name: &str) -> bool {
    name.starts_with("h.") && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"))
}

/// Transposes `[rows, columns]` to `[columns, rows]`.
pub(super) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut transposed = vec![0.0; values.len()];
    for (row, values) in values.chunks_exact(columns).enumerate() {
        for (column, value) in values.iter().enumerate() {
            transposed[column * rows + row] = *value;
        }
    }
    transposed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::model::{Decoder, ModelShape};

    #[test]
    fn every_parameter_has_a_tensor() {
        let mut lines = Vec::new();
        for class_ends in [vec![], vec![5, 50]] {
            let is_f2 = !class_ends.is_empty();
            let model = ModelConfig { layers: 1, ..ModelConfig::default() };
            let decoder =
                Decoder::new(ModelShape { model, positions: 8, vocabulary: 50, class_ends });
            for named in decoder.layout.parameters() {
                let found = foreign(named, is_f2);
                let name = found.prefixed(PREFIX);
                lines.push(format!("{} → {name} {:?}", named.name, found.shape));
            }
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let values: Vec<f32> = (0..6).map(|value| value as f32).collect();
        assert_eq!(transpose(&values, 2, 3), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(transpose(&transpose(&values, 2, 3), 3, 2), values);
    }
}
