//! A model as requests see it: name, vocabulary, classes, bands, and its metrics.

use std::sync::atomic::{AtomicUsize, Ordering};

use f2_corpus::END_OF_TEXT;
use f2_lm::decode::Strategy;
use f2_lm::run::{SavedModel, Vocabulary};
use f2_metrics::Bands;

use crate::metrics::ModelMetrics;

/// A model that is served.
pub struct Served {
    /// The name by which requests choose it.
    pub name: String,
    /// Its files.
    pub saved: SavedModel,
    /// The default decoding of requests; `None` for the model's own distribution.
    pub(crate) decoding: Option<Strategy>,
    /// The token that ends a text.
    pub(crate) end: Option<u32>,
    /// `None` if the model has no counts of its training text.
    pub(crate) bands: Option<Bands>,
    /// The bands' shares of the training text.
    pub(crate) human_shares: Option<[f64; 4]>,
    pub(crate) metrics: ModelMetrics,
    /// Texts that wait for a place in the batch.
    waiting: AtomicUsize,
}

impl Served {
    pub(crate) fn new(name: String, saved: SavedModel, decoding: Option<Strategy>) -> Self {
        let end = saved.vocabulary.token(END_OF_TEXT);
        let bands = saved.counts.as_ref().and_then(|counts| Bands::from_counts(counts).ok());
        let human_shares = saved.counts.as_ref().zip(bands.as_ref()).map(|(counts, bands)| {
            let mut shares = [0_u64; 4];
            (0..).zip(counts).for_each(|(id, count)| shares[bands.band(id)] += count);
            let total: u64 = counts.iter().sum();
            shares.map(|share| share as f64 / total as f64)
        });
        let (metrics, waiting) = (ModelMetrics::default(), AtomicUsize::new(0));
        Self { name, saved, decoding, end, bands, human_shares, metrics, waiting }
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.saved.vocabulary
    }

    /// Whether it is an F² model, which draws classes first.
    pub(crate) fn has_classes(&self) -> bool {
        !self.saved.shape.class_ends.is_empty()
    }

    /// How many texts wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Counts texts as waiting; returns false, and counts none, if `most` wait already.
    pub(crate) fn begin_waiting(&self, texts: usize, most: usize) -> bool {
        let add = |waiting: usize| (waiting < most).then_some(waiting + texts);
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).is_ok()
    }

    pub(crate) fn end_waiting(&self, texts: usize) {
        self.waiting.fetch_sub(texts, Ordering::SeqCst);
    }

    /// A token's name in lists of log-probabilities: its text, or its id if it has no text of its
    /// own, so that no two tokens look the same.
    pub(crate) fn token_name(&self, id: u32) -> String {
        if self.end == Some(id) {
            return END_OF_TEXT.to_owned();
        }
        let text = self.vocabulary().decode(&[id]).unwrap_or_default();
        if text.is_empty() || text.contains(char::REPLACEMENT_CHARACTER) {
            return format!("token_id:{id}");
        }
        text
    }
}
