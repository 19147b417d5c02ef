//! The flags of contrastive decoding.

use std::path::PathBuf;

use clap::Args;
use f2_lm::decode::Contrast;
use f2_lm::run::{Pick, SavedModel};

use crate::failure::Failure;

#[derive(Args, Debug, Default)]
pub(in crate::verbs::generate) struct ContrastFlags {
    /// Contrastive decoding: prefer tokens that MODEL finds likelier than this amateur does, a
    /// model with the same tokenizer. Greedy unless a temperature, a truncation or a beam is given.
    #[arg(long, value_name = "AMATEUR", conflicts_with_all = ["gpus", "interactive"])]
    contrast: Option<PathBuf>,
    /// Contrastive decoding: keep tokens at least this share as likely as the most likely
    /// [default: 0.1].
    #[arg(long, value_name = "P", requires = "contrast")]
    contrast_alpha: Option<f64>,
    /// Contrastive decoding: sharpen (below 1) or flatten the amateur's probabilities [default: 1].
    #[arg(long, value_name = "T", requires = "contrast")]
    amateur_temperature: Option<f64>,
}

impl ContrastFlags {
    pub(super) fn is_given(&self) -> bool {
        self.contrast.is_some()
    }

    pub(super) fn contrast(&self) -> Option<Contrast> {
        let usual = Contrast::default();
        self.contrast.as_ref().map(|_| Contrast {
            alpha: self.contrast_alpha.unwrap_or(usual.alpha),
            temperature: self.amateur_temperature.unwrap_or(usual.temperature),
        })
    }

    /// The amateur for a model; `None` without the flag.
    pub(in crate::verbs::generate) fn amateur(
        &self,
        model: &SavedModel,
    ) -> Result<Option<SavedModel>, Failure> {
        let Some(path) = &self.contrast else { return Ok(None) };
        let amateur = SavedModel::open(path, Pick::Best)?;
        amateur.check_amateur_of(model)?;
        Ok(Some(amateur))
    }
}
