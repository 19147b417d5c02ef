//! The extension module `f2_softmax._native`: metrics and frequency classes for Python.
//!
//! Arguments are checked and read here; everything is computed by `f2-metrics` and `f2-classes`.
//! The Python side, with its documentation, is in `python/src/f2_softmax`.

mod errors;
mod further;
mod interrupt;
mod matched;
mod mefmax;
mod metrics;
mod numbers;
mod texts;

/// The module as Python imports it.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::further::{
        coherence, compression_ratio, entropy, longest_match, mattr, mauve, novelty, rep_l, rep_n,
        self_repetition, seq_rep, training_matches, vendi, zipf,
    };
    #[pymodule_export]
    use crate::matched::{chrf, corpus_bleu, rouge};
    #[pymodule_export]
    use crate::mefmax::{Selection, mefmax};
    #[pymodule_export]
    use crate::metrics::{
        bands, bleu, distinct, evaluate, kld, ms_jaccard, repetition, self_bleu, uniq,
    };
}
