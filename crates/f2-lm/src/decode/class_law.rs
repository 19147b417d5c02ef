//! The first half of decoupled decoding: which class.

use f2_engine::Philox;

use super::truncation::top_k;
use super::{ClassDraw, Law};

/// Added to every class's share when a class too small for k is filled up, as the authors do: no
/// class is ever out of reach.
const FILL_FLOOR: f64 = 1e-6;

/// Sums that should meet `p` exactly may miss it by this much.
const ROUNDING: f64 = 1e-12;

/// The law a class is drawn from, given the logarithms of their probabilities.
pub fn class_law(logs: &[f32], draw: &ClassDraw) -> Law {
    let logs = (0..).zip(logs.iter().copied());
    if draw.temperature == 0.0 {
        return Law::from_weights([(most_likely(logs), 1.0)]);
    }
    let mut law = Law::from_logs(logs, draw.temperature);
    if let Some(k) = draw.top_k {
        law = top_k(law, k);
    }
    strict_nucleus(law, draw.top_p)
}

/// The authors' nucleus: the longest run of the most likely classes whose mass does not exceed
/// `p`, at least one. Unlike Holtzman's it drops the class that crosses `p`; classes as likely as
/// the last one kept are kept too.
pub(super) fn strict_nucleus(law: Law, p: f64) -> Law {
    if p >= 1.0 || law.entries().is_empty() {
        return law;
    }
    let mut mass = 0.0;
    let within = |(_, probability): &&(u32, f64)| {
        mass += probability;
        mass <= p + ROUNDING
    };
    let sorted = law.descending();
    let kept = sorted.iter().take_while(within).count().max(1);
    let threshold = sorted[kept - 1].1;
    law.retain(|_, probability| probability >= threshold)
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

/// The order in which classes are taken until there are `k` tokens: `first`, then the others drawn
/// without replacement from the same law.
pub fn fill_order(
    law: &Law,
    first: u32,
    sizes: &[usize],
    k: usize,
    random: &mut Philox,
) -> Vec<u32> {
    let mut order = vec![first];
    let mut available = sizes[first as usize];
    while available < k && order.len() < sizes.len() {
        let left = (0..sizes.len() as u32).filter(|class| !order.contains(class));
        let weights = left.map(|class| (class, law.probability(class) + FILL_FLOOR));
        let next = Law::from_weights(weights).draw(random.uniform());
        available += sizes[next as usize];
        order.push(next);
    }
    order
}
