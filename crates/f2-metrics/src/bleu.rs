//! BLEU from counted matches.

/// The treatment of orders without a matching n-gram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// The number of matches that replaces zero matches.
    pub matches_for_none: f64,
    /// Whether a text without a matching unigram scores 0.
    pub zero_without_unigrams: bool,
}

impl Smoothing {
    /// The authors' value: practically zero, but with a finite logarithm.
    pub const AUTHORS: Self = Self { matches_for_none: 1e-100, zero_without_unigrams: false };
    /// Method 1 of Chen and Cherry (2014).
    pub const METHOD1: Self = Self { matches_for_none: 0.1, zero_without_unigrams: false };
    /// NLTK's `sentence_bleu` with its `method1`, which returns 0 before smoothing if no unigram
    /// matches.
    pub const NLTK: Self = Self { matches_for_none: 0.1, zero_without_unigrams: true };
}

/// The parts of one text's BLEU against all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BleuParts {
    /// Matching n-grams of each order from 1, clipped to the largest count in one other text.
    pub matches: Vec<u32>,
    /// Tokens of the text.
    pub length: usize,
    /// The length of the other text closest in length; the shorter one in case of a tie.
    pub closest_length: usize,
}

impl BleuParts {
    /// N-grams of an order, at least 1: the denominator of its precision.
    pub fn ngrams(&self, order: usize) -> usize {
        (self.length + 1).saturating_sub(order).max(1)
    }

    /// 1 for a text longer than its closest reference, `exp(1 − r/h)` otherwise.
    pub fn brevity_penalty(&self) -> f64 {
        if self.length > self.closest_length {
            1.0
        } else if self.length == 0 {
            0.0
        } else {
            (1.0 - self.closest_length as f64 / self.length as f64).exp()
        }
    }

    /// BLEU-1, BLEU-2, … with uniform weights.
    pub fn scores(&self, smoothing: Smoothing) -> Vec<f64> {
        if smoothing.zero_without_unigrams && self.matches.first() == Some(&0) {
            return vec![0.0; self.matches.len()];
        }
        let penalty = self.brevity_penalty();
        let mut logarithms = 0.0;
        let scores = (1..).zip(&self.matches).map(|(order, &matches)| {
            let matches = if matches == 0 { smoothing.matches_for_none } else { matches.into() };
            logarithms += (matches / self.ngrams(order) as f64).ln();
            penalty * (logarithms / order as f64).exp()
        });
        scores.collect()
    }
}
