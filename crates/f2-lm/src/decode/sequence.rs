//! A sequence being continued: its tokens, its part in the cache, its slot in a batch, and its
//! random stream.

use std::collections::HashMap;
use std::sync::Arc;

use f2_engine::Philox;
use sha2::{Digest as _, Sha256};

use super::mirostat::Limit;
use super::prompt_scores::PromptScores;
use super::sampler::Wanted;
use super::{ErrorDiffusion, Strategy, Token};
use crate::model::Feed;

/// A sequence of tokens that grows, and the part of it that the cache holds.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// Prompt and continuation so far.
    pub(super) history: Vec<u32>,
    /// The index in `history` at which the model's context begins.
    window: usize,
    /// How many tokens of the context are in the cache.
    cached: usize,
}

impl Sequence {
    /// A prompt, or as much of its end as the model has positions for; nothing of it is cached yet.
    pub(super) fn new(prompt: &[u32], positions: usize) -> Self {
        let window = prompt.len().saturating_sub(positions);
        Self { history: prompt.to_vec(), window, cached: 0 }
    }

    /// How many tokens the model must be fed before the next one is chosen. A sequence that has
    /// outgrown the model's positions continues from its last `positions / 2` tokens.
    pub(super) fn due(&mut self, positions: usize) -> usize {
        if self.history.len() - self.window > positions {
            (self.window, self.cached) = (self.history.len() - positions / 2, 0);
        }
        self.history.len() - self.window - self.cached
    }

    /// All tokens that are [`due`](Self::due), for slot `slot` of the cache.
    pub(super) fn feed(&mut self, slot: usize, positions: usize) -> Feed<'_> {
        let due = self.due(positions);
        self.feed_part(slot, due)
    }

    /// The first `tokens` of the tokens that are [`due`](Self::due).
    pub(super) fn feed_part(&mut self, slot: usize, tokens: usize) -> Feed<'_> {
        let (cached, seen) = (self.cached, self.window + self.cached);
        self.cached += tokens;
        Feed { sequence: slot, cached, tokens: &self.history[seen..seen + tokens] }
    }

    /// The index in the history of the first token that is not in the cache.
    pub(super) fn next_due(&self) -> usize {
        self.window + self.cached
    }

    /// How many tokens the cache holds after the last feed.
    pub(super) fn cached(&self) -> usize {
        self.cached
    }
}

/// A sequence in its slot.
pub(super) struct Running {
    pub(super) slot: usize,
    /// The caller's number for it.
    pub(super) number: usize,
    pub(super) sequence: Sequence,
    pub(super) stream: RandomStream,
    pub(super) seed: u64,
    pub(super) strategy: Arc<Strategy>,
    pub(super) end: Option<u32>,
    pub(super) alternatives: Option<usize>,
    /// `None` if the prompt is not to be scored, or has been.
    pub(super) prompt_scores: Option<PromptScores>,
    /// `None` unless decoding is deterministic.
    pub(super) diffusion: Option<ErrorDiffusion>,
    pub(super) tokens: Vec<Token>,
    /// Mirostat's limit, if the strategy uses mirostat.
    pub(super) limit: Option<Limit>,
    /// Tokens still to be chosen.
    pub(super) left: usize,
}

impl Running {
    /// Mirostat's limit after the next token.
    pub(super) fn limit_after(&self, token: &Token) -> Option<Limit> {
        let mirostat = self.strategy.mirostat.as_ref()?;
        Some(mirostat.after(self.limit?, token.log_probability))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.left == 0 && self.prompt_scores.is_none()
    }

    /// The inputs to the choice of its next token. `amateur` holds the other model's
    /// log-probabilities of all tokens.
    pub(super) fn wanted<'r>(&'r mut self, amateur: Option<&'r [f32]>) -> Wanted<'r> {
        let random = self.stream.at(self.seed, self.tokens.len());
        let (diffusion, limit) = (self.diffusion.as_mut(), self.limit);
        Wanted { history: &self.sequence.history, random, diffusion, limit, amateur }
    }
}

/// The random numbers of one sequence: a function of its prompt, the number of its sample and the
/// seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomStream([u32; 2]);

impl RandomStream {
    /// Sample number `sample` of a prompt.
    fn new(prompt: &[u32], sample: u64) -> Self {
        let mut hash = Sha256::new();
        prompt.iter().for_each(|id| hash.update(id.to_le_bytes()));
        hash.update(sample.to_le_bytes());
        let digest = hash.finalize();
        let word = |at: usize| u32::from_le_bytes(digest[at..at + 4].try_into().expect("4 bytes"));
        Self([word(0), word(4)])
    }

    /// A number from [−½, ½) for the rank of a context, independent of the seed.
    pub(super) fn phase(self, context: u64, rank: u32) -> f64 {
        Philox::new(context, [self.0[0], self.0[1], rank]).uniform() - 0.5
    }

    /// The random numbers for the token at `position` of the continuation.
    pub(super) fn at(self, seed: u64, position: usize) -> Philox {
        Philox::new(seed, [self.0[0], self.0[1], position as u32])
    }
}

/// The random streams of `samples` texts of each prompt. A prompt that occurs again gets further
/// samples, so that no two texts share their random numbers; the order of the prompts does not
/// matter.
pub struct RandomStreams<'a> {
    prompts: &'a [Vec<u32>],
    samples: usize,
    /// How often each prompt occurred before.
    met: Vec<u64>,
}

impl<'a> RandomStreams<'a> {
    /// The streams of `samples` texts of each prompt.
    pub fn new(prompts: &'a [Vec<u32>], samples: usize) -> Self {
        Self::after(&[], prompts, samples)
    }

    /// The streams of `samples` texts of each prompt, after as many texts of each `earlier` prompt.
    pub fn after(earlier: &'a [Vec<u32>], prompts: &'a [Vec<u32>], samples: usize) -> Self {
        let mut times: HashMap<&[u32], u64> = HashMap::new();
        let mut meet = |prompt: &'a Vec<u32>| {
            let times = times.entry(prompt).or_default();
            *times += 1;
            *times - 1
        };
        let met: Vec<u64> = earlier.iter().chain(prompts).map(&mut meet).collect();
        Self { prompts, samples, met: met[earlier.len()..].to_vec() }
    }

    /// If `repeats`, a prompt that occurs again has the same streams again, so that its texts are
    /// the same.
    #[must_use]
    pub fn repeating(mut self, repeats: bool) -> Self {
        if repeats {
            self.met.fill(0);
        }
        self
    }

    /// The stream of text number `number`; the samples of a prompt follow one another.
    pub fn of(&self, number: usize) -> RandomStream {
        let (prompt, sample) = (number / self.samples, number % self.samples);
        let sample = self.met[prompt] * self.samples as u64 + sample as u64;
        RandomStream::new(&self.prompts[prompt], sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_streams_follow_their_prompts() {
        let (a, b) = (vec![1, 2], vec![3]);
        let all = |prompts: &[Vec<u32>]| -> Vec<RandomStream> {
            let streams = RandomStreams::new(prompts, 2);
            (0..6).map(|number| streams.of(number)).collect()
        };
        let forth = all(&[a.clone(), b.clone(), a.clone()]);
        let back = all(&[b.clone(), a.clone(), a.clone()]);
        assert_eq!(forth[..2], back[2..4]);
        assert_eq!(forth[2..4], back[..2]);
        assert_eq!(forth[4..], back[4..]);
        // As if all had been given at once.
        let (before, now) = ([a.clone(), b.clone()], [a.clone()]);
        assert_eq!(RandomStreams::after(&before, &now, 2).of(1), forth[5]);
        let mut all: Vec<[u32; 2]> = forth.iter().map(|stream| stream.0).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn a_sequence_longer_than_the_model_sees_goes_on_from_its_last_half() {
        let mut sequence = Sequence::new(&[0, 1, 2, 3, 4, 5], 4);
        let feed = sequence.feed(0, 4);
        assert_eq!((feed.cached, feed.tokens), (0, &[2, 3, 4, 5][..]));
        sequence.history.push(6);
        let feed = sequence.feed(0, 4);
        assert_eq!((feed.cached, feed.tokens), (0, &[5, 6][..]));
        sequence.history.push(7);
        let feed = sequence.feed(0, 4);
        assert_eq!((feed.cached, feed.tokens), (2, &[7][..]));
    }
}
