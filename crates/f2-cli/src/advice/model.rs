//! Advice on errors of training, generation and perplexity.

use f2_lm::Error;
use f2_lm::config::Origin;
use f2_lm::decode::Truncations;
use f2_lm::memory::Purpose;

use crate::failure::{CHECK_NAME, FREE_THREADS, Failure, Kind, advice_on_writing};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Corpus(error) => return error.into(),
            Error::Lock(error) => return error.into(),
            Error::ClassesOfNoUse => {
                return Self::usage("--classes: a plain softmax has no frequency classes")
                    .advise("leave it out, or train with `--objective f2`");
            }
            error => error,
        };
        Self::new(kind(&error), &error).advise_if(advice(&error))
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
        | Error::OrderOfPairs
        | Error::ObjectiveOfPairs { .. }
        | Error::Endless
        | Error::TooManyRanks { .. }
        | Error::MicroBatch { .. }
        | Error::Ranks(f2_ranks::Error::Launch { .. } | f2_ranks::Error::Different { .. })
        | Error::Strategy { .. }
        | Error::EmptyPrompt { .. }
        | Error::NotFinite { .. }
        | Error::ParametersNotFinite { .. }
        | Error::RunExists { .. }
        | Error::FolderTaken { .. }
        | Error::ConfigChanged { .. }
        | Error::ShapeChanged { .. } => Kind::Usage,
        Error::Write(_) | Error::TooLittleMemory { .. } | Error::Ranks(_) | Error::Engine(_) => {
            Kind::Device
        }
        _ => Kind::Data,
    }
}

/// Advice on a run that has lost a rank.
const RESUME: &str = "the last checkpoint is complete: resume with `f2 train --resume RUN`, on any \
                      number of ranks";

fn ranks(error: &f2_ranks::Error) -> &'static str {
    match error {
        f2_ranks::Error::Launch { .. } => {
            "start all ranks with one launcher, or unset the variable to train alone"
        }
        f2_ranks::Error::Listen { .. } => "set MASTER_PORT to a free port",
        f2_ranks::Error::Unreachable { .. } | f2_ranks::Error::Absent { .. } => {
            "check that all ranks were started, that MASTER_ADDR is the host of rank 0 and that the \
             port is open; `--rank-timeout` gives them more time"
        }
        f2_ranks::Error::Different { .. } => {
            "start all ranks with the same program, flags, corpus and run folder"
        }
        f2_ranks::Error::Start { .. } | f2_ranks::Error::Threads { .. } => FREE_THREADS,
        f2_ranks::Error::Ended { .. } => "its own error message, if any, is above",
        f2_ranks::Error::Lost { .. } | f2_ranks::Error::Failed { .. } => RESUME,
    }
}

/// Advice on divergence.
const LOWER_RATE: &str = "lower the learning rate (`--set optimiser.learning_rate=…`) or lengthen \
                          the warm-up (`--set schedule.warmup_steps=…`)";

fn advice(error: &Error) -> Option<String> {
    Some(match error {
        Error::SplitTooShort { sequence, .. } => {
            format!("use more text, or a shorter window than {sequence}: `--set batch.sequence=…`")
        }
        // The vocabulary of the model itself: there is no setting to leave out.
        Error::VocabularyMismatch { place, .. } if place.starts_with("the model in ") => {
            "prepare the corpus with the model's tokenizer: `f2 prepare … --tokenizer \
             MODEL/tokenizer.json`"
                .to_owned()
        }
        Error::VocabularyMismatch { corpus, .. } => format!(
            "leave `model.vocabulary` out, or prepare the corpus with that vocabulary; it has {corpus}"
        ),
        Error::ClassesMismatch { corpus, .. } => {
            format!("make classes for this corpus with `f2 classes {}`", corpus.display())
        }
        Error::InitialModelMismatch { key, origin, found, .. } => {
            let takes_over = "so that the run takes over the model's, or name another model";
            match origin {
                Some(Origin::Preset(preset)) => {
                    format!("leave `--preset {preset}` out, {takes_over}")
                }
                Some(Origin::Caller(words)) => format!("leave `{words}` out, {takes_over}"),
                Some(Origin::File { .. }) => {
                    format!("leave `{key}` out of the file, {takes_over}")
                }
                Some(Origin::FineTuning) | None => format!(
                    "take over the model's with `--set {key}={found}`, or name another model"
                ),
            }
        }
        Error::NotFinite { kept, .. } => {
            let kept = kept.map_or_else(
                || "there is no checkpoint from before".to_owned(),
                |step| format!("the checkpoint of step {step}, from before, is kept"),
            );
            format!("{kept}; {LOWER_RATE}")
        }
        Error::RunExists { path } => {
            format!(
                "resume it with `f2 train --resume {}`, or choose another --out",
                path.display()
            )
        }
        Error::ConfigChanged { differences } => {
            let allow: Vec<String> =
                differences.keys().map(|key| format!("--allow {key}")).collect();
            format!("to resume with the new values, add {}", allow.join(" "))
        }
        error => return general_advice(error).map(str::to_owned),
    })
}

/// Advice that does not depend on the details of the error.
fn general_advice(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::TooFewDocuments { .. } => {
            "use more text, or set a smaller `batch.size` or `batch.shortest`"
        }
        Error::NoTarget { .. } => "make the corpus again with `f2 prepare --pairs`",
        Error::OrderOfPairs => "leave `batch.order` out: pairs set it themselves",
        Error::ObjectiveOfPairs { .. } => "train with mle, f2, face or unlikelihood",
        Error::NoPairs { .. } => {
            "prepare pairs with `f2 prepare --pairs`, with the model's tokenizer"
        }
        Error::NotTrainedOnPairs { .. } => "train a model on this corpus: `f2 train CORPUS`",
        Error::DocumentsTooShort { .. } => {
            "use longer documents, or train with a smaller `batch.shortest`"
        }
        Error::ShortDocuments { .. } => {
            "take a corpus of longer documents or another `--split`, shorten `--prefix` and \
             `--continuation`, or cut the text as it comes with `--protocol paper`"
        }
        Error::OneDocument { .. } => {
            "prepare the text with document boundaries, such as `f2 prepare --documents lines`, or \
             cut it as one text with `--protocol paper`"
        }
        Error::NoClasses { .. } => {
            "make them with `f2 classes CORPUS`, or train a plain softmax: `--objective mle`"
        }
        Error::ClassesChanged { .. } => {
            "name those it was started with: `f2 train --resume RUN --classes FILE`"
        }
        Error::CorpusChanged { .. } => {
            "name the corpus the run was trained on: `f2 train CORPUS --resume RUN`"
        }
        Error::NotARun { .. } => "name the folder `f2 train --out` wrote",
        Error::NotAModel { .. } => {
            "name a run folder `f2 train` wrote, one of its checkpoints, or a model's folder"
        }
        Error::NoInitialModel { .. } => {
            "name one with `--init RUN`: one of `mle` for face, of `unlikelihood` for \
             unlikelihood-sequence"
        }
        Error::InitialClasses { .. } => {
            "name a model with the head this objective trains; only f2 has classes"
        }
        Error::InitialVocabulary { .. } => {
            "prepare the corpus with the model's tokenizer: `f2 prepare … --tokenizer \
             MODEL/tokenizer.json`"
        }
        Error::InitialModelChanged { .. } => "start a new run from it",
        Error::NothingToWatch => {
            "leave `evaluation.patience` out, or prepare the corpus with a validation split"
        }
        Error::ForeignCorpus { .. } => {
            "prepare the corpus with the model's tokenizer (`f2 prepare … --tokenizer MODEL`), or give \
             the text itself as a file"
        }
        Error::Endless => "say when to end: `--steps`, `--epochs`, `--tokens` or `--max-minutes`",
        Error::TooManyRanks { .. } => "start fewer, or raise `--set batch.size=N`",
        Error::MicroBatch { .. } => "leave `batch.micro` out, or give a number that divides them",
        Error::Ranks(error) => ranks(error),
        Error::Engine(f2_engine::Error::Exchange { .. }) => RESUME,
        Error::Engine(f2_engine::Error::Threads { .. }) => FREE_THREADS,
        Error::FolderTaken { .. } => "choose another --out",
        Error::BadCheckpoint { .. } => {
            "another checkpoint of the run can be named: `RUN/checkpoints/step-N`"
        }
        Error::ShapeChanged { .. } => "start a new run with other settings",
        Error::TooLittleMemory { purpose, .. } => less_memory(*purpose),
        Error::Engine(f2_engine::Error::OutOfMemory { .. }) => {
            "use less at a time: `--set batch.micro=1` to train, a smaller `--batch` to generate"
        }
        Error::Engine(_) => {
            "`f2 doctor` shows what this machine offers; `--device cpu` works everywhere"
        }
        Error::Strategy { option, .. } => return strategy(option),
        Error::EmptyPrompt { .. } => "give at least one token, such as a space or a line break",
        Error::TooFewTokens { .. } => "give a longer text",
        Error::TokenOutside { .. } => {
            "the corpus is damaged or of another tokenizer: make it again with `f2 prepare`"
        }
        Error::NoProbabilities => {
            "train the model again, or take another checkpoint with `--checkpoint`"
        }
        Error::Read(_) => CHECK_NAME,
        Error::ConfigSyntax { .. } => {
            "correct the line; `f2 train --preset demo --show-config` prints a complete file"
        }
        Error::UnknownKey { .. } | Error::ConfigValue { .. } => {
            "docs/settings.md explains every setting; `f2 train --show-config` prints them all, \
             and where their values come from"
        }
        Error::BadRun { .. } => "start a new run, or take the file from a copy of it",
        Error::Classes(_) => "make classes for this corpus with `f2 classes CORPUS`",
        Error::ParametersNotFinite { .. } => LOWER_RATE,
        Error::Write(error) => advice_on_writing(error),
        _ => return None,
    })
}

/// Advice on too little memory.
fn less_memory(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Training => {
            "make micro-batches smaller (`--set batch.micro=1`) or windows shorter \
             (`--set batch.sequence=…`)"
        }
        Purpose::Generation => {
            "write fewer texts at a time (`--batch`), shorter ones (`--new-tokens`) or with a \
             narrower `--beam`"
        }
        Purpose::Perplexity => "take shorter windows with `--window`",
        Purpose::Loading | Purpose::Embedding => "close other programs, or take a smaller model",
    }
}

/// Advice on the value of a decoding option.
fn strategy(option: &str) -> Option<&'static str> {
    Some(match option {
        "temperature" => "`--temperature 1` leaves the probabilities as they are, 0 is greedy",
        "penalty alpha" => "`--penalty-alpha 0.6` is usual; 0 is greedy",
        "contrastive search" => {
            "leave the others out to search, or `--penalty-alpha` to draw; `--top-k 4` says how many \
             tokens are compared"
        }
        "mirostat" => "leave the others out, or mirostat: `--mirostat-tau 5` alone is usual",
        "mirostat tau" => "`--mirostat-tau 5` is usual: a perplexity of 2 to the 5th",
        "mirostat eta" => "`--mirostat-eta 0.1` is the default",
        "XTC" => "leave `--xtc-probability` out, or draw: `--temperature 1`",
        "XTC probability" => "`--xtc-probability 0.5` is usual; 1 always leaves top choices out",
        "XTC threshold" => "`--xtc-threshold 0.1` is the default",
        "DRY multiplier" => "`--dry-multiplier 0.8` is usual; leave it out for no penalty",
        "DRY base" => "`--dry-base 1.75` is the default",
        "DRY allowed length" => "`--dry-allowed-length 2` is the default",
        "repetition penalty" => "`--repetition-penalty 1.2` is usual; 1 does nothing",
        "class temperature" => {
            "`--class-temperature 1` leaves the classes' probabilities as they are, 0 takes the \
             most likely class"
        }
        "class top-k" => "leave `--class-top-k` out to draw from all classes",
        "class top-p" => "`--class-top-p 1` is as in the paper's text, 0.9 as in the authors' code",
        "small classes" => "add `--top-k`, or leave `--small-class fill` out",
        "top-k growth" => {
            "`--top-k 3 --top-k-growth 0.3` keeps 3 tokens of the smallest class and more of larger \
             ones; 0 keeps the same number of all"
        }
        "deterministic" => {
            "leave the other out, or `--deterministic`; `--temperature`, `--top-k` and the other \
             truncations go with it"
        }
        "beam" => "leave the others out to search, or `--beam` to draw",
        "beam width" => "`--beam 4` is usual, and gives up to four texts for each prompt (`-n`)",
        "beam iterations" => "leave `--beam-iterations` out to search once",
        "contrast" => {
            "`--contrast MODEL` names a model with the same tokenizer, such as a smaller one or an \
             earlier checkpoint"
        }
        "contrast alpha" => "`--contrast-alpha 0.1` is the default; 1 is greedy",
        "amateur temperature" => "`--amateur-temperature 1` is the default",
        "beam groups" => "choose `--beam-groups` so that it divides `--beam`",
        "diversity" => "`--diversity 0.5` is the default; 0 lets groups agree",
        "length penalty" => "`--length-penalty 1` is the default; 0 ranks by likelihood alone",
        "protocol" => {
            "fewer `--streams`, a shorter `--prefix` and a shorter `--continuation` need less text; \
             all are from 1 up"
        }
        "window" => "leave `--window` out to take the model's maximum",
        "stride" => "leave `--stride` out for windows that follow one another",
        option => return Truncations::rule_named(option).map(|rule| rule.advice),
    })
}
