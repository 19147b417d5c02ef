//! The results of transfer from another text.

use f2_report::results::TransferResult;

use super::{Made, scores, text};
use crate::stages::{Purpose, Subject};
use crate::{CorpusRole, CorpusSource, Error};

impl Made<'_> {
    /// F² from scratch and transferred, and the pretrained model.
    pub(super) fn transfer(self) -> Result<Option<TransferResult>, Error> {
        let scored = self.done().find_map(|(stage, key, _)| match &stage.purpose {
            Purpose::ScoreTransfer(decoding, subjects) => Some((stage, key, *decoding, subjects)),
            _ => None,
        });
        let corpora = (self.corpus(CorpusRole::Pretraining)?, self.corpus(CorpusRole::Target)?);
        let (Some((stage, key, decoding, subjects)), (Some(pretraining), Some(target))) =
            (scored, corpora)
        else {
            return Ok(None);
        };
        let other = self.corpora.pretraining.as_ref().map(CorpusSource::name).unwrap_or_default();
        let mut runs = Vec::new();
        for subject in [Subject::Pretrained].iter().chain(subjects) {
            runs.extend(self.run(*subject)?);
        }
        let records = scores::records(&self.store.folder(stage, key))?;
        Ok(Some(TransferResult {
            pretraining: text::sizes(&pretraining, &other),
            target: text::sizes(&target, &self.corpora.main.name()),
            decoding,
            runs,
            records: self.with_perplexities(records, subjects)?,
        }))
    }
}
