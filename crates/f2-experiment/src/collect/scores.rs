//! The scores of generated texts.

use std::path::Path;

use f2_classes::Method;
use f2_files::regular_file;
use f2_lm::config::ObjectiveName;
use f2_report::results::{ClassTrial, Decoding, ScoreSet, SeedScores};
use f2_report::{ResultRecord, Results};

use super::Made;
use crate::stages::layout::files;
use crate::stages::{Purpose, Subject};
use crate::{CorpusRole, Error};

impl Made<'_> {
    /// The scores of each decoding, the main ones first, with perplexities.
    pub(super) fn scores(self) -> Result<Vec<ScoreSet>, Error> {
        let mut sets = Vec::new();
        for (stage, _, folder) in self.done() {
            if let Purpose::Score(decoding, subjects) = &stage.purpose {
                let records = self.with_perplexities(records(&folder)?, subjects)?;
                let other_seeds = self.other_seeds(*decoding)?;
                sets.push(ScoreSet { decoding: *decoding, records, other_seeds });
            }
        }
        Ok(sets)
    }

    fn other_seeds(self, of: Decoding) -> Result<Vec<SeedScores>, Error> {
        let mut seeds = Vec::new();
        for (stage, _, folder) in self.done() {
            if let Purpose::ScoreSeed(seed, decoding, subjects) = &stage.purpose
                && *decoding == of
            {
                let records = self.with_perplexities(records(&folder)?, subjects)?;
                seeds.push(SeedScores { seed: *seed, records });
            }
        }
        Ok(seeds)
    }

    /// The F² models with other classes; the main one comes first.
    pub(super) fn class_trials(self, results: &Results) -> Result<Vec<ClassTrial>, Error> {
        let mut trials = Vec::new();
        for (stage, _, folder) in self.done() {
            let Purpose::ScoreTrials(subjects) = &stage.purpose else { continue };
            let records = self.with_perplexities(records(&folder)?, subjects)?;
            for (subject, record) in subjects.iter().zip(records) {
                if let Subject::Classes(method, k) = *subject {
                    trials.push(ClassTrial {
                        method,
                        k: self.number_of_classes(method, k)?,
                        record,
                    });
                }
            }
        }
        let main =
            results.scores.first().filter(|set| matches!(set.decoding, Decoding::TopK { .. }));
        let f2 = |record: &&ResultRecord| record.name == ObjectiveName::F2.title();
        let main = main.and_then(|set| set.records.iter().find(f2));
        if let Some(record) = main.filter(|_| !trials.is_empty()) {
            let k = self.number_of_classes(Method::Greedy, None)?;
            trials.insert(0, ClassTrial { method: Method::Greedy, k, record: record.clone() });
        }
        Ok(trials)
    }

    pub(super) fn with_perplexities(
        self,
        mut records: Vec<ResultRecord>,
        subjects: &[Subject],
    ) -> Result<Vec<ResultRecord>, Error> {
        for (record, subject) in records.iter_mut().zip(subjects) {
            record.metrics.ppl = self.perplexity(*subject)?;
        }
        Ok(records)
    }

    fn number_of_classes(self, method: Method, k: Option<usize>) -> Result<usize, Error> {
        if let Some(k) = k {
            return Ok(k);
        }
        let folder =
            self.folder(&Purpose::Classes(CorpusRole::Main, method, None)).unwrap_or_default();
        let path = folder.join(files::CLASSES);
        Ok(f2_classes::ClassSelection::load(regular_file(&path)?)?.classes().len())
    }
}

/// The scores in the folder of a stage.
pub(super) fn records(folder: &Path) -> Result<Vec<ResultRecord>, Error> {
    let path = folder.join(files::SCORES);
    let text = f2_files::read_text(regular_file(&path)?)?;
    ResultRecord::list(&text).map_err(|error| Error::damaged(&path, &error))
}
