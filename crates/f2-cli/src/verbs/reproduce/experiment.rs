//! An experiment on one corpus: divided into stages, and done.

use std::path::PathBuf;

use f2_corpus::{Corpus, Split};
use f2_experiment::{
    Corpora, CorpusRole, Estimate, Key, PaperPart, Plan, Speed, Stage, Stages, Store, TestTokens,
    collect, corpus, estimates, perform, stages,
};
use f2_files::Lock;
use f2_report::Results;

use super::conduct::Runner;
use crate::failure::{Failure, Outcome};
use crate::verbs::device::DeviceChoice;

/// A plan, its corpora, and the folder for its results.
pub(in crate::verbs) struct Experiment {
    pub(in crate::verbs) plan: Plan,
    pub(in crate::verbs) corpora: Corpora,
    pub(in crate::verbs) out: PathBuf,
    /// The requested parts; all if it is empty.
    pub(in crate::verbs) only: Vec<PaperPart>,
    pub(in crate::verbs) device: DeviceChoice,
}

/// An experiment divided into stages.
pub(super) struct LaidOut {
    pub(super) stages: Stages,
    pub(super) keys: Vec<Key>,
    pub(super) needed: Vec<bool>,
    pub(super) estimates: Vec<Estimate>,
    pub(super) store: Store,
}

impl Experiment {
    /// Divides the experiment into stages, by the sizes of those corpora that are prepared already.
    pub(super) fn lay_out(&self, speed: &Speed) -> Result<LaidOut, Failure> {
        let unknown = self.lay_out_for(TestTokens::default(), speed)?;
        let LaidOut { stages, keys, store, .. } = &unknown;
        let tokens = |role: CorpusRole| {
            let corpus = corpus(role, &self.corpora, stages, keys, store)?;
            corpus.map(|corpus| self.test_tokens(&corpus)).transpose()
        };
        let (main, target) = (tokens(CorpusRole::Main)?, tokens(CorpusRole::Target)?);
        self.lay_out_for(TestTokens { main, target }, speed)
    }

    fn lay_out_for(&self, test_tokens: TestTokens, speed: &Speed) -> Result<LaidOut, Failure> {
        let stages = stages(&self.plan, &self.corpora, test_tokens);
        Ok(LaidOut {
            keys: stages.keys(&self.device.flags().key())?,
            needed: stages.needed_for(&self.only),
            estimates: estimates(&self.plan, &stages, &self.corpora, speed)?,
            store: Store::new(&self.out),
            stages,
        })
    }

    /// The size of the test split, which must hold the prefixes and continuations of a table.
    fn test_tokens(&self, corpus: &Corpus) -> Result<u64, Failure> {
        if corpus.ranks()?.is_some() {
            let folder = corpus.folder().display();
            return Err(Failure::usage(format!("{folder} keeps its tokenizer's own ids"))
                .advise("prepare it again without `--keep-ids`: generated ids are ranks"));
        }
        let shard = corpus.shard(Split::Test)?;
        let tokens = shard.len() as u64;
        let window = self.plan.generation.window();
        if tokens < window as u64 {
            return Err(Failure::data(format!(
                "the test split has {tokens} tokens, fewer than the {window} of a prefix and its \
                 continuation"
            ))
            .advise("use more text, or a plan with shorter ones (`[generation]`)"));
        }
        // A split that cannot be cut is refused before hours of training.
        self.plan.test_protocol(tokens).cut(&shard).map_err(|error| {
            let test = format!("the test split of {}: ", corpus.folder().display());
            Failure::from(error).before(&test).advise(
                "use a corpus of longer documents (`f2 prepare --documents`), or a plan with a \
                 shorter prefix and continuation or with `protocol = \"paper\"`, which cuts \
                 across documents (`[generation]`)",
            )
        })?;
        Ok(tokens)
    }

    /// Whether the plan has a transfer, but there is no text to pretrain on.
    pub(super) fn lacks_pretraining(&self) -> bool {
        self.only.is_empty() && self.plan.transfer.is_some() && self.corpora.pretraining.is_none()
    }

    /// Runs the stages that are not done yet, and collects the results.
    pub(super) fn perform(&self, speed: &Speed, runner: &Runner) -> Result<Results, Failure> {
        let mut laid = self.lay_out(speed)?;
        let _lock = Lock::inside(&self.out)?;
        if laid.lacks_a_corpus() {
            // The other stages depend on the size of the corpus.
            laid.perform(runner, Stage::prepares)?;
            laid = self.lay_out(speed)?;
        }
        laid.perform(runner, |_| true)?;
        let LaidOut { stages, keys, store, .. } = &laid;
        let mut results = collect(&self.plan, &self.corpora, stages, keys, store)?;
        if self.lacks_pretraining() {
            results.remarks.push("Transfer was left out: no text to pretrain on.".to_owned());
        }
        Ok(results)
    }
}

impl LaidOut {
    /// Estimated seconds of the stages that are needed and not done.
    pub(super) fn seconds(&self) -> f64 {
        let all = self.stages.0.iter().zip(&self.keys).zip(&self.estimates).zip(&self.needed);
        all.filter(|(((stage, key), _), needed)| **needed && self.store.done(stage, key).is_none())
            .map(|((_, estimate), _)| estimate.seconds)
            .sum()
    }

    /// Whether text that is needed is still to be prepared.
    fn lacks_a_corpus(&self) -> bool {
        let stages = self.stages.0.iter().zip(&self.keys).zip(&self.needed);
        stages
            .filter(|((stage, _), needed)| **needed && stage.prepares())
            .any(|((stage, key), _)| self.store.done(stage, key).is_none())
    }

    fn perform(&self, runner: &Runner, now: impl Fn(&Stage) -> bool) -> Outcome {
        let Self { stages, keys, needed, estimates, store } = self;
        perform(stages, needed, keys, estimates, store, runner, now)
    }
}
