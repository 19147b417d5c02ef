//! The distribution the next token, or its class, is drawn from.

/// Ids with their probabilities, which sum to one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution(Vec<(u32, f64)>);

impl Distribution {
    /// Normalises weights of any sum. Ids without weight are left out.
    ///
    /// If no id has weight, the distribution is empty, and [`draw`](Self::draw) panics.
    pub fn from_weights(weights: impl IntoIterator<Item = (u32, f64)>) -> Self {
        let entries = weights.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
        Self(entries).normalised()
    }

    /// The same for logarithms of weights, divided by a temperature above zero.
    pub fn from_logs(logs: impl Iterator<Item = (u32, f32)> + Clone, temperature: f64) -> Self {
        let largest = logs.clone().map(|(_, log)| log).fold(f32::NEG_INFINITY, f32::max);
        let weight = |log: f32| (f64::from(log - largest) / temperature).exp();
        Self::from_weights(logs.map(|(id, log)| (id, weight(log))))
    }

    /// The ids and their probabilities.
    pub fn entries(&self) -> &[(u32, f64)] {
        &self.0
    }

    /// The probability of an id.
    pub fn probability(&self, id: u32) -> f64 {
        self.0.iter().find(|(entry, _)| *entry == id).map_or(0.0, |(_, probability)| *probability)
    }

    /// The entropy in nats.
    pub fn entropy(&self) -> f64 {
        self.0.iter().map(|(_, q)| -q * q.ln()).sum()
    }

    /// The id selected by a uniform number from `[0, 1)`.
    pub fn draw(&self, uniform: f64) -> u32 {
        let mut rest = uniform;
        for (id, probability) in &self.0 {
            if rest < *probability {
                return *id;
            }
            rest -= probability;
        }
        // Rounding may leave a remainder after the last entry.
        self.0.last().expect("a distribution has an entry").0
    }

    /// Keeps the entries for which `keep` returns true, renormalised.
    #[must_use]
    pub(super) fn retain(mut self, mut keep: impl FnMut(u32, f64) -> bool) -> Self {
        self.0.retain(|(id, probability)| keep(*id, *probability));
        self.normalised()
    }

    fn normalised(mut self) -> Self {
        let sum: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        self.0.iter_mut().for_each(|(_, weight)| *weight /= sum);
        self
    }

    /// The ids from the most to the least likely, ties by id.
    pub(super) fn descending(&self) -> Vec<(u32, f64)> {
        let mut sorted = self.0.clone();
        sorted
            .sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        sorted
    }
}

/// The most likely id, ties by id.
pub(super) fn most_likely(logs: impl Iterator<Item = (u32, f32)>) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, log) in logs {
        if log > best.1 {
            best = (id, log);
        }
    }
    best.0
}
