//! The per-text parts of a metric, from which its value on resampled texts can be computed.

use crate::Error;

/// How a metric's value is computed from those of single texts.
pub(crate) enum Statistic {
    /// The mean over the texts that have a value.
    Mean(Vec<Option<f64>>),
    /// The product of ratios, each of two sums over the texts.
    Ratios(Vec<Vec<[f64; 2]>>),
    /// Of all texts together: resampled texts would have to be measured again.
    Whole(f64),
}

impl Statistic {
    /// The value of the weighted texts; `None` if no text has one.
    pub(crate) fn value(&self, weights: &[u32]) -> Option<f64> {
        match self {
            Self::Mean(values) => mean(values, weights),
            Self::Ratios(ratios) => ratios.iter().map(|texts| ratio(texts, weights)).product(),
            Self::Whole(value) => Some(*value),
        }
    }

    /// Whether it has a value for resampled texts.
    pub(crate) fn can_be_drawn(&self) -> bool {
        !matches!(self, Self::Whole(_))
    }

    /// The value with every text counted once, or the error `missing`.
    pub(crate) fn of_all(&self, texts: usize, missing: Error) -> Result<f64, Error> {
        self.value(&vec![1; texts]).filter(|value| value.is_finite()).ok_or(missing)
    }
}

fn mean(values: &[Option<f64>], weights: &[u32]) -> Option<f64> {
    let (mut sum, mut texts) = (0.0, 0_u64);
    for (value, &weight) in values.iter().zip(weights) {
        if let Some(value) = value {
            sum += value * f64::from(weight);
            texts += u64::from(weight);
        }
    }
    (texts > 0).then(|| sum / texts as f64)
}

fn ratio(texts: &[[f64; 2]], weights: &[u32]) -> Option<f64> {
    let mut sums = [0.0; 2];
    for (parts, &weight) in texts.iter().zip(weights) {
        sums[0] += parts[0] * f64::from(weight);
        sums[1] += parts[1] * f64::from(weight);
    }
    (sums[1] > 0.0).then(|| sums[0] / sums[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_count_as_often_as_they_were_drawn() {
        let mean = Statistic::Mean(vec![Some(1.0), None, Some(4.0)]);
        assert_eq!(mean.value(&[1, 1, 1]), Some(2.5));
        assert_eq!(mean.value(&[2, 0, 1]), Some(2.0));
        assert_eq!(mean.value(&[0, 3, 0]), None);
        let ratios = Statistic::Ratios(vec![vec![[1.0, 2.0], [1.0, 6.0]], vec![[1.0, 1.0]; 2]]);
        assert_eq!(ratios.value(&[1, 1]), Some(0.25));
        assert_eq!(ratios.value(&[2, 0]), Some(0.5));
        assert_eq!(ratios.value(&[0, 0]), None);
    }
}
