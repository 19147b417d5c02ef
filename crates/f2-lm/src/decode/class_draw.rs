//! The first half of decoupled decoding: drawing the class.

use f2_engine::{ClassSampling, Classes, Philox};
use serde::{Deserialize, Serialize};

use super::checks::{check_from_zero, check_k, check_share, check_temperature};
use super::distribution::most_likely;
use super::truncation::top_k;
use super::{Distribution, Truncations};
use crate::Error;

/// Added to the probability of every class when a class with fewer than k tokens is filled up, as
/// in the authors' code: every class can be drawn.
const FILL_FLOOR: f64 = 1e-6;

/// Rounding error allowed in sums that should equal `p` exactly.
const ROUNDING: f64 = 1e-12;

/// How a class is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDraw {
    /// As for tokens; 0 takes the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes up to this mass, never beyond it: 1 as in the paper's text,
    /// 0.9 as in the authors' code.
    pub top_p: f64,
    /// How top-k treats a class with fewer than k tokens.
    pub small: SmallClass,
    /// The exponent by which the k of top-k grows with the size of a class; the smallest class has
    /// the given k. 0 gives all classes the same k.
    pub top_k_growth: f64,
}

/// How top-k treats a class with fewer than k tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmallClass {
    /// Takes all of them (the paper's Eq. 7).
    #[default]
    Clamp,
    /// Draws further classes until there are k tokens (the authors' code).
    Fill,
}

impl SmallClass {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Clamp, Self::Fill];

    /// The name on the command line, in requests and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clamp => "clamp",
            Self::Fill => "fill",
        }
    }

    /// A one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Self::Clamp => "Takes all of them, as the paper's Eq. 7 says (the default)",
            Self::Fill => {
                "Draws further classes until there are k tokens, as the authors' code does"
            }
        }
    }

    /// The treatment with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|small| small.name() == name)
    }
}

impl Default for ClassDraw {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            small: SmallClass::Clamp,
            top_k_growth: 0.0,
        }
    }
}

impl ClassDraw {
    pub(super) fn check(&self, classes: usize) -> Result<(), Error> {
        let Self { temperature, top_k, top_p, small: _, top_k_growth } = *self;
        check_temperature("class temperature", temperature)?;
        check_k("class top-k", top_k, classes, "classes")?;
        check_share("class top-p", top_p)?;
        check_from_zero("top-k growth", top_k_growth)
    }

    /// The distribution a class is drawn from, given the classes' log-probabilities.
    pub fn distribution(&self, logs: &[f32]) -> Distribution {
        // How many tokens a class keeps does not matter to the draw of the class.
        let Self { temperature, top_k: k, top_p, small: _, top_k_growth: _ } = *self;
        let logs = (0..).zip(logs.iter().copied());
        if temperature == 0.0 {
            return Distribution::from_weights([(most_likely(logs), 1.0)]);
        }
        let mut distribution = Distribution::from_logs(logs, temperature);
        if let Some(k) = k {
            distribution = top_k(distribution, k);
        }
        strict_nucleus(distribution, top_p)
    }

    /// The settings for a draw on the device; `None` if small classes are filled up or k grows with
    /// the class, which only the host supports.
    pub(super) fn on_device(&self) -> Option<ClassSampling> {
        let Self { temperature, top_k, top_p, small, top_k_growth } = *self;
        let device_can = small == SmallClass::Clamp && top_k_growth == 0.0;
        device_can.then_some(ClassSampling { temperature, top_k, top_p })
    }

    /// The truncations within a drawn class, which may have its own k.
    pub(super) fn truncations(
        &self,
        all: Truncations,
        classes: &Classes,
        class: u32,
    ) -> Truncations {
        all.with_top_k(all.top_k().map(|k| self.k_in(classes, class, k)))
    }

    /// The k of a class, given the `k` of the smallest. It may exceed the size of the class, but
    /// not that of the vocabulary.
    pub(super) fn k_in(&self, classes: &Classes, class: u32, k: usize) -> usize {
        let sizes = (0..classes.count()).map(|class| classes.members(class).len());
        let (most, least) = sizes.fold((0, usize::MAX), |(sum, least), n| (sum + n, least.min(n)));
        grown_k(k, classes.members(class as usize).len(), least, self.top_k_growth).min(most)
    }
}

/// `k · (tokens / least)^growth`, rounded.
fn grown_k(k: usize, tokens: usize, least: usize, growth: f64) -> usize {
    (k as f64 * (tokens as f64 / least as f64).powf(growth)).round() as usize
}

/// The authors' nucleus: the longest run of the most likely classes whose mass does not exceed
/// `p`, at least one. Unlike Holtzman's it drops the class that crosses `p`; classes as likely as
/// the last one kept are kept too.
pub(super) fn strict_nucleus(distribution: Distribution, p: f64) -> Distribution {
    if p >= 1.0 || distribution.entries().is_empty() {
        return distribution;
    }
    let mut mass = 0.0;
    let within = |(_, probability): &&(u32, f64)| {
        mass += probability;
        mass <= p + ROUNDING
    };
    let sorted = distribution.descending();
    let kept = sorted.iter().take_while(within).count().max(1);
    let threshold = sorted[kept - 1].1;
    distribution.retain(|_, probability| probability >= threshold)
}

/// The order in which classes are taken until they hold `k` tokens: `first`, then the others drawn
/// without replacement from the same distribution.
pub fn fill_order(
    distribution: &Distribution,
    first: u32,
    sizes: &[usize],
    k: usize,
    random: &mut Philox,
) -> Vec<u32> {
    let mut order = vec![first];
    let mut available = sizes[first as usize];
    while available < k && order.len() < sizes.len() {
        let left = (0..sizes.len() as u32).filter(|class| !order.contains(class));
        let weights = left.map(|class| (class, distribution.probability(class) + FILL_FLOOR));
        let next = Distribution::from_weights(weights).draw(random.uniform());
        available += sizes[next as usize];
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_k_of_a_class_grows_with_a_power_of_its_tokens() {
        for (k, tokens, growth, expected) in [
            (3, 4, 0.0, 3),
            (3, 4, 0.9, 3),
            // 3 · √(100 / 4) and 3 · 100 / 4.
            (3, 100, 0.5, 15),
            (3, 100, 1.0, 75),
            // 2 · √(9 / 4) and 2 · √(10 / 4) = 3.16.
            (2, 9, 0.5, 3),
            (2, 10, 0.5, 3),
            // 5 · √(5 / 4) = 5.59, and halves are rounded up: 1 · 6 / 4 = 1.5.
            (5, 5, 0.5, 6),
            (1, 6, 1.0, 2),
            // 3 · (100 / 4)².
            (3, 100, 2.0, 1_875),
            (1, 5, 1e300, usize::MAX),
        ] {
            assert_eq!(grown_k(k, tokens, 4, growth), expected, "{k} {tokens} {growth}");
        }
    }

    /// A device keeps the same number of tokens in every class.
    #[test]
    fn a_device_draws_where_all_classes_have_one_k() {
        let grows = |top_k_growth| ClassDraw { top_k_growth, ..ClassDraw::default() };
        assert!(grows(0.0).on_device().is_some());
        assert_eq!(grows(0.3).on_device(), None);
    }
}
