//! Frequency bands: shares of tokens by how often the training text uses them.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::metrics::Value;
use crate::{Error, Measure};

/// The names of the bands, from the most frequent tokens to the least.
pub const BAND_NAMES: [&str; 4] = ["frequent", "medium", "rare", "very_rare"];

/// The shares of training mass, in tenths, at which one band ends and the next begins.
const CUTS: [u128; 3] = [4, 7, 9];

/// Four bands of ranks, cut at 40, 70 and 90 % of the training corpus's tokens.
///
/// The rank at which the running total reaches a cut is the first of the next band. Token ids
/// must be frequency ranks: id 0 the most frequent.
///
/// ```
/// use f2_metrics::Bands;
/// let bands = Bands::from_counts(&[10, 9, 8, 7, 6, 5, 4, 3, 2, 1])?;
/// assert_eq!(bands.bounds(), [2, 4, 7]);
/// assert_eq!(bands.band(5), 2);
/// assert_eq!(bands.shares(&[[0, 1, 2, 9]])?, [0.5, 0.25, 0.0, 0.25]);
/// assert_eq!(bands.very_rare(&[0, 1, 2, 9]), Some(0.25));
/// # Ok::<(), f2_metrics::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bands {
    bounds: [u32; 3],
    ranks: usize,
}

/// A value for each band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "V: Value", deserialize = "V: Deserialize<'de>"))]
pub struct BandShares<V = f64> {
    /// Up to 40 % of the training tokens.
    pub frequent: V,
    /// Up to 70 %.
    pub medium: V,
    /// Up to 90 %.
    pub rare: V,
    /// The rest. Its share is called VR.
    pub very_rare: V,
    /// (model − human) / human, in the same order; `None` if the human share is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to_human: Option<[Option<f64>; 4]>,
}

impl<V: Copy> BandShares<V> {
    /// From the most frequent band to the least.
    pub fn new([frequent, medium, rare, very_rare]: [V; 4]) -> Self {
        Self { frequent, medium, rare, very_rare, relative_to_human: None }
    }

    /// From the most frequent band to the least.
    pub fn shares(&self) -> [V; 4] {
        [self.frequent, self.medium, self.rare, self.very_rare]
    }

    /// Replaces each value; `None` unless all bands have one.
    pub(crate) fn map<W: Copy>(
        &self,
        mut put: impl FnMut(Measure, V) -> Option<W>,
    ) -> Option<BandShares<W>> {
        let [one, two, three, four] =
            [0, 1, 2, 3].map(|band| put(Measure::Band(band), self.shares()[band]));
        Some(BandShares::new([one?, two?, three?, four?]))
    }
}

impl BandShares {
    /// The same shares, with their relative differences to those of human text.
    #[must_use]
    pub fn beside(mut self, human: &Self) -> Self {
        let (own, human) = (self.shares(), human.shares());
        let relative =
            |band: usize| (human[band] > 0.0).then(|| (own[band] - human[band]) / human[band]);
        self.relative_to_human = Some([0, 1, 2, 3].map(relative));
        self
    }
}

impl Bands {
    /// Computes the bands from the training counts by rank, most frequent first.
    ///
    /// Uses integer arithmetic, so that rounding cannot move a bound.
    pub fn from_counts(counts: &[u64]) -> Result<Self, Error> {
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        if total == 0 {
            return Err(Error::NoCounts);
        }
        if let Some(rank) = counts.windows(2).position(|pair| pair[0] < pair[1]) {
            return Err(Error::CountsNotDescending(rank));
        }
        let (mut rank, mut running) = (0, u128::from(counts[0]));
        let bounds = CUTS.map(|cut| {
            while 10 * running < cut * total {
                rank += 1;
                running += u128::from(counts[rank]);
            }
            rank as u32
        });
        Ok(Self { bounds, ranks: counts.len() })
    }

    /// The first ranks of the medium, the rare and the very rare band.
    pub fn bounds(&self) -> [u32; 3] {
        self.bounds
    }

    /// Each band's share of the tokens of all texts.
    pub fn shares<T: AsRef<[u32]> + Sync>(&self, texts: &[T]) -> Result<[f64; 4], Error> {
        let counts = self.count(texts)?;
        shares(&counts, &vec![1; texts.len()]).ok_or(Error::NoTokens("texts"))
    }

    /// VR: the share of very rare tokens in one text. `None` if it is empty.
    pub fn very_rare(&self, text: &[u32]) -> Option<f64> {
        let rare = text.iter().filter(|&&rank| self.band(rank) == 3).count();
        (!text.is_empty()).then(|| rare as f64 / text.len() as f64)
    }

    /// The number of tokens of each band in every text.
    pub(crate) fn count<T: AsRef<[u32]> + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<[u32; 4]>, Error> {
        let count = |(number, text): (usize, &T)| {
            let mut counts = [0; 4];
            for &id in text.as_ref() {
                if id as usize >= self.ranks {
                    return Err(Error::IdOutsideCounts { text: number + 1, id, known: self.ranks });
                }
                counts[self.band(id)] += 1;
            }
            Ok(counts)
        };
        texts.par_iter().enumerate().map(count).collect()
    }

    /// The band of a rank, as an index into [`BAND_NAMES`].
    pub fn band(&self, rank: u32) -> usize {
        self.bounds.iter().filter(|&&bound| rank >= bound).count()
    }
}

/// Each band's share of all tokens of the weighted texts. `None` if there are no tokens.
pub(crate) fn shares(counts: &[[u32; 4]], weights: &[u32]) -> Option<[f64; 4]> {
    let mut bands = [0_u64; 4];
    for (text, &weight) in counts.iter().zip(weights) {
        for (band, &count) in bands.iter_mut().zip(text) {
            *band += u64::from(weight) * u64::from(count);
        }
    }
    let total: u64 = bands.iter().sum();
    (total > 0).then(|| bands.map(|band| band as f64 / total as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_must_be_there_and_must_not_rise() {
        assert_eq!(Bands::from_counts(&[]), Err(Error::NoCounts));
        assert_eq!(Bands::from_counts(&[0, 0]), Err(Error::NoCounts));
        assert_eq!(Bands::from_counts(&[3, 2, 3]), Err(Error::CountsNotDescending(1)));
    }

    #[test]
    fn an_unknown_id_is_named_with_its_text() {
        let bands = Bands::from_counts(&[3, 2]).unwrap();
        let error = bands.shares(&[vec![0, 1], vec![0, 2]]).unwrap_err();
        assert_eq!(error, Error::IdOutsideCounts { text: 2, id: 2, known: 2 });
    }
}
