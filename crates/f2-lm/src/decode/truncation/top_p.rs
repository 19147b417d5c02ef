//! Nucleus sampling, top-p (Holtzman et al., 2020), and what other rules share with it: the fewest
//! tokens that reach a mass, in some order.

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting, host_alone_below_one};
use super::{Effect, TruncationRule, Truncations};

pub(super) const RULE: TruncationRule = TruncationRule {
    key: "top_p",
    name: "top-p",
    setting: TruncationSetting::Share,
    value_name: "P",
    help: "Keep the fewest tokens that reach this mass (nucleus sampling)",
    advice: "`--top-p 0.9` is usual; 1 keeps all tokens",
    is_well_known: true,
    field: "top_p",
    none: &[1.0],
    transformers: Some(Foreign { name: "top_p", unset: None }),
    effect: Effect::Probabilities(top_p),
    on_device: host_alone_below_one,
};

impl Truncations {
    /// Sets a nucleus of the mass `p`; `None` turns it off.
    #[must_use]
    pub fn with_top_p(self, p: impl Into<Option<f64>>) -> Self {
        self.with(&RULE, p)
    }

    /// The mass of the nucleus.
    pub fn top_p(&self) -> Option<f64> {
        self.get(&RULE)
    }
}

/// The fewest that together reach the mass `p`, the most likely first.
#[must_use]
pub fn top_p(distribution: Distribution, p: f64) -> Distribution {
    if p >= 1.0 {
        return distribution;
    }
    // Entries below this floor hold less than 1 − p together and cannot be needed, so most are not
    // sorted.
    let floor = (1.0 - p) / distribution.entries().len() as f64;
    keep_until(distribution.retain_above(floor), p, |_, probability| -probability)
}

impl Distribution {
    /// The entries from `floor` up, renormalised, and the mass of all others.
    fn retain_above(self, floor: f64) -> (Self, f64) {
        let kept: f64 = self.entries().iter().map(|(_, q)| *q).filter(|q| *q >= floor).sum();
        (self.retain(|_, probability| probability >= floor), 1.0 - kept)
    }
}

/// Keeps entries in ascending order of `rank` until they reach the mass `p`, as it was before the
/// mass `dropped` was removed. Ties are broken by id.
pub(super) fn keep_until(
    (distribution, dropped): (Distribution, f64),
    p: f64,
    rank: impl Fn(u32, f64) -> f64,
) -> Distribution {
    let mut sorted: Vec<(f64, u32, f64)> =
        distribution.entries().iter().map(|(id, q)| (rank(*id, *q), *id, *q)).collect();
    sorted.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let mut mass = 0.0;
    let needed = sorted.iter().take_while(|(_, _, probability)| {
        let before = mass;
        mass += probability * (1.0 - dropped);
        before < p
    });
    let mut kept: Vec<u32> = needed.map(|(_, id, _)| *id).collect();
    kept.sort_unstable();
    distribution.retain(|id, _| kept.binary_search(&id).is_ok())
}
