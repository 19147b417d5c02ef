//! The first half of decoupled decoding: which class.

use f2_engine::{ClassSampling, Philox};
use serde::{Deserialize, Serialize};

use super::Distribution;
use super::checks::{check_k, check_share, check_temperature};
use super::distribution::most_likely;
use super::truncation::top_k;
use crate::Error;

/// Added to every class's share when a class too small for k is filled up, as the authors do: no
/// class is ever out of reach.
const FILL_FLOOR: f64 = 1e-6;

/// Sums that should meet `p` exactly may miss it by this much.
const ROUNDING: f64 = 1e-12;

/// How a class is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDraw {
    /// As for tokens; 0 takes the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes up to this mass, never beyond it: 1 as in the paper's text, 0.9 as
    /// in the authors' code.
    pub top_p: f64,
    /// How top-k treats a class with fewer than k tokens.
    pub small: SmallClass,
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

    /// The treatment of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|small| small.name() == name)
    }
}

impl Default for ClassDraw {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: 1.0, small: SmallClass::Clamp }
    }
}

impl ClassDraw {
    pub(super) fn check(&self, classes: usize) -> Result<(), Error> {
        let Self { temperature, top_k, top_p, small: _ } = *self;
        check_temperature("class temperature", temperature)?;
        check_k("class top-k", top_k, classes, "classes")?;
        check_share("class top-p", top_p)
    }

    /// The distribution a class is drawn from, given the classes' log-probabilities.
    pub fn distribution(&self, logs: &[f32]) -> Distribution {
        let Self { temperature, top_k: k, top_p, small: _ } = *self;
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

    /// The same for a device; none where classes are filled up, which the host does.
    pub(super) fn on_device(&self) -> Option<ClassSampling> {
        let Self { temperature, top_k, top_p, small } = *self;
        (small == SmallClass::Clamp).then_some(ClassSampling { temperature, top_k, top_p })
    }
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

/// The order in which classes are taken until there are `k` tokens: `first`, then the others drawn
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
