//! `state.json`: the training state.

use std::collections::BTreeMap;

use f2_files::{FileRecord, is_file_name};
use serde::{Deserialize, Deserializer, Serialize};

use crate::perplexity::Contexts;

/// The version of the checkpoint format.
const FORMAT: u32 = 2;

/// `state.json`: the training state, and the checksums of the checkpoint's other files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingState {
    /// The version of the checkpoint format.
    pub format: u32,
    /// Steps done.
    pub step: u64,
    /// Steps that changed the parameters: those not skipped.
    pub updates: u64,
    /// Targets predicted.
    pub tokens: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Steps skipped in a row just before.
    pub skipped_in_a_row: u32,
    /// The best validation perplexity so far.
    #[serde(deserialize_with = "read_best")]
    pub best: Option<Best>,
    /// Evaluations in a row since then; missing in files from before early stopping.
    #[serde(default)]
    pub evaluations_since_best: u64,
    /// Whether the evaluation after this step is still to be made, because the run was stopped
    /// before it or in it.
    #[serde(default)]
    pub evaluation_due: bool,
    /// The state of the objective.
    pub objective: serde_json::Value,
    /// The fewest tokens of a document, if the model is trained on single documents; missing if it
    /// is not, and in files from before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_document: Option<usize>,
    /// The token between source and target, if the model is trained on pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<u32>,
    /// The name of the device it was trained on.
    pub device: String,
    /// The number of threads it was trained with.
    pub threads: usize,
    /// The other files of the checkpoint.
    pub files: BTreeMap<String, FileRecord>,
    /// SHA-256 of this file with this field empty.
    pub checksum: String,
}

/// The best validation perplexity and where it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Steps done then.
    pub step: u64,
    /// With the full posterior; a finite number.
    pub perplexity: f64,
}

/// Earlier versions could record a best perplexity that was not finite, which JSON has as `null`:
/// it is ignored.
fn read_best<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Best>, D::Error> {
    #[derive(Deserialize)]
    struct Written {
        step: u64,
        perplexity: Option<f64>,
    }
    let written = Option::<Written>::deserialize(deserializer)?;
    Ok(written.and_then(|Written { step, perplexity }| {
        perplexity.map(|perplexity| Best { step, perplexity })
    }))
}

impl TrainingState {
    /// The state before the first step.
    pub fn start(device: &str, threads: usize) -> Self {
        Self {
            format: FORMAT,
            step: 0,
            updates: 0,
            tokens: 0,
            seconds: 0.0,
            skipped_in_a_row: 0,
            best: None,
            evaluations_since_best: 0,
            evaluation_due: false,
            objective: serde_json::Value::Null,
            shortest_document: None,
            separator: None,
            device: device.to_owned(),
            threads,
            files: BTreeMap::new(),
            checksum: String::new(),
        }
    }

    /// Records the contexts the model is trained with.
    pub(crate) fn trained_on(&mut self, contexts: Contexts) {
        (self.shortest_document, self.separator) = match contexts {
            Contexts::Text => (None, None),
            Contexts::Documents { shortest } => (Some(shortest), None),
            Contexts::Pairs { separator } => (None, Some(separator)),
        };
    }

    /// The text of `state.json`, its checksum filled in.
    pub(super) fn to_json(&self) -> String {
        f2_files::seal(&Self { checksum: String::new(), ..self.clone() }.text())
    }

    /// Reads `state.json`; the error says what is wrong with it.
    pub(super) fn from_json(text: &str) -> Result<Self, String> {
        let state: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if state.format != FORMAT {
            return Err(format!("its format is {}, this program reads {FORMAT}", state.format));
        }
        if !f2_files::is_sealed(text, &state.checksum) {
            return Err("its content does not match its checksum".to_owned());
        }
        match state.files.keys().find(|name| !is_file_name(name)) {
            Some(name) => Err(format!("`{name}` is not the name of a file in this folder")),
            None => Ok(state),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a state has nothing JSON cannot say")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_back_what_it_wrote(step: u64, seconds in 0.0..1e9_f64, perplexity in 1.0..1e9_f64) {
            let best = Some(Best { step, perplexity });
            let state = TrainingState { step, seconds, best, ..TrainingState::start("cpu", 2) };
            let read = TrainingState::from_json(&state.to_json()).unwrap();
            prop_assert_eq!(read.best, state.best);
            prop_assert_eq!(read.seconds.to_bits(), state.seconds.to_bits());
        }
    }

    /// A checkpoint as it was written before early stopping existed.
    #[test]
    fn a_state_from_before_early_stopping_is_read() {
        let text = TrainingState { step: 41, ..TrainingState::start("cpu", 2) }.text();
        let older = text.replace("  \"evaluations_since_best\": 0,\n", "");
        assert_ne!(older, text);
        let sealed = f2_files::seal(&older);
        let state = TrainingState::from_json(&sealed).unwrap();
        assert_eq!((state.step, state.evaluations_since_best), (41, 0));
        let changed = sealed.replace("\"step\": 41", "\"step\": 42");
        assert!(TrainingState::from_json(&changed).unwrap_err().contains("checksum"));
    }

    /// A checkpoint as it was written with a best perplexity that was not finite.
    #[test]
    fn a_best_that_is_no_number_is_none() {
        let best = Some(Best { step: 3, perplexity: f64::INFINITY });
        let text = TrainingState { best, ..TrainingState::start("cpu", 2) }.to_json();
        assert!(text.contains("\"perplexity\": null"), "{text}");
        assert_eq!(TrainingState::from_json(&text).unwrap().best, None);
    }

    #[test]
    fn a_changed_number_is_found_out() {
        let text = TrainingState { step: 41, ..TrainingState::start("cpu", 2) }.to_json();
        let changed = text.replace("\"step\": 41", "\"step\": 42");
        assert!(TrainingState::from_json(&changed).unwrap_err().contains("checksum"));
        assert!(TrainingState::from_json(&text[..text.len() / 2]).is_err());
    }
}
