//! Flags that several verbs share.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use f2_corpus::Split;
use f2_experiment::{PaperPart, PlanPreset};
use f2_lm::config::{ObjectiveName, Preset};
use f2_lm::decode::{DecodingKeys, SmallClass, Strategy};
use f2_lm::run::{Pick, SavedModel};

use crate::failure::Failure;
use crate::machine;

/// The number of threads.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// Threads to use; all cores if not given.
    #[arg(long, value_name = "N", env = "F2_THREADS", value_parser = number_of_threads)]
    threads: Option<NonZeroUsize>,
}

impl Threads {
    /// As many as cores.
    pub(crate) fn all() -> Self {
        Self { threads: None }
    }

    /// The same choice with the default resolved to a number.
    pub(crate) fn settled(self) -> Self {
        Self { threads: NonZeroUsize::new(self.count()) }
    }

    pub(crate) fn count(self) -> usize {
        self.threads.map_or_else(machine::cores, NonZeroUsize::get)
    }
}

/// More threads than any machine has cores: some systems kill a program that starts far too many
/// instead of refusing.
const MOST_THREADS: usize = 4096;

fn number_of_threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = from_one(text)?;
    if threads.get() > MOST_THREADS {
        return Err(format!("at most {MOST_THREADS}; more than the machine's cores are of no use"));
    }
    Ok(threads)
}

/// The choice of a checkpoint.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CheckpointChoice {
    /// The checkpoint of a run: best (by validation perplexity), last, or a number of steps.
    #[arg(long, value_name = "WHICH", default_value = "best", value_parser = pick)]
    pub(crate) checkpoint: Pick,
}

/// The choice of a model.
#[derive(Args, Debug)]
pub(crate) struct ModelChoice {
    /// A run folder, one of its checkpoints, or a model's folder.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    choice: CheckpointChoice,
}

impl ModelChoice {
    /// The best checkpoint of a run.
    pub(crate) fn best_of(run: &Path) -> Self {
        Self { model: run.to_path_buf(), choice: CheckpointChoice { checkpoint: Pick::Best } }
    }

    pub(crate) fn open(&self) -> Result<SavedModel, Failure> {
        Ok(SavedModel::open(&self.model, self.choice.checkpoint)?)
    }
}

/// The choice of the default decoding.
#[derive(Args, Clone, Debug)]
pub(crate) struct DecodingChoice {
    /// The default decoding, which flags and requests override: `none` for the program's own, or a
    /// file [default: the model's `decoding.toml`, if it has one].
    #[arg(long, value_name = "none|FILE")]
    decoding: Option<PathBuf>,
}

impl DecodingChoice {
    /// The program's own.
    pub(crate) fn none() -> Self {
        Self { decoding: Some("none".into()) }
    }

    /// The default strategy for a model; `None` for the program's own.
    pub(crate) fn of(&self, model: &SavedModel) -> Result<Option<Strategy>, Failure> {
        let found = match self.decoding.as_deref() {
            Some(none) if none == Path::new("none") => None,
            Some(file) => {
                let keys = DecodingKeys::read(file, &model.shape).map_err(unreadable)?;
                Some((file.to_path_buf(), Strategy::from(&keys)))
            }
            None => model.decoding().map_err(unreadable)?,
        };
        if let Some((path, strategy)) = &found {
            remark!("decoding of {}: {}", path.display(), DecodingKeys::from(strategy));
        }
        Ok(found.map(|(_, strategy)| strategy))
    }
}

/// The failure to read a decoding file.
fn unreadable(error: f2_lm::Error) -> Failure {
    use f2_lm::Error::{ConfigSyntax, ConfigValue, UnknownKey};
    match error {
        error @ (ConfigSyntax { .. } | ConfigValue { .. } | UnknownKey { .. }) => Failure::from(
            error,
        )
        .advise(
            "docs/formats.md lists the keys of a decoding; `--decoding none` goes without the file",
        ),
        error => error.into(),
    }
}

/// Parses a number that must be at least 1.
pub(crate) fn from_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number from 1 up".to_owned())
}

fn pick(text: &str) -> Result<Pick, String> {
    match text {
        "best" => Ok(Pick::Best),
        "last" => Ok(Pick::Last),
        step => step
            .parse()
            .map(Pick::Step)
            .map_err(|_| "expected best, last or a number of steps".to_owned()),
    }
}

/// Parses the name of one of the values that a library lists; help shows them all.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    shown: fn(T) -> PossibleValue,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().copied().map(shown)).map(move |name| {
        let named = all.iter().copied().find(|value| shown(*value).get_name() == name);
        named.expect("clap lets no other name through")
    })
}

/// Parses the name of a split.
pub(crate) fn split() -> impl TypedValueParser<Value = Split> {
    one_of(&Split::ALL, |split| PossibleValue::new(split.name()))
}

/// Parses the value of `--small-class`.
pub(crate) fn small_class() -> impl TypedValueParser<Value = SmallClass> {
    one_of(&SmallClass::ALL, |small| PossibleValue::new(small.name()).help(small.about()))
}

/// Parses an objective.
pub(crate) fn objective() -> impl TypedValueParser<Value = ObjectiveName> {
    one_of(&ObjectiveName::ALL, |name| PossibleValue::new(name.as_str()).help(name.about()))
}

/// Parses the name of a plan.
pub(crate) fn plan_preset() -> impl TypedValueParser<Value = PlanPreset> {
    one_of(&PlanPreset::ALL, |preset| PossibleValue::new(preset.name()).help(preset.about()))
}

/// Parses the name of a part of the paper.
pub(crate) fn paper_part() -> impl TypedValueParser<Value = PaperPart> {
    one_of(&PaperPart::ALL, |part| PossibleValue::new(part.name()).help(part.about()))
}

/// Parses the name of a preset.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    one_of(&Preset::ALL, |preset| PossibleValue::new(preset.name()).help(preset.about()))
}
