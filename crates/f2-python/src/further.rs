//! The further metrics of `f2-metrics`.

use f2_metrics::{Error, Features, MauveSettings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::interrupt::interruptible;
use crate::metrics::of_texts;
use crate::texts::Reader;

/// Refuses lengths of n-grams and windows below 1.
fn from_one(name: &str, number: usize) -> PyResult<usize> {
    if number > 0 {
        return Ok(number);
    }
    Err(PyValueError::new_err(format!("{name} must be at least 1; got {number}")))
}

#[pyfunction]
pub(crate) fn compression_ratio(py: Python<'_>, texts: Vec<String>) -> PyResult<f64> {
    interruptible(py, move |_| f2_metrics::compression_ratio(&texts))?.map_err(value_error)
}

#[pyfunction]
pub(crate) fn self_repetition(texts: &Bound<'_, PyAny>, n: usize) -> PyResult<f64> {
    let n = from_one("n", n)?;
    of_texts(texts, move |texts| f2_metrics::self_repetition(texts, n))
}

#[pyfunction]
pub(crate) fn rep_n(texts: &Bound<'_, PyAny>, n: usize) -> PyResult<f64> {
    let n = from_one("n", n)?;
    of_texts(texts, move |texts| f2_metrics::rep_n(texts, n))
}

#[pyfunction]
pub(crate) fn seq_rep(texts: &Bound<'_, PyAny>, n: usize) -> PyResult<f64> {
    let n = from_one("n", n)?;
    of_texts(texts, move |texts| f2_metrics::seq_rep(texts, n))
}

#[pyfunction]
pub(crate) fn rep_l(texts: &Bound<'_, PyAny>, window: usize) -> PyResult<f64> {
    let window = from_one("window", window)?;
    of_texts(texts, move |texts| f2_metrics::rep_l(texts, window))
}

#[pyfunction]
pub(crate) fn zipf(texts: &Bound<'_, PyAny>, ranks: usize) -> PyResult<f64> {
    of_texts(texts, move |texts| f2_metrics::zipf_coefficient(texts, ranks))
}

#[pyfunction]
pub(crate) fn entropy(texts: &Bound<'_, PyAny>, n: usize) -> PyResult<f64> {
    let n = from_one("n", n)?;
    of_texts(texts, move |texts| f2_metrics::ngram_entropy(texts, n))
}

#[pyfunction]
pub(crate) fn mattr(texts: &Bound<'_, PyAny>, window: usize) -> PyResult<f64> {
    let window = from_one("window", window)?;
    of_texts(texts, move |texts| f2_metrics::mattr(texts, window))
}

#[pyfunction]
pub(crate) fn vendi(texts: &Bound<'_, PyAny>, max_order: usize) -> PyResult<f64> {
    let max_order = from_one("max_order", max_order)?;
    of_texts(texts, move |texts| f2_metrics::vendi_score(texts, max_order))
}

/// For each token, the length of the longest sequence ending with it that the training texts
/// contain.
#[pyfunction]
pub(crate) fn training_matches(
    texts: &Bound<'_, PyAny>,
    training: &Bound<'_, PyAny>,
) -> PyResult<Vec<Vec<u32>>> {
    let mut reader = Reader::default();
    let training = reader.read("training", training)?;
    let read = reader.read("texts", texts)?;
    let found = interruptible(texts.py(), move |_| {
        // Separates the documents, so that no match spans two of them.
        let ids = training.slices().join(&u32::MAX);
        f2_metrics::training_matches(&read.slices(), &ids[..], &|_| true)
    })?;
    found.ok_or_else(|| PyValueError::new_err("the training text was not read to its end"))
}

#[pyfunction]
pub(crate) fn novelty(py: Python<'_>, matches: Vec<Vec<u32>>, n: usize) -> PyResult<f64> {
    let n = from_one("n", n)?;
    interruptible(py, move |_| f2_metrics::novelty(&matches, n))?.map_err(value_error)
}

#[pyfunction]
pub(crate) fn longest_match(py: Python<'_>, matches: Vec<Vec<u32>>) -> PyResult<f64> {
    interruptible(py, move |_| f2_metrics::longest_match(&matches))?.map_err(value_error)
}

/// Points as the bytes of f32 values, and the number of values in each.
type Points = (Vec<u8>, usize);

fn features(name: &str, (bytes, width): Points) -> PyResult<Features> {
    let numbers = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_ne_bytes(*four));
    Features::new(width, numbers.collect()).ok_or_else(|| {
        PyValueError::new_err(format!("{name} must be rows of finite numbers, all equally many"))
    })
}

#[pyfunction]
#[pyo3(signature = (hyps, refs, clusters, seed))]
pub(crate) fn mauve(
    py: Python<'_>,
    hyps: Points,
    refs: Points,
    clusters: Option<usize>,
    seed: u64,
) -> PyResult<f64> {
    let (hyps, refs) = (features("hyps", hyps)?, features("refs", refs)?);
    let settings = MauveSettings { clusters, seed, ..MauveSettings::default() };
    let work = move |_: &_| f2_metrics::mauve(&refs, &hyps, &settings).map(|found| found.mauve);
    interruptible(py, work)?.map_err(value_error)
}

#[pyfunction]
pub(crate) fn coherence(py: Python<'_>, prompts: Points, texts: Points) -> PyResult<f64> {
    let (prompts, texts) = (features("prompts", prompts)?, features("texts", texts)?);
    let work = move |_: &_| -> Result<f64, Error> { f2_metrics::coherence(&prompts, &texts) };
    interruptible(py, work)?.map_err(value_error)
}
