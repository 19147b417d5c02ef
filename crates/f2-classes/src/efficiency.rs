//! Efficiency: normalised entropy (Eq. 6).

/// How evenly occurrences are spread over the members of a class: their entropy divided by its
/// maximum (Eq. 6 of the paper), between 0 and 1.
///
/// Members that never occurred are included. If the formula gives 0/0 the class is as even as
/// possible, so a single member and a class without occurrences have efficiency 1.
///
/// ```
/// assert_eq!(f2_classes::efficiency(&[5, 5, 5]), 1.0);
/// assert_eq!(f2_classes::efficiency(&[5, 0]), 0.0);
/// assert_eq!(f2_classes::efficiency(&[5]), 1.0);
/// ```
pub fn efficiency(counts: &[u64]) -> f64 {
    let mass = counts.iter().map(|&count| u128::from(count)).sum::<u128>() as f64;
    if counts.len() == 1 || mass == 0.0 {
        return 1.0;
    }
    // With p = c/mass, −Σ p ln p = ln mass − Σ c ln c / mass.
    let count_log_count: f64 = counts.iter().map(|&count| x_ln_x(count as f64)).sum();
    let entropy = mass.ln() - count_log_count / mass;
    // Rounding may exceed either bound by a few units in the last place.
    (entropy / (counts.len() as f64).ln()).clamp(0.0, 1.0)
}

/// x ln x, with its limit at 0.
#[inline]
pub(crate) fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_printed_formula() {
        let counts = [10_u64, 9, 5, 3, 2, 1, 0];
        let total: u64 = counts.iter().sum();
        let shares = counts.iter().map(|&c| c as f64 / total as f64).filter(|&p| p > 0.0);
        let entropy: f64 = shares.map(|p| -p * p.ln()).sum();
        assert!((efficiency(&counts) - entropy / 7_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn a_class_without_occurrences_is_even() {
        assert_eq!(efficiency(&[0, 0, 0]), 1.0);
    }
}
