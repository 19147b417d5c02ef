//! The values of the runs for the paper's tables of hyperparameters.

use std::collections::BTreeMap;

use f2_report::results::RunResult;

use super::Made;
use crate::stages::{Purpose, Subject};
use crate::{Error, Plan};

/// The paper's names of hyperparameters, with the names of the settings.
const SETTINGS: [(&str, &str); 14] = [
    ("layers", "model.layers"),
    ("width", "model.width"),
    ("feed-forward width", "model.feed_forward"),
    ("heads", "model.heads"),
    ("dropout", "model.dropout"),
    ("sequence length", "batch.sequence"),
    ("vocabulary", "model.vocabulary"),
    ("batch", "batch.size"),
    ("learning rate", "optimiser.learning_rate"),
    ("gradient clipping", "optimiser.clip"),
    ("weight decay", "optimiser.weight_decay"),
    ("beta1", "optimiser.beta1"),
    ("beta2", "optimiser.beta2"),
    ("epsilon", "optimiser.epsilon"),
];

/// The decoder has no dropout of attention weights.
const ATTENTION_DROPOUT: f64 = 0.0;

impl Made<'_> {
    /// The values for the paper's tables, with those of fine-tuning if a model was fine-tuned.
    pub(super) fn hyperparameters(
        self,
        plan: &Plan,
        runs: &[RunResult],
    ) -> Result<BTreeMap<String, f64>, Error> {
        let Some(first) = runs.first() else { return Ok(BTreeMap::new()) };
        let setting = |run: &RunResult, key: &str| run.settings.get(key)?.parse::<f64>().ok();
        let mut values: BTreeMap<String, f64> = SETTINGS
            .iter()
            .filter_map(|(name, key)| Some(((*name).to_owned(), setting(first, key)?)))
            .collect();
        let mut add = |name: &str, value: f64| {
            values.insert(name.to_owned(), value);
        };
        add("attention dropout", ATTENTION_DROPOUT);
        add("parameters (M)", first.parameters as f64 / 1e6);
        add("prefix", plan.generation.prefix as f64);
        add("continuation", plan.generation.continuation as f64);
        add("top-k", plan.generation.k as f64);
        let fine_tuned = |subject: &Subject| {
            subject.is_fine_tuned() && self.folder(&Purpose::Train(*subject)).is_some()
        };
        let fine_tuned = plan.models.iter().map(|model| Subject::Model(*model)).find(fine_tuned);
        if let Some(run) = fine_tuned.map(|subject| self.run(subject)).transpose()?.flatten() {
            add("fine-tuning steps", run.steps as f64);
            if let Some(rate) = setting(&run, "optimiser.learning_rate") {
                add("fine-tuning learning rate", rate);
            }
        }
        Ok(values)
    }
}
