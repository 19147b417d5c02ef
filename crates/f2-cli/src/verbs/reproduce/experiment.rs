//! An experiment: laid out, done, and shown.

use std::path::{Path, PathBuf};

use f2_corpus::{Corpus, Split};
use f2_experiment::{
    CorpusRole, Estimate, Key, Part, Plan, Stage, Stages, Store, TestTokens, Texts, Word, collect,
    corpus, estimates, perform, stages,
};
use f2_files::Lock;
use f2_report::{MetricTable, Report, Results, printable};
use serde_json::json;

use super::conduct::Typist;
use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;
use crate::verbs::speed::{ASSUMED_SHARE, Peak};
use crate::{interrupt, output};

/// A plan, the texts it is for, and the folder it is done in.
pub(in crate::verbs) struct Experiment {
    pub(in crate::verbs) plan: Plan,
    pub(in crate::verbs) texts: Texts,
    pub(in crate::verbs) out: PathBuf,
    /// The parts asked for; all where there are none.
    pub(in crate::verbs) only: Vec<Part>,
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
    pub(super) fn speed(&self, peak: Peak) -> Result<f64, Failure> {
        Ok(ASSUMED_SHARE * self.device.run(peak)?)
    }

    /// Lays the plan out, as well as the text is known yet.
    pub(super) fn lay_out(&self, speed: f64) -> Result<LaidOut, Failure> {
        let unknown = self.lay_out_for(TestTokens::default(), speed)?;
        let LaidOut { stages, keys, store, .. } = &unknown;
        let tokens = |role: CorpusRole| {
            let corpus = corpus(role, &self.texts, stages, keys, store)?;
            corpus.map(|corpus| self.test_tokens(&corpus)).transpose()
        };
        let (main, target) = (tokens(CorpusRole::Main)?, tokens(CorpusRole::Target)?);
        self.lay_out_for(TestTokens { main, target }, speed)
    }

    fn lay_out_for(&self, test_tokens: TestTokens, speed: f64) -> Result<LaidOut, Failure> {
        let stages = stages(&self.plan, &self.texts, test_tokens, &self.device_words());
        Ok(LaidOut {
            keys: stages.keys()?,
            needed: stages.needed_for(&self.only),
            estimates: estimates(&self.plan, &stages, &self.texts, speed)?,
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
        let threads = ["--threads".to_owned(), self.device.threads().to_string()].map(Word::Aside);
        let device = self.device.words().into_iter().map(|word| word.as_str().into());
        threads.into_iter().chain(device).collect()
    }

    /// Whether the plan has a transfer that cannot be made.
    fn lacks_pretraining(&self) -> bool {
        self.only.is_empty() && self.plan.transfer.is_some() && self.texts.pretraining.is_none()
    }

    /// Tells what will be missing before anything takes time.
    pub(super) fn note_left_out(&self) {
        if self.lacks_pretraining() {
            remark!("note: transfer is left out; name a text to pretrain on with `--pretrain`");
        }
    }

    /// Does what is not done yet, and writes results and report.
    pub(in crate::verbs) fn run(&self, json: bool) -> Outcome {
        interrupt::listen();
        self.note_left_out();
        let speed = self.speed(Peak::Now)?;
        let mut laid = self.lay_out(speed)?;
        let _lock = Lock::inside(&self.out)?;
        let mut typist = Typist::new(&self.out);
        if laid.lacks_a_corpus() {
            // How the rest is laid out depends on the size of the corpus.
            laid.perform(&mut typist, Stage::prepares)?;
            laid = self.lay_out(speed)?;
        }
        laid.perform(&mut typist, |_| true)?;
        let LaidOut { stages, keys, store, .. } = &laid;
        let mut results = collect(&self.plan, &self.texts, stages, keys, store)?;
        if self.lacks_pretraining() {
            results.remarks.push("Transfer was left out: no text to pretrain on.".to_owned());
        }
        let page = write(&results, &self.out)?;
        if json {
            return output::print(&format!("{:#}\n", summary(&results, &self.out, &page)));
        }
        output::print_styled(&tables(&results))?;
        remark!("report: {}", page.display());
        Ok(())
    }
}

impl LaidOut {
    /// Whether text that is needed is still to be prepared.
    fn lacks_a_corpus(&self) -> bool {
        let stages = self.stages.0.iter().zip(&self.keys).zip(&self.needed);
        stages
            .filter(|((stage, _), needed)| **needed && stage.prepares())
            .any(|((stage, key), _)| self.store.done(stage, key).is_none())
    }

    fn perform(&self, typist: &mut Typist, now: impl Fn(&Stage) -> bool) -> Outcome {
        let Self { stages, keys, needed, estimates, store } = self;
        perform(stages, needed, keys, estimates, store, typist, now)
    }
}

/// Writes `results.json` and the report, and returns the page.
fn write(results: &Results, out: &Path) -> Result<PathBuf, Failure> {
    f2_files::write_text_atomically(&out.join("results.json"), &results.to_json())?;
    Ok(Report::new(results).write(out)?)
}

/// The main table, that of transfer, and what they say in a sentence.
fn tables(results: &Results) -> String {
    let report = Report::new(results);
    let main = results.scores.first().map(|set| MetricTable::new(&set.records).build());
    let transfer = report.tables().find(|named| named.name == "transfer");
    let tables = main.iter().chain(transfer.map(|named| &named.table));
    let lead = report.lead.iter().map(|line| format!("{}\n", printable(line))).collect();
    let parts: Vec<String> =
        tables.map(|table| table.to_terminal(output::takes_colour())).chain([lead]).collect();
    parts.join("\n")
}

fn summary(results: &Results, out: &Path, page: &Path) -> serde_json::Value {
    json!({
        "results": out.join("results.json").display().to_string(),
        "report": page.display().to_string(),
        "lead": Report::new(results).lead,
        "scores": results.scores,
        "transfer": results.transfer,
    })
}
