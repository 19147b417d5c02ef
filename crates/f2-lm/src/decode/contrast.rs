//! Contrastive decoding (Li et al., 2023): tokens that an expert finds likelier than an amateur
//! does.
//!
//! A token's score is its log-probability under the model minus that under the amateur. Only
//! plausible tokens have one: those at least `alpha` times as likely as the model's likeliest. If a
//! class is drawn first, both probabilities are those within the class.

use f2_engine::Device;

use super::Strategy;
use super::checks::{check_positive, check_share, require};
use super::scores::Scores;
use crate::Error;
use crate::model::{Feed, Incremental, Model, ModelShape};

/// How a model is contrasted with an amateur.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// How likely a token must be, as a share of the likeliest one's probability.
    pub alpha: f64,
    /// Divides the amateur's log-probabilities.
    pub temperature: f64,
}

impl Default for Contrast {
    fn default() -> Self {
        Self { alpha: 0.1, temperature: 1.0 }
    }
}

impl Contrast {
    pub(super) fn check(&self, strategy: &Strategy) -> Result<(), Error> {
        check_share("contrast alpha", self.alpha)?;
        check_positive("amateur temperature", self.temperature)?;
        let fits = strategy.mirostat.is_none() && strategy.contrastive_search.is_none();
        require("contrast", fits, || {
            "its scores are not probabilities: leave mirostat and contrastive search out".to_owned()
        })
    }

    /// Refuses an amateur with another vocabulary or fewer positions than the model.
    pub(crate) fn check_amateur(model: &ModelShape, amateur: &ModelShape) -> Result<(), Error> {
        let tokens = [model.vocabulary, amateur.vocabulary];
        require("contrast", tokens[0] == tokens[1], || {
            format!("the amateur has {} tokens, the model {}", tokens[1], tokens[0])
        })?;
        let positions = [model.positions, amateur.positions];
        require("contrast", positions[0] <= positions[1], || {
            format!(
                "the amateur sees {} tokens, fewer than the model's {}",
                positions[1], positions[0]
            )
        })
    }

    /// Checks that there is an amateur if and only if the strategy needs one.
    pub(super) fn check_presence(strategy: &Strategy, has_amateur: bool) -> Result<(), Error> {
        require("contrast", strategy.contrast.is_some() == has_amateur, || {
            let missing = "there is no amateur to contrast the model with";
            let extra = "there is an amateur, and the strategy does not use it";
            (if has_amateur { extra } else { missing }).to_owned()
        })
    }

    /// Replaces log-probabilities by scores, −∞ for implausible tokens. Each item is a token's
    /// log-probability within its class, that of its class, and the amateur's. Fails if the
    /// amateur's probabilities are not numbers.
    pub(super) fn score<'l>(
        &self,
        logs: impl Iterator<Item = (&'l mut f32, f32, f32)>,
    ) -> Result<(), Error> {
        let mut tokens: Vec<(&mut f32, f64, f64)> = logs
            .map(|(log, class, amateur)| {
                let joint = f64::from(*log) + f64::from(class);
                (log, joint, f64::from(amateur) / self.temperature)
            })
            .collect();
        let largest =
            |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let top = largest(&mut tokens.iter().map(|(_, _, amateur)| *amateur));
        let sum: f64 = tokens.iter().map(|(_, _, amateur)| (amateur - top).exp()).sum();
        let total = top + sum.ln();
        if !total.is_finite() {
            return Err(Error::NoProbabilities);
        }
        let least = self.alpha.ln() + largest(&mut tokens.iter().map(|(_, joint, _)| *joint));
        for (log, joint, amateur) in &mut tokens {
            let own = f64::from(**log) - (*amateur - total);
            **log = if *joint >= least { own as f32 } else { f32::NEG_INFINITY };
        }
        Ok(())
    }
}

/// The amateur for a batch of running sequences, which sees the same tokens.
pub(super) struct Amateur<'a, D: Device> {
    scores: Scores<'a, D>,
    memory: Incremental<D>,
    /// Its posterior after the last feeds, `[feeds, vocabulary]`.
    posterior: Vec<f32>,
}

impl<'a, D: Device> Amateur<'a, D> {
    pub(super) fn new(
        model: &'a Model<D>,
        sequences: usize,
        capacity: usize,
    ) -> Result<Self, Error> {
        let scores = Scores::new(model, sequences)?;
        let memory = Incremental::new(model, sequences, capacity)?;
        Ok(Self { scores, memory, posterior: Vec::new() })
    }

    /// Feeds it the tokens the model was fed.
    pub(super) fn advance(&mut self, feeds: &[Feed<'_>]) -> Result<(), Error> {
        let Self { scores, memory, posterior } = self;
        memory.advance(scores.model, feeds)?;
        posterior.clear();
        posterior.extend_from_slice(scores.posterior(feeds.len(), memory.hidden())?);
        Ok(())
    }

    /// Reorders its cache as the model's was.
    pub(super) fn reorder(&mut self, parents: &[u32], length: usize) {
        self.memory.reorder(&self.scores.model.device, parents, length);
    }

    /// Its log-probabilities after a feed.
    pub(super) fn after(&self, feed: usize) -> &[f32] {
        let vocabulary = self.scores.model.decoder.shape.vocabulary;
        &self.posterior[feed * vocabulary..][..vocabulary]
    }
}
