//! The transfer of a pretrained model.

use serde::{Deserialize, Serialize};

use super::{CorpusResult, Decoding, RunResult};
use crate::record::ResultRecord;

/// F² from scratch, and from a model that was pretrained on another text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    /// The text of the pretraining.
    pub pretraining: CorpusResult,
    /// The text transferred to, in the tokens of the pretraining.
    pub target: CorpusResult,
    /// How the models continued its prefixes.
    pub decoding: Decoding,
    /// The pretrained model, F² from scratch and the transferred F².
    pub runs: Vec<RunResult>,
    /// The scores of the last two.
    pub records: Vec<ResultRecord>,
}
