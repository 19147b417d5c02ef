//! Transfer from another text.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A model that is pretrained on another text and fine-tuned with F², beside one that is not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transfer {
    /// The other text, or its corpus; paths go from the folder of the plan.
    pub pretrain: Vec<PathBuf>,
    /// Steps of pretraining; as many as a model is trained from scratch where it is missing.
    pub pretraining_steps: Option<u64>,
    /// Steps of fine-tuning, and of F² from scratch; likewise.
    pub steps: Option<u64>,
}

impl Transfer {
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.pretrain.iter_mut().for_each(|path| *path = folder.join(&path));
    }
}
