use std::path::{Path, PathBuf};

use f2_corpus::{Corpus, Split};
use f2_engine::Device;
use f2_experiment::{
    Estimate, Key, Part, Plan, Stages, Store, TextSource, Word, collect, corpus, estimates,
    perform, stages,
};
use f2_report::{MetricTable, Report, Results};
use serde_json::json;

use super::conduct::Typist;
use crate::failure::{Failure, Outcome};
use crate::verbs::device::{DeviceChoice, Work};
use crate::verbs::flags::Threads;
use crate::{interrupt, output};

/// What share of the device's peak training is assumed to reach.
const ASSUMED_SHARE: f64 = 0.6;

/// Measures a device.
struct Peak;

impl Work for Peak {
    type Output = f64;

    fn run<D: Device>(self, device: D) -> Result<f64, Failure> {
        Ok(device.measured_peak())
    }
}

/// A plan, the text it is for, and the folder it is done in.
pub(in crate::verbs) struct Experiment {
    pub(in crate::verbs) plan: Plan,
    pub(in crate::verbs) source: TextSource,
    pub(in crate::verbs) out: PathBuf,
    /// The parts asked for; all where there are none.
    pub(in crate::verbs) only: Vec<Part>,
    pub(in crate::verbs) threads: Threads,
    pub(in crate::verbs) device: DeviceChoice,
}

/// An experiment laid out in stages.
pub(super) struct LaidOut {
    pub(super) stages: Stages,
    pub(super) keys: Vec<Key>,
    pub(super) needed: Vec<bool>,
    pub(super) estimates: Vec<Estimate>,
    pub(super) store: Store,
}

impl Experiment {
    /// Operations per second that training is expected to reach.
    pub(super) fn speed(&self) -> Result<f64, Failure> {
        Ok(ASSUMED_SHARE * self.device.run(self.threads.count(), Peak)?)
    }

    /// Lays the plan out, as well as the text is known yet.
    pub(super) fn lay_out(&self, speed: f64) -> Result<LaidOut, Failure> {
        let laid = self.lay_out_for(None, speed)?;
        let LaidOut { stages, keys, store, .. } = &laid;
        match corpus(&self.source, stages, keys, store)? {
            Some(corpus) => self.lay_out_for(Some(self.test_tokens(&corpus)?), speed),
            None => Ok(laid),
        }
    }

    fn lay_out_for(&self, test_tokens: Option<u64>, speed: f64) -> Result<LaidOut, Failure> {
        let stages = stages(&self.plan, &self.source, test_tokens, &self.device_words());
        Ok(LaidOut {
            keys: stages.keys()?,
            needed: stages.needed_for(&self.only),
            estimates: estimates(&self.plan, &stages, &self.source, speed)?,
            store: Store::new(&self.out),
            stages,
        })
    }

    /// The size of the test split, which must hold a prefix and its continuation.
    fn test_tokens(&self, corpus: &Corpus) -> Result<u64, Failure> {
        if corpus.ranks()?.is_some() {
            let folder = corpus.folder().display();
            return Err(Failure::usage(format!("{folder} keeps its tokenizer's own ids"))
                .advise("prepare it again without `--keep-ids`: generated ids are ranks"));
        }
        let tokens = corpus.shard(Split::Test)?.len() as u64;
        let window = self.plan.generation.window();
        if tokens < window as u64 {
            return Err(Failure::data(format!(
                "the test split has {tokens} tokens, fewer than the {window} of a prefix and its \
                 continuation"
            ))
            .advise("use more text, or a plan with shorter ones (`[generation]`)"));
        }
        Ok(tokens)
    }

    /// The device decides what comes out, the number of threads does not.
    fn device_words(&self) -> Vec<Word> {
        let threads = ["--threads".to_owned(), self.threads.count().to_string()].map(Word::Aside);
        let device = self.device.words().into_iter().map(|word| word.as_str().into());
        threads.into_iter().chain(device).collect()
    }

    /// Does what is not done yet, and writes results and report.
    pub(in crate::verbs) fn run(&self, json: bool) -> Outcome {
        interrupt::listen();
        let speed = self.speed()?;
        let mut laid = self.lay_out(speed)?;
        std::fs::create_dir_all(&self.out).map_err(|error| Failure::writing(&self.out, &error))?;
        let mut typist = Typist::new(&self.out);
        if laid.is_unprepared() {
            // How the rest is laid out depends on the size of the corpus.
            let LaidOut { stages, keys, estimates, store, .. } = &laid;
            perform(stages, &stages.preparing(), keys, estimates, store, &mut typist)?;
            laid = self.lay_out(speed)?;
        }
        let LaidOut { stages, keys, needed, estimates, store } = &laid;
        perform(stages, needed, keys, estimates, store, &mut typist)?;
        let results = collect(&self.plan, &self.source, stages, keys, store)?;
        let page = write(&results, &self.out)?;
        if json {
            return output::print(&format!("{:#}\n", summary(&results, &self.out, &page)));
        }
        output::print(&tables(&results))?;
        eprintln!("report: {}", page.display());
        Ok(())
    }
}

impl LaidOut {
    fn is_unprepared(&self) -> bool {
        let first = self.stages.0.iter().zip(&self.keys).zip(self.stages.preparing()).next();
        first.is_some_and(|((stage, key), prepares)| {
            prepares && self.store.done(stage, key).is_none()
        })
    }
}

/// Writes `results.json` and the report, and returns the page.
fn write(results: &Results, out: &Path) -> Result<PathBuf, Failure> {
    let path = out.join("results.json");
    f2_files::write_text_atomically(&path, &results.to_json())
        .map_err(|error| Failure::writing(&path, &error))?;
    Report::new(results).write(out).map_err(|(path, error)| Failure::writing(&path, &error))
}

/// The main table and what it says in a sentence.
fn tables(results: &Results) -> String {
    let colour = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let lead: String = Report::new(results).lead.iter().map(|line| format!("{line}\n")).collect();
    results.scores.first().map_or_else(
        || lead.clone(),
        |main| format!("{}\n{lead}", MetricTable::new(&main.records).build().to_terminal(colour)),
    )
}

fn summary(results: &Results, out: &Path, page: &Path) -> serde_json::Value {
    json!({
        "results": out.join("results.json"),
        "report": page,
        "lead": Report::new(results).lead,
        "scores": results.scores,
    })
}
