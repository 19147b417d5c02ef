//! How a model was trained, as far as its checkpoint and run record it.

use crate::run::checkpoint::{self, STATE};
use crate::run::{RunFolder, SavedModel};

/// Facts for the model card. All are missing for a model without its run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Training {
    /// The name of the corpus's folder.
    pub(super) corpus: Option<String>,
    /// Tokens of the training split.
    pub(super) corpus_tokens: Option<u64>,
    /// The objective, by its name in the settings.
    pub(super) objective: Option<String>,
    /// Steps and predicted tokens.
    pub(super) progress: Option<(u64, u64)>,
    /// Validation perplexity of the full posterior at this very step.
    pub(super) perplexity: Option<f64>,
}

impl Training {
    /// Reads what is available; a damaged run does not prevent the export.
    pub(super) fn of(model: &SavedModel) -> Self {
        let mut training = Self::default();
        if model.folder.join(STATE).exists()
            && let Ok(state) = checkpoint::read_state(&model.folder)
        {
            training.progress = Some((state.step, state.tokens));
            let own = state.best.filter(|best| best.step == state.step);
            training.perplexity = own.map(|best| best.perplexity);
        }
        let run = model.folder.parent().and_then(std::path::Path::parent);
        if let Some(Ok(run)) = run.map(RunFolder::open) {
            let corpus = &run.manifest.corpus;
            training.corpus =
                corpus.path.file_name().map(|name| name.to_string_lossy().into_owned());
            training.corpus_tokens = Some(corpus.train_tokens);
            training.objective = Some(run.config.objective.name.as_str().to_owned());
        }
        training
    }
}
