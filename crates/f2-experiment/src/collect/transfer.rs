use f2_report::results::TransferResult;

use super::{Made, scores, text};
use crate::stages::{Purpose, Subject};
use crate::{CorpusRole, Error};

impl Made<'_> {
    /// F² from scratch and transferred, and the model it was transferred from.
    pub(super) fn transfer(self) -> Result<Option<TransferResult>, Error> {
        for (stage, key, _) in self.done() {
            let Purpose::ScoreTransfer(decoding, subjects) = &stage.purpose else { continue };
            let records = scores::records(stage, &self.store.output(stage, key)?)?;
            let [pretraining, target] = [CorpusRole::Pretraining, CorpusRole::Target]
                .map(|role| self.corpus(role).transpose());
            let (Some(pretraining), Some(target)) = (pretraining, target) else { continue };
            let name = |text: Option<&crate::TextSource>| {
                text.map_or_else(String::new, |text| text.name())
            };
            let mut runs = Vec::new();
            for subject in [Subject::Pretrained].iter().chain(subjects) {
                runs.extend(self.run(*subject)?);
            }
            return Ok(Some(TransferResult {
                pretraining: text::sizes(&pretraining?, &name(self.texts.pretraining.as_ref())),
                target: text::sizes(&target?, &name(Some(&self.texts.main))),
                decoding: *decoding,
                runs,
                records: self.with_perplexities(records, subjects)?,
            }));
        }
        Ok(None)
    }
}
