//! `config.json`: the configuration of a model in `transformers`.

use std::path::{Path, PathBuf};

use f2_classes::FrequencyClasses;
use f2_engine::Norm;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ExchangeError;
use super::files::read_text;
use super::remote;
use crate::config::{ModelConfig, TrainConfig};
use crate::model::ModelShape;

/// The file's name.
pub(super) const CONFIG: &str = "config.json";

const GPT2: &str = "gpt2";

/// GPT-2's activation under the names it goes by: GELU in its tanh form.
const ACTIVATIONS: [&str; 4] = ["gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_accurate"];
/// The classes of `transformers` that are a trunk, or a trunk with a language model's head; and
/// that of F² models.
const CLASSES: [&str; 4] = ["GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel", remote::CLASS];

/// The settings that determine the parameters and the computation.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Gpt2Config {
    model_type: String,
    architectures: Option<Vec<String>>,
    vocab_size: usize,
    n_positions: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_inner: Option<usize>,
    activation_function: Option<String>,
    layer_norm_epsilon: Option<f32>,
    resid_pdrop: Option<f64>,
    scale_attn_weights: Option<bool>,
    scale_attn_by_inverse_layer_idx: Option<bool>,
    add_cross_attention: Option<bool>,
    tie_word_embeddings: Option<bool>,
    /// Where each frequency class of an F² model ends.
    class_ends: Option<Vec<u32>>,
    #[serde(skip)]
    path: PathBuf,
}

impl Gpt2Config {
    /// Reads and checks the configuration of a model folder.
    pub(super) fn read(folder: &Path) -> Result<Self, ExchangeError> {
        let path = folder.join(CONFIG);
        let text = read_text(&path)?;
        let bad = |error: serde_json::Error| ExchangeError::bad(&path, error.to_string());
        let value: Value = serde_json::from_str(&text).map_err(bad)?;
        // Checked before the sizes, which have other names in other models.
        let architecture =
            |found: String| ExchangeError::Architecture { path: path.clone(), found };
        match value["model_type"].as_str() {
            Some(GPT2 | remote::MODEL_TYPE) => {}
            Some(name) => return Err(architecture(format!("a model of type `{name}`"))),
            None => return Err(architecture("no `model_type`".to_owned())),
        }
        let config = Self::deserialize(value).map_err(bad)?;
        let config = Self { path, ..config };
        config.check_class()?;
        config.check_variant()?;
        config.check_sizes()?;
        config.check_classes()?;
        Ok(config)
    }

    fn check_class(&self) -> Result<(), ExchangeError> {
        let mut classes = self.architectures.iter().flatten();
        match classes.find(|class| !CLASSES.contains(&class.as_str())) {
            Some(class) => Err(ExchangeError::Architecture {
                path: self.path.clone(),
                found: format!("a `{class}`"),
            }),
            None => Ok(()),
        }
    }

    /// Refuses models whose outputs would differ here.
    fn check_variant(&self) -> Result<(), ExchangeError> {
        let variant = |key, found: String, needed| {
            let path = self.path.clone();
            Err(ExchangeError::Variant { path, key, found, needed })
        };
        if let Some(name) = &self.activation_function
            && !ACTIVATIONS.contains(&name.as_str())
        {
            return variant("activation_function", name.clone(), "GPT-2's `gelu_new`");
        }
        if let Some(epsilon) = self.layer_norm_epsilon
            && epsilon != Norm::EPSILON
        {
            return variant("layer_norm_epsilon", epsilon.to_string(), "1e-5");
        }
        if self.scale_attn_weights == Some(false) {
            return variant("scale_attn_weights", "false".to_owned(), "scaled attention");
        }
        if self.scale_attn_by_inverse_layer_idx == Some(true) {
            let key = "scale_attn_by_inverse_layer_idx";
            return variant(key, "true".to_owned(), "the same scale in every layer");
        }
        if self.add_cross_attention == Some(true) {
            return variant(
                "add_cross_attention",
                "true".to_owned(),
                "no second text to attend to",
            );
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ExchangeError> {
        let mut config = TrainConfig { model: self.model(false), ..TrainConfig::default() };
        config.model.vocabulary = Some(self.vocab_size);
        (config.batch.sequence, config.batch.size) = (self.n_positions, 1);
        match config.violation() {
            Some(reason) => Err(ExchangeError::bad(&self.path, reason)),
            None => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), ExchangeError> {
        let bad = |reason: String| Err(ExchangeError::bad(&self.path, reason));
        match (self.is_f2(), &self.class_ends) {
            (false, _) => Ok(()),
            (true, None) => bad("an F² model needs `class_ends`".to_owned()),
            (true, Some(ends)) => {
                let ends = ends.iter().map(|end| *end as usize).collect();
                match FrequencyClasses::new(ends) {
                    Err(error) => bad(format!("`class_ends`: {error}")),
                    Ok(classes) if classes.vocabulary() != self.vocab_size => bad(format!(
                        "`class_ends` end at {}, `vocab_size` is {}",
                        classes.vocabulary(),
                        self.vocab_size
                    )),
                    Ok(_) => Ok(()),
                }
            }
        }
    }

    /// Whether the head is an F² head.
    pub(super) fn is_f2(&self) -> bool {
        self.model_type == remote::MODEL_TYPE
    }

    /// Where each frequency class ends; empty for a plain model.
    pub(super) fn class_ends(&self) -> &[u32] {
        if self.is_f2() { self.class_ends.as_deref().unwrap_or_default() } else { &[] }
    }

    /// Whether embedding and output matrix are declared to be tied.
    pub(super) fn asks_for_tying(&self) -> bool {
        self.tie_word_embeddings.unwrap_or(true)
    }

    /// The decoder it describes.
    pub(super) fn shape(&self, tied: bool) -> ModelShape {
        let (positions, vocabulary) = (self.n_positions, self.vocab_size);
        let class_ends = self.class_ends().to_vec();
        ModelShape { model: self.model(tied), positions, vocabulary, class_ends }
    }

    fn model(&self, tied: bool) -> ModelConfig {
        ModelConfig {
            layers: self.n_layer,
            width: self.n_embd,
            heads: self.n_head,
            feed_forward: self.n_inner.unwrap_or(self.n_embd.saturating_mul(4)),
            dropout: self.resid_pdrop.unwrap_or(0.1),
            tied,
            ..ModelConfig::default()
        }
    }
}

/// The `transformers` class of an exported model.
pub fn class(shape: &ModelShape) -> &'static str {
    if shape.class_ends.is_empty() { "GPT2LMHeadModel" } else { remote::CLASS }
}

/// The configuration of a decoder, for `transformers` to read. `end_of_text` is the id of the
/// token that ends a text.
pub(super) fn describe(shape: &ModelShape, end_of_text: Option<u32>) -> Value {
    let model = &shape.model;
    let is_f2 = !shape.class_ends.is_empty();
    let mut config = json!({
        "architectures": [class(shape)],
        "model_type": if is_f2 { remote::MODEL_TYPE } else { GPT2 },
        "vocab_size": shape.vocabulary,
        "n_positions": shape.positions,
        "n_embd": model.width,
        "n_layer": model.layers,
        "n_head": model.heads,
        "n_inner": model.feed_forward,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "embd_pdrop": model.dropout,
        "resid_pdrop": model.dropout,
        // Dropout acts after attention here, never inside it.
        "attn_pdrop": 0.0,
        "tie_word_embeddings": model.tied,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "pad_token_id": end_of_text,
        "dtype": "float32",
    });
    if is_f2 {
        config["class_ends"] = json!(shape.class_ends);
        config["auto_map"] = remote::auto_map();
    }
    config
}
