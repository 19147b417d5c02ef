//! How well a model foresees a text: the negative log-likelihood of its full posterior.

use std::ops::Range;

use f2_engine::{Device, IGNORED, Sequences, Weighting};

use crate::Error;
use crate::batch::TokenSource;
use crate::memory::{Purpose, check_memory};
use crate::model::{Batch, Decoder, Model, Recordings, Workspace};

/// Positions scored at a time, at most, unless one window has more.
const MOST_POSITIONS: usize = 2048;

/// The windows a text is read in.
///
/// With a stride as long as the window they follow one another, and the first token of each is
/// context alone. With a shorter stride windows overlap, and every token but the text's first is
/// scored once, with at least `sequence - stride` tokens before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindows {
    /// Tokens in a window.
    pub sequence: usize,
    /// Tokens from the start of one to the start of the next.
    pub stride: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihood {
    /// The summed negative log-likelihood, in nats.
    pub nats: f64,
    /// Tokens scored.
    pub scored: u64,
}

impl Likelihood {
    /// The mean over scored tokens, in nats.
    pub fn mean(&self) -> f64 {
        self.nats / self.scored as f64
    }
}

impl SlidingWindows {
    /// Each window of a text of `tokens` tokens, with the tokens in it that are scored.
    fn of(self, tokens: u64) -> impl Iterator<Item = (Range<u64>, Range<u64>)> {
        let (sequence, stride) = (self.sequence as u64, self.stride as u64);
        let mut start = 0;
        let mut before = 0;
        std::iter::from_fn(move || {
            if before >= tokens {
                return None;
            }
            let end = (start + sequence).min(tokens);
            let window = (start..end, before.max(start + 1)..end);
            (before, start) = (end, start + stride);
            Some(window)
        })
        // A last window of one token alone has nothing to predict.
        .filter(|(_, scored)| !scored.is_empty())
    }

    /// How many tokens of a text are scored.
    pub fn scored(self, tokens: u64) -> u64 {
        self.of(tokens).map(|(_, scored)| scored.end - scored.start).sum()
    }

    fn check(self, decoder: &Decoder, tokens: u64) -> Result<(), Error> {
        let Self { sequence, stride } = self;
        let positions = decoder.shape.positions;
        let (option, reason) = if !(2..=positions).contains(&sequence) {
            ("window", format!("{sequence} is not from 2 to the model's {positions} positions"))
        } else if !(1..=sequence).contains(&stride) {
            ("stride", format!("{stride} is not from 1 to the window's {sequence}"))
        } else if tokens < 2 {
            return Err(Error::TooFewTokens { tokens });
        } else {
            return Ok(());
        };
        Err(Error::Strategy { option, reason })
    }
}

/// Scores a text. `progress` is told how many tokens were scored since it was last told; nothing
/// comes back when `stop` said so.
pub fn score<D: Device>(
    model: &Model<D>,
    text: &dyn TokenSource,
    windows: SlidingWindows,
    progress: &mut dyn FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Option<Likelihood>, Error> {
    windows.check(&model.decoder, text.len())?;
    let mut scorer = Scorer::new(model, windows.sequence)?;
    let mut total = Likelihood { nats: 0.0, scored: 0 };
    let mut left = windows.of(text.len()).peekable();
    while left.peek().is_some() {
        if stop() {
            return Ok(None);
        }
        let batch: Vec<_> = left.by_ref().take(scorer.sequences.count).collect();
        let scored: u64 = batch.iter().map(|(_, scored)| scored.end - scored.start).sum();
        total.nats += scorer.score(text, &batch)?;
        total.scored += scored;
        progress(scored);
    }
    if !total.nats.is_finite() {
        return Err(Error::NoProbabilities);
    }
    Ok(Some(total))
}

struct Scorer<'a, D: Device> {
    model: &'a Model<D>,
    sequences: Sequences,
    workspace: Workspace<D>,
    recordings: Recordings<D>,
    inputs: Vec<u32>,
    ids: Vec<u32>,
}

impl<'a, D: Device> Scorer<'a, D> {
    fn new(model: &'a Model<D>, length: usize) -> Result<Self, Error> {
        let sequences = Sequences { count: (MOST_POSITIONS / length).max(1), length };
        let positions = sequences.positions();
        let needed = Workspace::<D>::activation_bytes(&model.decoder, positions)
            + Workspace::<D>::head_bytes(&model.decoder, positions);
        check_memory(&model.device, Purpose::Perplexity, needed)?;
        Ok(Self {
            workspace: Workspace::new(model, positions)?,
            recordings: Recordings::default(),
            inputs: vec![0; positions],
            ids: vec![IGNORED; positions],
            model,
            sequences,
        })
    }

    /// The summed negative log-likelihood of some windows' scored tokens.
    fn score(
        &mut self,
        text: &dyn TokenSource,
        batch: &[(Range<u64>, Range<u64>)],
    ) -> Result<f64, Error> {
        self.fill(text, batch)?;
        let Self { model, workspace, recordings, inputs, ids, .. } = self;
        let batch = Batch { sequences: self.sequences, inputs, dropout: None };
        workspace.forward(model, batch, recordings);
        workspace.set_targets(model, ids, Weighting::Uniform(1.0), None);
        workspace.negative_log_likelihood(model)
    }

    fn fill(
        &mut self,
        text: &dyn TokenSource,
        batch: &[(Range<u64>, Range<u64>)],
    ) -> Result<(), Error> {
        let (length, vocabulary) = (self.sequences.length, self.model.decoder.shape.vocabulary);
        self.inputs.fill(0);
        self.ids.fill(IGNORED);
        let rows = self.inputs.chunks_mut(length).zip(self.ids.chunks_mut(length));
        for ((window, scored), (inputs, ids)) in batch.iter().zip(rows) {
            let inputs = &mut inputs[..(window.end - window.start) as usize];
            text.read(window.clone(), inputs);
            if let Some(&token) = inputs.iter().find(|token| **token as usize >= vocabulary) {
                return Err(Error::TokenOutside { token, vocabulary });
            }
            for place in scored.clone() {
                let place = (place - window.start) as usize;
                ids[place - 1] = inputs[place];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_token_is_scored_once_but_those_without_context(
            tokens in 2_u64..200, sequence in 2_usize..20, stride in 1_usize..20,
        ) {
            let stride = stride.min(sequence);
            let windows = SlidingWindows { sequence, stride };
            let scored: Vec<u64> = windows.of(tokens).flat_map(|(_, scored)| scored).collect();
            let follows = stride == sequence;
            let expected: Vec<u64> = (1..tokens)
                .filter(|place| !follows || place % sequence as u64 != 0)
                .collect();
            prop_assert_eq!(windows.scored(tokens), expected.len() as u64);
            prop_assert_eq!(scored, expected);
            for (window, scored) in windows.of(tokens) {
                prop_assert!(window.start < scored.start && scored.end <= window.end);
                prop_assert!(window.end - window.start <= sequence as u64);
                let context = scored.start - window.start;
                let first = window.start == 0;
                prop_assert!(first || follows || context >= (sequence - stride) as u64);
            }
        }
    }
}
