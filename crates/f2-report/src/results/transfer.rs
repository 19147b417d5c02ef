//! Transfer of a pretrained model.

use serde::{Deserialize, Serialize};

use super::{CorpusResult, Decoding, RunResult};
use crate::record::ResultRecord;

/// F² from scratch, and from a model that was pretrained on another text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    /// The pretraining corpus.
    pub pretraining: CorpusResult,
    /// The target corpus, tokenized as for the pretraining.
    pub target: CorpusResult,
    /// The decoding of the scored texts.
    pub decoding: Decoding,
    /// The pretrained model, F² from scratch and the transferred F².
    pub runs: Vec<RunResult>,
    /// The scores of the last two.
    pub records: Vec<ResultRecord>,
}
