//! `f2 tune`: chooses decoding by measurement.

mod examiner;
mod record;
mod sets;
mod show;
mod test;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use f2_engine::Device;
use f2_experiment::tune::{Space, search};
use f2_files::{Lock, check_writable, write_text_atomically};
use f2_lm::decode::{DECODING, Generator};
use f2_lm::run::SavedModel;

use crate::failure::{Failure, Kind, Outcome};
use crate::verbs::device::{DeviceChoice, DeviceTask};
use crate::verbs::flags::{ModelChoice, from_one};
use crate::{interrupt, output};
use examiner::{Budget, Examiner};
use record::{Conditions, Record};
use sets::{SetFlags, Sets};

/// The record and the figure, next to decoding.toml.
const RECORD: &str = "tune.json";
const FIGURE: &str = "tune.svg";

/// Choose a model's decoding by measurement: the settings whose texts are closest to human text.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 tune run --corpus corpus
  f2 tune run --corpus corpus --budget 20
  f2 tune run --corpus corpus --trials 60 --json > tuned.json
  f2 tune run --corpus corpus --k-per-class --out grown
  f2 tune run --corpus songs --protocol lyrics --texts 1000
  f2 generate run --prompt 'In the beginning'         # then decodes as tuned
  f2 generate run --prompt 'In the beginning' --decoding none

Prefixes of the validation split are continued with one setting after the other, and the texts are
compared with the human continuations: KLD, MS-Jaccard, Self-BLEU, Distinct, Rep and Uniq, each in
units of how much it varies between halves of the human texts. The search covers temperature and k,
nucleus, min-p or typical mass, and for an F² model the temperature and the nucleus of its classes,
with the tokens' rules inside the class. The best setting becomes decoding.toml in the run, which
`f2 generate`, `f2 serve` and `f2 export` then follow; tune.json has every setting that was tried,
tune.svg shows them. Finally untuned and tuned decoding are measured on the test split, which the
search never sees. Ctrl-C keeps the best so far; the same command continues from there. docs/tune.md
has the definitions.")]
pub(crate) struct Tune {
    #[command(flatten)]
    model: ModelChoice,
    #[command(flatten)]
    sets: SetFlags,
    /// Minutes the search may take; the test comes after it.
    #[arg(long, value_name = "MINUTES", default_value_t = 5.0, value_parser = minutes)]
    budget: f64,
    /// Settings the search may try, however long that takes: the same seed then gives the same
    /// choice.
    #[arg(long, value_name = "N", value_parser = from_one, conflicts_with = "budget")]
    trials: Option<NonZeroUsize>,
    /// F²: also search how the k of top-k grows with the size of a class
    /// (`f2 generate --top-k-growth`).
    #[arg(long)]
    k_per_class: bool,
    /// The seed of texts, halves and search.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Texts generated at a time; affects only speed [default: chosen for the device].
    #[arg(long, value_name = "N", value_parser = from_one)]
    batch: Option<NonZeroUsize>,
    /// The folder for decoding.toml, tune.json and tune.svg [default: the run's].
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the record as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceChoice,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: Option<f64> = text.parse().ok();
    minutes
        .filter(|minutes| minutes.is_finite() && *minutes > 0.0)
        .ok_or_else(|| "expected a number of minutes above 0".to_owned())
}

/// The part that needs the model on a device.
struct Tuning<'a> {
    verb: &'a Tune,
    model: &'a SavedModel,
    sets: &'a Sets,
    record: Record,
    path: PathBuf,
}

impl Tune {
    pub(crate) fn run(self) -> Outcome {
        interrupt::listen();
        let model = self.model.open()?;
        self.check(&model)?;
        let sets = self.sets.cut(&model)?;
        let folder = self.out.clone().unwrap_or_else(|| model.home());
        f2_files::disk::create_folders(&folder).map_err(f2_files::WriteError::of(&folder))?;
        let [path, decoding, figure] = [RECORD, DECODING, FIGURE].map(|name| folder.join(name));
        let _lock = Lock::beside(&path)?;
        for path in [&path, &decoding, &figure] {
            check_writable(path)?;
        }
        let record =
            Record::open(&path, Conditions::new(&model, &sets, self.seed, self.k_per_class)?)?;
        let tuning = Tuning { verb: &self, model: &model, sets: &sets, record, path: path.clone() };
        let record = self.device.run(tuning)?;
        let Some(chosen) = record.chosen() else {
            return Err(stopped("before a setting was measured"));
        };
        write_text_atomically(&decoding, &chosen.decoding.text(&record.comment()))?;
        write_text_atomically(&figure, &show::figure(&record).to_svg())?;
        record.save(&path)?;
        if self.json {
            output::print(&record.json())?;
        } else {
            output::print_styled(&show::tables(&record))?;
        }
        remark!("written: {}, {}, {}", decoding.display(), path.display(), figure.display());
        if interrupt::asked() {
            let settings = record.trials.len();
            return Err(stopped(&format!("after {settings} settings; the best so far is written")));
        }
        Ok(())
    }

    /// Refuses a search of classes for a model without any.
    fn check(&self, model: &SavedModel) -> Result<(), Failure> {
        if self.k_per_class && model.shape.class_ends.is_empty() {
            let folder = model.folder.display();
            return Err(Failure::usage(format!(
                "--k-per-class is for F² models; {folder} has a plain softmax"
            ))
            .advise("leave it out: a plain softmax has no classes"));
        }
        Ok(())
    }

    fn budget(&self) -> Budget {
        self.trials.map_or(Budget::Seconds(60.0 * self.budget), |most| Budget::Trials(most.get()))
    }
}

fn stopped(when: &str) -> Failure {
    Failure::new(Kind::Interrupted, format!("stopped {when}"))
        .advise("the same command continues from there")
}

impl DeviceTask for Tuning<'_> {
    type Output = Record;

    fn run<D: Device>(self, device: D) -> Result<Record, Failure> {
        let Self { verb, model, sets, record, path } = self;
        let loaded = model.load(device)?;
        let generator = Generator { model: &loaded };
        let mut examiner =
            Examiner::new(&generator, sets, record, &path, verb.budget(), verb.batch)?;
        let shape = &model.shape;
        let space = Space {
            factorised: !shape.class_ends.is_empty(),
            vocabulary: shape.vocabulary,
            k_per_class: verb.k_per_class,
        };
        search(space, sets.usual_k.min(shape.vocabulary), verb.seed, &mut examiner)?;
        examiner.conclude()
    }
}
