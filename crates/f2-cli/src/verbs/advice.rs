//! What the user can do about an error of training.

use f2_lm::Error;

use crate::failure::{Failure, Kind};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Corpus(error) => return error.into(),
            error => error,
        };
        let failure = Self::new(kind(&error), &error);
        match advice(&error) {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    }
}

fn kind(error: &Error) -> Kind {
    match error {
        Error::ConfigSyntax { .. }
        | Error::UnknownKey { .. }
        | Error::ConfigValue { .. }
        | Error::VocabularyMismatch { .. }
        | Error::NoInitialModel { .. }
        | Error::InitialModelMismatch { .. }
        | Error::InitialClasses { .. }
        | Error::NothingToWatch
        | Error::Endless
        | Error::Strategy { .. }
        | Error::EmptyPrompt { .. }
        | Error::NotFinite { .. }
        | Error::RunExists { .. }
        | Error::ConfigChanged { .. }
        | Error::ShapeChanged { .. } => Kind::Usage,
        Error::WriteFile { .. } | Error::TooLittleMemory { .. } | Error::Engine(_) => Kind::Device,
        _ => Kind::Data,
    }
}

fn advice(error: &Error) -> Option<String> {
    Some(match error {
        Error::SplitTooShort { sequence, .. } => {
            format!("use more text, or a shorter window than {sequence}: `--set batch.sequence=…`")
        }
        Error::TooFewDocuments { .. } => {
            "use more text, or set a smaller `batch.size` or `batch.shortest`".to_owned()
        }
        Error::VocabularyMismatch { corpus, .. } => format!(
            "leave `model.vocabulary` out, or prepare the corpus with that vocabulary; it has {corpus}"
        ),
        Error::NoClasses { .. } => {
            "make them with `f2 classes CORPUS`, or train a plain softmax: `--objective mle`"
                .to_owned()
        }
        Error::ClassesMismatch { corpus, .. } => {
            format!("make classes for this corpus with `f2 classes {}`", corpus.display())
        }
        Error::ClassesChanged { .. } => {
            "name those it was begun with: `f2 train --resume RUN --classes FILE`".to_owned()
        }
        Error::CorpusChanged { .. } => {
            "name the corpus the run was trained on: `f2 train CORPUS --resume RUN`".to_owned()
        }
        Error::NotARun { .. } => "name the folder `f2 train --out` wrote".to_owned(),
        Error::NotAModel { .. } => {
            "name a run folder `f2 train` wrote, one of its checkpoints, or a model's folder"
                .to_owned()
        }
        Error::NoInitialModel { .. } => {
            "name one with `--init RUN`: one of `mle` for face, of `unlikelihood` for \
             unlikelihood-sequence"
                .to_owned()
        }
        Error::InitialModelMismatch { key, .. } => {
            format!(
                "leave `{key}` out, so that the run takes over the model's, or name another model"
            )
        }
        Error::InitialClasses { .. } => {
            "name a model with the head this objective trains; only f2 has classes".to_owned()
        }
        Error::InitialVocabulary { .. } => {
            "prepare the corpus with the model's tokenizer: `f2 prepare … --tokenizer \
             MODEL/tokenizer.json`"
                .to_owned()
        }
        Error::InitialModelChanged { .. } => "start a new run from it".to_owned(),
        Error::NothingToWatch => {
            "leave `evaluation.patience` out, or prepare the corpus with a validation split"
                .to_owned()
        }
        Error::ForeignCorpus { .. } => {
            "name the corpus the model was trained on, or give the text itself as a file".to_owned()
        }
        Error::Endless => {
            "say when to end: `--steps`, `--epochs`, `--tokens` or `--max-minutes`".to_owned()
        }
        Error::RunExists { path } => {
            format!(
                "go on with it by `f2 train --resume {}`, or choose another --out",
                path.display()
            )
        }
        Error::BadCheckpoint { .. } => {
            "another checkpoint of the run can be named: `RUN/checkpoints/step-N`".to_owned()
        }
        Error::ConfigChanged { differences } => {
            let allow: Vec<String> =
                differences.keys().map(|key| format!("--allow {key}")).collect();
            format!("to go on with the new values, add {}", allow.join(" "))
        }
        Error::ShapeChanged { .. } => "start a new run with other settings".to_owned(),
        Error::TooLittleMemory { .. } | Error::Engine(f2_engine::Error::OutOfMemory { .. }) => {
            "make micro-batches smaller (`--set batch.micro=1`) or windows shorter \
             (`--set batch.sequence=…`)"
                .to_owned()
        }
        Error::NotFinite { .. } => "the last checkpoint is as it was; lower the learning rate \
             (`--set optimiser.learning_rate=…`) or lengthen the warm-up \
             (`--set schedule.warmup_steps=…`)"
            .to_owned(),
        Error::WriteFile { .. } => {
            "free some space or choose another place; nothing was left half-written".to_owned()
        }
        _ => return None,
    })
}
