use f2_engine::Philox;

use super::class_law::most_likely;
use super::truncation::{kth_largest, min_p, nucleus, typical};
use super::{Law, Strategy, repetition};

/// The log-probabilities of some tokens, in runs of neighbouring ids.
pub(super) struct Candidates<'a> {
    runs: Vec<Run<'a>>,
    /// What the model said of tokens whose value was changed.
    changed: Vec<(u32, f32)>,
}

/// Neighbouring ids: a class, or the whole vocabulary.
pub(super) struct Run<'a> {
    pub(super) first: u32,
    /// The log-probability of the class; 0 where there is none.
    pub(super) class: f32,
    /// Within the class.
    pub(super) logs: &'a mut [f32],
}

impl Run<'_> {
    /// A token's value in full, where it is one of these.
    fn log(&self, id: u32) -> Option<f32> {
        let place = id.checked_sub(self.first)? as usize;
        self.logs.get(place).map(|log| log + self.class)
    }

    /// The most likely, ties by id; none where nothing is possible.
    fn best(&self) -> Option<(u32, f32)> {
        // Eight at a time, as the processor compares them. Adding the class keeps the order, but
        // may make equal what was not.
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
    /// Takes what may come after `history`, with the strategy's aversion to what came before.
    pub(super) fn new(
        runs: Vec<Run<'a>>,
        strategy: &Strategy,
        history: &[u32],
        blocked: &[u32],
    ) -> Self {
        let mut candidates = Self { runs, changed: Vec::new() };
        if strategy.repetition_penalty != 1.0 {
            for id in repetition::occurred(history) {
                candidates.change(id, |log| log * strategy.repetition_penalty as f32);
            }
        }
        // Where nothing else is left, repeating is all that can be done.
        if !candidates.are_all_in(blocked) {
            blocked.iter().for_each(|id| candidates.change(*id, |_| f32::NEG_INFINITY));
        }
        candidates
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

    /// Every token with its value in full: that of its class added.
    fn logs(&self) -> impl Iterator<Item = (u32, f32)> + Clone {
        self.runs
            .iter()
            .flat_map(|run| (run.first..).zip(run.logs.iter().map(|log| log + run.class)))
    }

    /// What the model itself says of a token.
    pub(super) fn log_probability(&self, id: u32) -> f32 {
        let said = self.changed.iter().find(|(changed, _)| *changed == id);
        let said = said.map(|(_, log)| *log);
        let unchanged = || self.runs.iter().find_map(|run| run.log(id));
        said.or_else(unchanged).unwrap_or(f32::NEG_INFINITY)
    }

    /// Chooses one; none where the model's numbers are not numbers.
    pub(super) fn choose(&self, strategy: &Strategy, random: &mut Philox) -> Option<u32> {
        if strategy.temperature == 0.0 {
            let best = most_likely(self.runs.iter().filter_map(Run::best));
            return self.log_probability(best).is_finite().then_some(best);
        }
        let law = self.law(strategy);
        (!law.entries().is_empty()).then(|| law.draw(random.uniform()))
    }

    /// The law a token is drawn from at a temperature above zero.
    pub(super) fn law(&self, strategy: &Strategy) -> Law {
        let threshold = strategy.top_k.map_or(f64::NEG_INFINITY, |k| {
            kth_largest(self.logs().map(|(_, log)| f64::from(log)), k)
        });
        let kept = self.logs().filter(|(_, log)| f64::from(*log) >= threshold);
        let mut law = Law::from_logs(kept, strategy.temperature);
        if let Some(mass) = strategy.typical {
            law = typical(law, mass);
        }
        if let Some(mass) = strategy.top_p {
            law = nucleus(law, mass);
        }
        match strategy.min_p {
            Some(share) => min_p(law, share),
            None => law,
        }
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
