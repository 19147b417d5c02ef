//! The distance of texts to human text, in units of how much human text itself varies.

use rayon::prelude::*;

use crate::bootstrap::Weights;
use crate::evaluate::Measured;
use crate::{Better, Convention, Error, Halves, Measure, Metric, Metrics, Settings};

/// The metrics of human texts on random halves of them: the mean of each, and its spread.
///
/// The references are split into random halves several times. For each split, the second half of a
/// set of texts is scored against the first half of the references; a metric's value is the mean
/// over the splits. Human text is scored in the same way, so that all comparisons use equal numbers
/// of texts. Self-BLEU averages, over the half, each text's score against all others of the whole
/// set, as in the [bootstrap](crate::Bootstrap).
#[derive(Clone, Debug)]
pub struct HumanScale {
    convention: Convention,
    cuts: Vec<Weights>,
    target: Metrics,
    spread: Metrics,
}

/// The metrics of the distance: all but perplexity, which does not depend on decoding.
pub const DISTANCE_METRICS: [Metric; 6] =
    [Metric::Kld, Metric::MsJaccard, Metric::SelfBleu, Metric::Distinct, Metric::Rep, Metric::Uniq];

impl HumanScale {
    /// How many random splits are used.
    pub const CUTS: u64 = 20;

    /// The scale of these references. `None` if there are fewer than four.
    ///
    /// ```
    /// use f2_metrics::{Convention, HumanScale, distance};
    /// let human: Vec<Vec<u32>> =
    ///     (0..40).map(|n| (0..9).map(|i| n * i * i % 31).collect()).collect();
    /// let scale = HumanScale::new(&human, Convention::Paper, 1)?.unwrap();
    /// let own = scale.measure(&human, &human)?;
    /// assert_eq!(distance(&scale.deviations(&own)), Some(0.0));
    /// # Ok::<(), f2_metrics::Error>(())
    /// ```
    pub fn new<T: AsRef<[u32]> + Sync>(
        references: &[T],
        convention: Convention,
        seed: u64,
    ) -> Result<Option<Self>, Error> {
        let texts = references.len();
        let cut = |number| Halves::new(texts, seed.wrapping_add(number));
        let Some(halves) = (0..Self::CUTS).map(cut).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let cuts: Vec<Weights> = halves.iter().map(|halves| halves.weights(texts)).collect();
        let values = values(references, references, convention, &cuts)?;
        let target = mean(&values);
        let spread = target.map(|measure, _| spread(measure, &values, texts / 2));
        Ok(Some(Self { convention, cuts, target, spread }))
    }

    /// The metrics of human text.
    pub fn target(&self) -> &Metrics {
        &self.target
    }

    /// The standard deviation of the metrics of human text over the splits.
    pub fn spread(&self) -> &Metrics {
        &self.spread
    }

    /// The metrics of texts. `references` must be those of the scale, and `texts` must have the
    /// same number and order.
    pub fn measure<T: AsRef<[u32]> + Sync>(
        &self,
        references: &[T],
        texts: &[T],
    ) -> Result<Metrics, Error> {
        Ok(mean(&values(references, texts, self.convention, &self.cuts)?))
    }

    /// The distance of each value to its target, in spreads; `None` if human texts do not vary.
    /// Being closer to the references than human text counts as 0.
    pub fn deviations(&self, values: &Metrics) -> Metrics {
        values.map(|measure, value| {
            let off = (value - self.target.get(measure)?) / self.spread.get(measure)?;
            Some(match measure.better() {
                Better::Lower => off.max(0.0),
                Better::Higher => off.min(0.0),
                Better::CloserToHuman => off,
            })
        })
    }
}

/// The root mean square of the deviations. Every metric has the same weight, shared by its orders.
/// `None` if there are no deviations.
pub fn distance(deviations: &Metrics) -> Option<f64> {
    distance_over(deviations, &DISTANCE_METRICS)
}

/// [`distance`] over some of the metrics.
pub fn distance_over(deviations: &Metrics, metrics: &[Metric]) -> Option<f64> {
    let squares = metrics.iter().filter_map(|metric| {
        mean_of(deviations.orders(*metric).iter().flatten().map(|off| off * off))
    });
    mean_of(squares).map(f64::sqrt)
}

/// The values for each split.
fn values<T: AsRef<[u32]> + Sync>(
    references: &[T],
    texts: &[T],
    convention: Convention,
    cuts: &[Weights],
) -> Result<Vec<Metrics>, Error> {
    let settings = Settings { convention, ..Settings::default() };
    let measured = Measured::new(Some(references), texts, &settings)?;
    Ok(cuts.par_iter().map(|cut| measured.score(cut).0).collect())
}

fn mean(values: &[Metrics]) -> Metrics {
    values[0].map(|measure, _| mean_of(values.iter().filter_map(|each| each.get(measure))))
}

/// The standard deviation over the splits. For metrics that count, at least their smallest step:
/// otherwise human text without any loop would have a spread of 0. `None` if it is 0.
fn spread(measure: Measure, values: &[Metrics], half: usize) -> Option<f64> {
    let values: Vec<f64> = values.iter().filter_map(|each| each.get(measure)).collect();
    let mean = mean_of(values.iter().copied())?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (values.len() - 1).max(1) as f64).sqrt();
    let least = match measure {
        Measure::Metric(Metric::Rep, _) => 1.0 / half as f64,
        Measure::Metric(Metric::Uniq, _) => 1.0,
        _ => 0.0,
    };
    Some(deviation.max(least)).filter(|spread| *spread > 0.0)
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::self_bleu::scores;
    use crate::{distinct, kl_divergence, ms_jaccard, repetition, self_bleu_parts, uniq};

    fn texts(factor: u32, vocabulary: u32) -> Vec<Vec<u32>> {
        let token =
            |text: u32, place: u32| (text * text * factor + place * (text % 7 + 1)) % vocabulary;
        let text = |text: u32| {
            let body: Vec<u32> = (0..20).map(|place| token(text, place)).collect();
            // Some end in a loop.
            if (text * factor).is_multiple_of(5) {
                [body, vec![1, 2, 3, 1, 2, 3]].concat()
            } else {
                body
            }
        };
        (0..31).map(text).collect()
    }

    /// Each split scored separately, by the functions for two lists of texts.
    fn naive(human: &[Vec<u32>], model: &[Vec<u32>], seed: u64) -> Vec<[f64; 12]> {
        let own = scores(&self_bleu_parts(model, 3).unwrap(), 3, Convention::Paper);
        (0..HumanScale::CUTS)
            .map(|number| {
                let weights = Halves::new(human.len(), seed + number).unwrap().weights(human.len());
                let pick = |texts: &[Vec<u32>], weights: &[u32]| -> Vec<Vec<u32>> {
                    let kept = texts.iter().zip(weights).filter(|(_, weight)| **weight == 1);
                    kept.map(|(text, _)| text.clone()).collect()
                };
                let first = pick(human, &weights.references);
                let second = pick(model, &weights.hypotheses);
                assert_eq!((first.len(), second.len()), (15, 15));
                let bleu = |order: usize| {
                    let kept = own[order].iter().zip(&weights.hypotheses);
                    let kept = kept.filter(|(_, weight)| **weight == 1).map(|(score, _)| score);
                    kept.sum::<f64>() / 15.0
                };
                let paper = Convention::Paper;
                let jaccard = ms_jaccard(&first, &second, 3, paper).unwrap();
                let distinct = distinct(&second, 3, paper).unwrap();
                [
                    kl_divergence(&first, &second, paper).unwrap(),
                    jaccard[0],
                    jaccard[1],
                    jaccard[2],
                    bleu(0),
                    bleu(1),
                    bleu(2),
                    distinct[0],
                    distinct[1],
                    distinct[2],
                    repetition(&second).unwrap(),
                    uniq(&second).unwrap() as f64,
                ]
            })
            .collect()
    }

    #[test]
    fn the_distance_is_that_of_a_naive_reckoning() {
        let (human, model) = (texts(31, 97), texts(17, 41));
        let scale = HumanScale::new(&human, Convention::Paper, 5).unwrap().unwrap();
        let found = scale.deviations(&scale.measure(&human, &model).unwrap());
        let (of_human, of_model) = (naive(&human, &human, 5), naive(&human, &model, 5));
        let column = |rows: &[[f64; 12]], at: usize| -> Vec<f64> {
            rows.iter().map(|row| row[at]).collect()
        };
        let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let mut squares = Vec::new();
        for at in 0..12 {
            let human = column(&of_human, at);
            let target = average(&human);
            let variance = human.iter().map(|value| (value - target).powi(2)).sum::<f64>() / 19.0;
            let least = [(10, 1.0 / 15.0), (11, 1.0)];
            let least = least.iter().find(|(place, _)| *place == at).map_or(0.0, |(_, unit)| *unit);
            let off = (average(&column(&of_model, at)) - target) / variance.sqrt().max(least);
            // A lower KLD and a higher MS-Jaccard are no deviations.
            let off = if at == 0 {
                off.max(0.0)
            } else if at < 4 {
                off.min(0.0)
            } else {
                off
            };
            squares.push(off * off);
        }
        let groups = [
            &squares[..1],
            &squares[1..4],
            &squares[4..7],
            &squares[7..10],
            &squares[10..11],
            &squares[11..],
        ];
        let expected = average(&groups.map(average)).sqrt();
        let found = distance(&found).unwrap();
        // The sums are in a different order.
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        assert!(found > 1.0);
    }

    #[test]
    fn the_further_text_is_further() {
        let human = texts(31, 97);
        let scale = HumanScale::new(&human, Convention::Paper, 1).unwrap().unwrap();
        let far = |texts: &[Vec<u32>]| {
            distance(&scale.deviations(&scale.measure(&human, texts).unwrap())).unwrap()
        };
        let looped = vec![[1, 2, 3].repeat(9); 31];
        assert!(far(&texts(29, 97)) < far(&texts(29, 41)));
        assert!(far(&texts(29, 41)) < far(&looped));
        assert!(HumanScale::new(&human[..3], Convention::Paper, 1).unwrap().is_none());
    }
}
