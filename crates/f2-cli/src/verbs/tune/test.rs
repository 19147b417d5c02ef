//! Untuned and tuned decoding on the test split.

use f2_engine::Device;
use f2_lm::decode::{DecodingKeys, Strategy, TestSet};
use f2_metrics::{Bootstrap, Convention, HumanScale, Interval, Metrics, Settings, evaluate};
use serde::{Deserialize, Serialize};

use super::examiner::Examiner;
use super::record::Nearness;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, Unit};

/// Draws of the bootstrap.
const DRAWS: usize = 500;

/// The measurements on the test split.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Test {
    /// The number of texts.
    pub(super) texts: usize,
    /// Human text as a whole.
    pub(super) human: Scores,
    /// One half of the human texts against the other: as close as texts can be at this number.
    pub(super) target: Metrics,
    /// How much `target` varies.
    pub(super) spread: Metrics,
    pub(super) untuned: Tested,
    pub(super) tuned: Tested,
}

/// A set of texts by all metrics.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scores {
    pub(super) metrics: Metrics,
    /// 95 % intervals by bootstrap.
    pub(super) intervals: Option<Metrics<Interval>>,
}

/// A decoding on the test split.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tested {
    pub(super) decoding: DecodingKeys,
    #[serde(flatten)]
    pub(super) scores: Scores,
    #[serde(flatten)]
    pub(super) nearness: Nearness,
}

impl Test {
    /// Measures both decodings; `None` if it was interrupted, or there are too few texts.
    pub(super) fn measure<D: Device>(
        examiner: &Examiner<'_, D>,
        set: &TestSet,
        seed: u64,
        untuned: &DecodingKeys,
        tuned: &DecodingKeys,
    ) -> Result<Option<Self>, Failure> {
        let _progress = Progress::new("testing the choice", None, Unit::Time);
        let references = &set.references;
        let scale = HumanScale::new(references, Convention::Paper, seed).map_err(Failure::data)?;
        let Some(scale) = scale else { return Ok(None) };
        let settings = Settings {
            bootstrap: Some(Bootstrap { replicates: DRAWS, seed }),
            ..Settings::default()
        };
        let scores = |against: Option<&[Vec<u32>]>, texts: &[Vec<u32>]| {
            let scored = evaluate(against, texts, &settings).map_err(Failure::data)?;
            Ok::<_, Failure>(Scores { metrics: scored.metrics, intervals: scored.intervals })
        };
        let test = |decoding: &DecodingKeys| {
            let strategy = Strategy::from(decoding);
            let Some(texts) = examiner.write(&strategy, &set.prefixes, &interrupt::asked)? else {
                return Ok(None);
            };
            Ok::<_, Failure>(Some(Tested {
                decoding: decoding.clone(),
                scores: scores(Some(references), &texts)?,
                nearness: Nearness::of(&scale, references, &texts).map_err(Failure::data)?,
            }))
        };
        let (Some(untuned), Some(tuned)) = (test(untuned)?, test(tuned)?) else { return Ok(None) };
        Ok(Some(Self {
            texts: references.len(),
            human: scores(None, references)?,
            target: scale.target().clone(),
            spread: scale.spread().clone(),
            untuned,
            tuned,
        }))
    }
}
