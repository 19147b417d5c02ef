//! The divergence curve of two histograms and the area under it.

/// The number of mixtures on the curve, as in the published program.
const POINTS: usize = 25;
/// The smallest weight of either histogram in a mixture.
const EDGE: f64 = 1e-6;

/// The values computed from the divergence curve of two histograms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frontier {
    /// MAUVE: the area under the curve, from 0 to 1.
    pub mauve: f64,
    /// MAUVE of histograms smoothed by half a point in each cluster (Pillutla et al., 2023).
    pub smoothed: f64,
    /// The frontier integral, from 0 (equal histograms) to 1.
    pub integral: f64,
    /// The frontier integral of the smoothed histograms.
    pub smoothed_integral: f64,
}

/// Compares two sets of points by their counts in the same clusters.
///
/// ```
/// let same = f2_metrics::frontier(&[3, 5, 2], &[6, 10, 4], 5.0);
/// assert!((same.mauve - 1.0).abs() < 1e-9 && same.integral == 0.0);
/// ```
pub fn frontier(human: &[u32], model: &[u32], scaling: f64) -> Frontier {
    let [p, q] = [human, model].map(|counts| shares(counts, 0.0));
    let [smooth_p, smooth_q] = [human, model].map(|counts| shares(counts, 0.5));
    Frontier {
        mauve: area(&p, &q, scaling),
        smoothed: area(&smooth_p, &smooth_q, scaling),
        integral: integral(&p, &q),
        smoothed_integral: integral(&smooth_p, &smooth_q),
    }
}

fn shares(counts: &[u32], more: f64) -> Vec<f64> {
    let sum: f64 = counts.iter().map(|count| f64::from(*count) + more).sum();
    counts.iter().map(|count| (f64::from(*count) + more) / sum).collect()
}

/// The mean of the areas between the curve and either axis.
fn area(p: &[f64], q: &[f64], scaling: f64) -> f64 {
    let mut curve = vec![[1.0, 0.0]];
    for point in 0..POINTS {
        let weight = EDGE + (1.0 - 2.0 * EDGE) * point as f64 / (POINTS - 1) as f64;
        let mixture: Vec<f64> =
            p.iter().zip(q).map(|(p, q)| weight * p + (1.0 - weight) * q).collect();
        curve.push([q, p].map(|side| (-scaling * divergence(side, &mixture)).exp()));
    }
    curve.push([0.0, 1.0]);
    let turned: Vec<[f64; 2]> = curve.iter().map(|[x, y]| [*y, *x]).collect();
    f64::midpoint(under(curve), under(turned))
}

/// The area by the trapezoidal rule. The curve decreases: of points with the same x, the upper
/// comes first.
fn under(mut curve: Vec<[f64; 2]>) -> f64 {
    curve.sort_by(|one, other| one[0].total_cmp(&other[0]).then(other[1].total_cmp(&one[1])));
    curve.windows(2).map(|pair| (pair[1][0] - pair[0][0]) * (pair[0][1] + pair[1][1]) / 2.0).sum()
}

/// KL(part ‖ mixture), in nats.
fn divergence(part: &[f64], mixture: &[f64]) -> f64 {
    let terms = part.iter().zip(mixture).filter(|(p, _)| **p > 0.0);
    terms.map(|(p, r)| p * (p / r).ln()).sum()
}

/// The frontier integral (Liu et al., 2021).
fn integral(p: &[f64], q: &[f64]) -> f64 {
    let part = |(&p, &q): (&f64, &f64)| {
        if p == 0.0 || q == 0.0 {
            (p + q) / 4.0
        } else if (p - q).abs() > 1e-8 {
            (p + q) / 4.0 - p * q * (p.ln() - q.ln()) / (p - q) / 2.0
        } else {
            0.0
        }
    };
    2.0 * p.iter().zip(q).map(part).sum::<f64>()
}
