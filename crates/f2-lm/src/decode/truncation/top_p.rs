//! Nucleus sampling, top-p (Holtzman et al., 2020), and what other rules share with it: the fewest
//! tokens that reach a mass, in some order.

use f2_engine::TokenSampling;

use super::super::Distribution;
use super::rule::{Foreign, TruncationSetting};
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
    on_device: |sampling, p| Some(TokenSampling { top_p: Some(p), ..sampling }),
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
    let mut ranked: Vec<Ranked> =
        distribution.entries().iter().map(|(id, q)| (rank(*id, *q), *id, *q)).collect();
    let (mut kept, mut mass, mut rest) = (Vec::new(), 0.0, &mut ranked[..]);
    // Few entries are needed of many: only as many as are needed are sorted.
    while !rest.is_empty() {
        let (first, later) = sort_first(rest, FIRST_SORTED.max(kept.len()));
        for (_, id, probability) in first {
            if mass >= p {
                break;
            }
            mass += probability * (1.0 - dropped);
            kept.push(*id);
        }
        rest = if mass < p { later } else { &mut [] };
    }
    kept.sort_unstable();
    distribution.retain(|id, _| kept.binary_search(&id).is_ok())
}

/// An entry's rank, id and probability.
type Ranked = (f64, u32, f64);

/// Entries sorted at once, at least.
const FIRST_SORTED: usize = 256;

/// Splits off the `count` smallest entries, or all, sorted.
fn sort_first(entries: &mut [Ranked], count: usize) -> (&[Ranked], &mut [Ranked]) {
    let order =
        |left: &Ranked, right: &Ranked| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1));
    if count < entries.len() {
        entries.select_nth_unstable_by(count, order);
    }
    let (first, later) = entries.split_at_mut(count.min(entries.len()));
    first.sort_unstable_by(order);
    (first, later)
}
