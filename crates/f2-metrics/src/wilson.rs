//! The Wilson score interval of a proportion.

use crate::Interval;

/// The quantile of the normal distribution that leaves 2.5 % above it.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a share of `trials` independent texts (Wilson, 1927).
///
/// Unlike a bootstrap interval it has a width even if nothing was counted: after 1,792 texts
/// without a loop, up to 0.21 % of all texts may have one.
///
/// ```
/// let interval = f2_metrics::wilson(0.0, 1792);
/// assert_eq!(interval.low, 0.0);
/// assert!((interval.high - 0.002_139).abs() < 1e-6);
/// ```
pub fn wilson(share: f64, trials: usize) -> Interval {
    let n = trials.max(1) as f64;
    let shrink = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / shrink;
    let half = Z / shrink * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Interval { low: (centre - half).max(0.0).min(share), high: (centre + half).min(1.0).max(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each end is a population share whose own standard error, times `Z`, is its distance to the
    /// observed share.
    #[test]
    fn the_ends_are_as_many_standard_errors_away_as_the_level_says() {
        for (loops, texts) in [(0_u32, 10_u32), (3, 10), (1, 1_792), (33, 1_792), (10, 10)] {
            let share = f64::from(loops) / f64::from(texts);
            let Interval { low, high } = wilson(share, texts as usize);
            assert!(low <= share && share <= high && low < high);
            for end in [low, high].into_iter().filter(|end| (1e-9..1.0 - 1e-9).contains(end)) {
                let error = (end * (1.0 - end) / f64::from(texts)).sqrt();
                assert!(((share - end).abs() - Z * error).abs() < 1e-12, "{loops} of {texts}");
            }
        }
    }
}
