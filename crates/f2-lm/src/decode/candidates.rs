//! The tokens to choose from, with their log-probabilities after penalties and blocking.

use super::distribution::most_likely;
use super::mirostat::Limit;
use super::sampler::Wanted;
use super::truncation::kth_largest;
use super::{Context, Contrast, Distribution, Strategy, Truncations};
use crate::Error;

/// The log-probabilities of some tokens, in runs of consecutive ids.
pub(super) struct Candidates<'a> {
    runs: Vec<Run<'a>>,
    /// The rules that decide which of them are kept.
    truncations: Truncations,
    /// The model's own log-probabilities of the tokens whose log-probability was changed.
    changed: Vec<(u32, f32)>,
}

/// Consecutive ids: a class, or the whole vocabulary.
pub(super) struct Run<'a> {
    pub(super) first: u32,
    /// The log-probability of the class; 0 without classes.
    pub(super) class: f32,
    /// The log-probabilities within the class.
    pub(super) logs: &'a mut [f32],
}

impl Run<'_> {
    /// A token's log-probability, including its class's; `None` if the token is not in the run.
    fn log(&self, id: u32) -> Option<f32> {
        let place = id.checked_sub(self.first)? as usize;
        self.logs.get(place).map(|log| log + self.class)
    }

    /// The most likely token, ties by id; `None` if no token is possible.
    fn best(&self) -> Option<(u32, f32)> {
        // Eight at a time, so that the comparisons vectorise. Adding the class keeps the order, but
        // may make different values equal.
        let mut lanes = [f32::NEG_INFINITY; 8];
        let (blocks, rest) = self.logs.as_chunks::<8>();
        for block in blocks {
            for lane in 0..8 {
                lanes[lane] = if block[lane] > lanes[lane] { block[lane] } else { lanes[lane] };
            }
        }
        let largest = lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, b| a.max(*b));
        let best = largest + self.class;
        let place = self.logs.iter().position(|log| log + self.class == best)?;
        (best > f32::NEG_INFINITY).then_some((self.first + place as u32, best))
    }
}

impl<'a> Candidates<'a> {
    /// The log-probabilities after `history`, with the strategy's penalties on what occurred in it.
    /// `blocked` must be ascending.
    pub(super) fn new(
        runs: Vec<Run<'a>>,
        strategy: &Strategy,
        history: &[u32],
        blocked: &[u32],
    ) -> Self {
        let truncations = strategy.truncations;
        let mut candidates = Self { runs, truncations, changed: Vec::new() };
        if strategy.repetition_penalty != 1.0 {
            for id in occurred(history) {
                candidates.change(id, |log| log * strategy.repetition_penalty as f32);
            }
        }
        for (id, penalty) in strategy.dry.iter().flat_map(|dry| dry.penalties(history)) {
            candidates.change(id, |log| log - penalty as f32);
        }
        // If every token is blocked, none is.
        if !candidates.are_all_in(blocked) {
            blocked.iter().for_each(|id| candidates.change(*id, |_| f32::NEG_INFINITY));
        }
        candidates
    }

    /// The same, with other truncations.
    pub(super) fn truncated(self, truncations: Truncations) -> Self {
        Self { truncations, ..self }
    }

    /// Replaces log-probabilities by scores against an amateur, whose log-probabilities of all
    /// tokens are `amateur`.
    pub(super) fn contrasted(
        mut self,
        contrast: &Contrast,
        amateur: &[f32],
    ) -> Result<Self, Error> {
        let before: Vec<Vec<f32>> = self.runs.iter().map(|run| run.logs.to_vec()).collect();
        let logs = self.runs.iter_mut().flat_map(|run| {
            let (class, others) = (run.class, &amateur[run.first as usize..]);
            run.logs.iter_mut().zip(others).map(move |(log, other)| (log, class, *other))
        });
        contrast.score(logs)?;
        for (run, before) in self.runs.iter().zip(before) {
            let own = (run.first..).zip(before.iter().map(|log| log + run.class));
            let plausible = own.zip(run.logs.iter()).filter(|(_, log)| **log > f32::NEG_INFINITY);
            self.changed.extend(plausible.map(|(own, _)| own));
        }
        Ok(self)
    }

    fn are_all_in(&self, blocked: &[u32]) -> bool {
        let ids = self.runs.iter().flat_map(|run| run.first..run.first + run.logs.len() as u32);
        let count: usize = self.runs.iter().map(|run| run.logs.len()).sum();
        count <= blocked.len() && ids.into_iter().all(|id| blocked.binary_search(&id).is_ok())
    }

    fn change(&mut self, id: u32, to: impl Fn(f32) -> f32) {
        for run in &mut self.runs {
            let place = id.checked_sub(run.first).map(|place| place as usize);
            if let Some(log) = place.and_then(|place| run.logs.get_mut(place)) {
                self.changed.push((id, *log + run.class));
                *log = to(*log);
            }
        }
    }

    /// Every token with its log-probability, including its class's.
    fn logs(&self) -> impl Iterator<Item = (u32, f32)> + Clone {
        self.runs
            .iter()
            .flat_map(|run| (run.first..).zip(run.logs.iter().map(|log| log + run.class)))
    }

    /// The model's own log-probability of a token.
    pub(super) fn log_probability(&self, id: u32) -> f32 {
        let before = self.changed.iter().find(|(changed, _)| *changed == id);
        let unchanged = || self.runs.iter().find_map(|run| run.log(id));
        before.map(|(_, log)| *log).or_else(unchanged).unwrap_or(f32::NEG_INFINITY)
    }

    /// Chooses a token, by error diffusion in deterministic decoding; `None` if the
    /// log-probabilities are not numbers.
    pub(super) fn choose(
        &self,
        strategy: &Strategy,
        context: Context,
        wanted: &mut Wanted<'_>,
    ) -> Option<u32> {
        if strategy.temperature == 0.0 {
            let best = most_likely(self.runs.iter().filter_map(Run::best));
            return self.log_probability(best).is_finite().then_some(best);
        }
        let mut distribution = self.distribution(strategy, wanted.limit);
        if let Some(xtc) = &strategy.xtc {
            distribution = xtc.apply(distribution, &mut wanted.random);
        }
        (!distribution.entries().is_empty()).then(|| wanted.decide(context, &distribution))
    }

    /// The distribution a token is drawn from at a temperature above zero, before XTC. `limit` is
    /// mirostat's.
    pub(super) fn distribution(&self, strategy: &Strategy, limit: Option<Limit>) -> Distribution {
        let temperature = strategy.temperature;
        let Some(limit) = limit else {
            return self.truncations.distribution(self.logs(), temperature);
        };
        let threshold = limit.threshold(self.logs().map(|(_, log)| log));
        let kept = self.logs().filter(|(_, log)| f64::from(*log) >= threshold);
        self.truncations.distribution(kept, temperature)
    }

    /// The `count` most likely, best first, ties by id.
    pub(super) fn best(&self, count: usize) -> Vec<(u32, f32)> {
        let threshold = kth_largest(self.logs().map(|(_, log)| f64::from(log)), count);
        let possible = |log: f32| log > f32::NEG_INFINITY && f64::from(log) >= threshold;
        let mut best: Vec<(u32, f32)> = self.logs().filter(|(_, log)| possible(*log)).collect();
        best.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        best.truncate(count);
        best
    }
}

/// The tokens that would repeat an n-gram of `n` tokens, ascending.
pub(super) fn blocked(history: &[u32], n: usize) -> Vec<u32> {
    if n == 0 || history.len() + 1 < n {
        return Vec::new();
    }
    let end = &history[history.len() + 1 - n..];
    let repeated = history.windows(n).filter(|window| window[..n - 1] == *end);
    let mut ids: Vec<u32> = repeated.map(|window| window[n - 1]).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The tokens that occurred, ascending.
pub(super) fn occurred(history: &[u32]) -> Vec<u32> {
    let mut ids = history.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_repeat_is_blocked() {
        let history = [1, 2, 3, 1, 2, 4, 1, 2];
        assert_eq!(blocked(&history, 3), [3, 4]);
        assert_eq!(blocked(&history, 2), [3, 4]);
        assert_eq!(blocked(&history, 1), [1, 2, 3, 4]);
        assert_eq!(blocked(&[1, 2, 3, 9, 1, 2, 3], 4), [9]);
        assert_eq!(blocked(&history, 9), [0; 0]);
        assert_eq!(blocked(&history, 0), [0; 0]);
        assert_eq!(blocked(&[], 1), [0; 0]);
    }
}
