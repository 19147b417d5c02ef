//! BLEU, chrF and ROUGE for texts with one reference each.

use f2_metrics::Error;
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::interrupt::interruptible;

fn scored<T: Send + 'static>(
    py: Python<'_>,
    score: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    interruptible(py, |_| score())?.map_err(value_error)
}

#[pyfunction]
pub(crate) fn corpus_bleu(py: Python<'_>, hyps: Vec<String>, refs: Vec<String>) -> PyResult<f64> {
    scored(py, move || f2_metrics::corpus_bleu(&refs, &hyps))
}

#[pyfunction]
pub(crate) fn chrf(
    py: Python<'_>,
    hyps: Vec<String>,
    refs: Vec<String>,
    word_order: usize,
) -> PyResult<f64> {
    scored(py, move || f2_metrics::chrf(&refs, &hyps, word_order))
}

#[pyfunction]
pub(crate) fn rouge(py: Python<'_>, hyps: Vec<String>, refs: Vec<String>) -> PyResult<[f64; 3]> {
    let scores = scored(py, move || f2_metrics::rouge(&refs, &hyps))?;
    Ok([scores.rouge_1, scores.rouge_2, scores.rouge_l])
}
