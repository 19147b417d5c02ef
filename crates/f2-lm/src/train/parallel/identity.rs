//! The properties of a run that must be the same on all ranks.

use f2_engine::Device;
use f2_ranks::Fingerprint;

use crate::config::{TrainConfig, flatten};
use crate::run::Manifest;

/// The properties of a run that must be the same on all ranks.
pub(in crate::train) struct RunIdentity<'a> {
    pub(in crate::train) config: &'a TrainConfig,
    /// Its corpus, classes and initial model, whose folders may differ between ranks.
    pub(in crate::train) manifest: &'a Manifest,
    /// The step of the checkpoint it continues from.
    pub(in crate::train) checkpoint: Option<u64>,
}

impl RunIdentity<'_> {
    pub(in crate::train) fn fingerprint<D: Device>(&self, device: &D) -> Fingerprint {
        let Self { config, manifest, checkpoint } = self;
        let mut print = Fingerprint::default();
        print.add("the version", &env!("CARGO_PKG_VERSION"));
        print.add("the device", &device.name());
        print.add("the bytes of an activation", &D::ACTIVATION_BYTES);
        let corpus = &manifest.corpus;
        print.add("the counts of the corpus", &corpus.counts_sha256);
        print.add("the tokenizer of the corpus", &corpus.tokenizer_sha256);
        print.add("the training tokens of the corpus", &corpus.train_tokens);
        print.add("the validation tokens of the corpus", &corpus.valid_tokens);
        let or_none = |value: Option<&String>| value.map_or("none".to_owned(), String::clone);
        print.add("the frequency classes", &or_none(manifest.classes_sha256.as_ref()));
        let initial = manifest.initial.as_ref().map(|initial| &initial.sha256);
        print.add("the initial model", &or_none(initial));
        let checkpoint = checkpoint.map_or("none".to_owned(), |step| format!("step {step}"));
        print.add("the checkpoint", &checkpoint);
        for (key, value) in flatten(config) {
            print.add(format!("the setting {key}"), &value);
        }
        print
    }
}
