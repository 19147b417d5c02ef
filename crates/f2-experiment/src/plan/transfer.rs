//! Transfer from another text.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A model that is pretrained on another text and then trained with F², and one from scratch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transfer {
    /// The other text, or its corpus; paths are relative to the folder of the plan.
    pub pretrain: Vec<PathBuf>,
    /// Steps of pretraining; by default, those of a model trained from scratch.
    pub pretraining_steps: Option<u64>,
    /// Steps of the transferred F² and of F² from scratch; same default.
    pub steps: Option<u64>,
}

impl Transfer {
    pub(super) fn resolve(&mut self, folder: &Path) {
        self.pretrain.iter_mut().for_each(|path| *path = folder.join(&path));
    }
}
