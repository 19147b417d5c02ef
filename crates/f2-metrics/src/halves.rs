//! Human text against human text: the ceiling of the metrics that compare with references.

use crate::bootstrap::Weights;
use crate::random::Random;
use crate::{Error, Evaluation, Settings, evaluate};

/// The random stream of the split; bootstrap replicates use the streams from 0.
const STREAM: u64 = u64::MAX;

/// The indices of texts, split at random into two halves of equal size.
///
/// One half of the references, scored against the other as if a model had written it, is as
/// close to human as text can be at this number of texts. A model is compared with it on as many
/// texts: its continuations of the second half's prefixes, against the references of the first
/// half; see [`Halves::evaluate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves {
    first: Vec<usize>,
    second: Vec<usize>,
}

impl Halves {
    /// Splits this many texts; if their number is odd, one is left out. `None` if a half would have
    /// fewer than two texts, which Self-BLEU needs.
    pub fn new(texts: usize, seed: u64) -> Option<Self> {
        let mut places: Vec<usize> = (0..texts).collect();
        let mut random = Random::new(seed, STREAM);
        // Fisher–Yates shuffle, from the end.
        for last in (1..texts).rev() {
            places.swap(last, random.below(last + 1));
        }
        let half = texts / 2;
        let (mut first, mut second) = (places[..half].to_vec(), places[half..2 * half].to_vec());
        first.sort_unstable();
        second.sort_unstable();
        (half >= 2).then_some(Self { first, second })
    }

    /// Weight 1 for the first half of the references and the second half of the texts.
    pub(crate) fn weights(&self, texts: usize) -> Weights {
        let weigh = |places: &[usize]| {
            let mut weights = vec![0; texts];
            places.iter().for_each(|&place| weights[place] = 1);
            weights
        };
        Weights { references: weigh(&self.first), hypotheses: weigh(&self.second) }
    }

    /// Scores the second half of the texts against the first half of the references, without
    /// intervals. To score human text, pass the references as the texts.
    ///
    /// ```
    /// use f2_metrics::{Halves, Settings};
    /// let human = [[1, 2, 3], [1, 2, 4], [1, 2, 5], [1, 2, 6]];
    /// let halves = Halves::new(human.len(), 1).unwrap();
    /// let ceiling = halves.evaluate(&human, &human, &Settings::default())?;
    /// assert_eq!(ceiling.texts, 2);
    /// assert!(ceiling.metrics.kld.unwrap() > 0.0);
    /// # Ok::<(), f2_metrics::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there are fewer references or texts than were split.
    pub fn evaluate<T: AsRef<[u32]> + Sync>(
        &self,
        references: &[T],
        texts: &[T],
        settings: &Settings,
    ) -> Result<Evaluation, Error> {
        let pick = |places: &[usize], texts: &[T]| -> Vec<Vec<u32>> {
            places.iter().map(|&place| texts[place].as_ref().to_vec()).collect()
        };
        let settings = Settings { bootstrap: None, ..settings.clone() };
        evaluate(Some(&pick(&self.first, references)), &pick(&self.second, texts), &settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_equal_disjoint_and_cut_by_the_seed() {
        let halves = Halves::new(101, 7).unwrap();
        assert_eq!((halves.first.len(), halves.second.len()), (50, 50));
        let mut all = [halves.first.clone(), halves.second.clone()].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
        assert_eq!(halves, Halves::new(101, 7).unwrap());
        assert_ne!(halves, Halves::new(101, 8).unwrap());
        assert_eq!((Halves::new(3, 1), Halves::new(0, 1)), (None, None));
    }

    #[test]
    fn both_halves_are_mixed() {
        let halves = Halves::new(1_000, 1).unwrap();
        let early = halves.first.iter().filter(|&&place| place < 500).count();
        // 250 expected, 7.9 the standard deviation.
        assert!(early.abs_diff(250) < 40, "{early}");
    }

    #[test]
    fn human_text_is_closer_to_itself_than_other_text_is() {
        let text = |from: u32, vocabulary: u32| -> Vec<u32> {
            (0..40).map(|place| (from * 13 + place) % vocabulary).collect()
        };
        let human: Vec<Vec<u32>> = (0..60).map(|number| text(number, 97)).collect();
        let model: Vec<Vec<u32>> = (0..60).map(|number| text(number, 31)).collect();
        let halves = Halves::new(60, 1).unwrap();
        let settings = Settings::default();
        let ceiling = halves.evaluate(&human, &human, &settings).unwrap();
        let scored = halves.evaluate(&human, &model, &settings).unwrap();
        assert_eq!((ceiling.texts, scored.texts), (30, 30));
        assert!(ceiling.metrics.kld < scored.metrics.kld);
        assert!(ceiling.metrics.ms_jaccard[1] > scored.metrics.ms_jaccard[1]);
    }
}
