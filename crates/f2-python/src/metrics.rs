//! The metrics of `f2-metrics`.

use f2_metrics::{
    BandShares, Bands, Bootstrap, Convention, Error, Evaluation, Interval, Metric, Metrics,
    Settings,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::value_error;
use crate::interrupt::interruptible;
use crate::mefmax::{rank, read_counts};
use crate::texts::{Reader, Texts};

/// The longest n-grams that can be counted.
const MOST_ORDERS: usize = 8;

fn convention(name: &str) -> PyResult<Convention> {
    name.parse().map_err(PyValueError::new_err)
}

fn check_order(max_order: usize) -> PyResult<()> {
    if (1..=MOST_ORDERS).contains(&max_order) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "max_order must be from 1 to {MOST_ORDERS}; got {max_order}"
    )))
}

/// Scores one set of texts.
pub(crate) fn of_texts<T: Send + 'static>(
    texts: &Bound<'_, PyAny>,
    score: impl FnOnce(&[&[u32]]) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let read = Reader::default().read("texts", texts)?;
    let scored = interruptible(texts.py(), move |_| score(&read.slices()))?;
    scored.map_err(value_error)
}

/// Scores texts against references.
fn of_pair<T: Send + 'static>(
    hyps: &Bound<'_, PyAny>,
    refs: &Bound<'_, PyAny>,
    score: impl FnOnce(&[&[u32]], &[&[u32]]) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    // References first, as in `f2 eval`: the order of words determines the order of sums.
    let mut reader = Reader::default();
    let references = reader.read("refs", refs)?;
    let hypotheses = reader.read("hyps", hyps)?;
    let work = move |_: &_| score(&references.slices(), &hypotheses.slices());
    interruptible(hyps.py(), work)?.map_err(value_error)
}

#[pyfunction]
pub(crate) fn self_bleu(
    texts: &Bound<'_, PyAny>,
    max_order: usize,
    convention: &str,
) -> PyResult<Vec<f64>> {
    let convention = self::convention(convention)?;
    check_order(max_order)?;
    of_texts(texts, move |texts| f2_metrics::self_bleu(texts, max_order, convention))
}

#[pyfunction]
pub(crate) fn bleu(
    hyps: &Bound<'_, PyAny>,
    refs: &Bound<'_, PyAny>,
    max_order: usize,
    convention: &str,
) -> PyResult<Vec<f64>> {
    let convention = self::convention(convention)?;
    check_order(max_order)?;
    of_pair(hyps, refs, move |refs, hyps| f2_metrics::bleu(refs, hyps, max_order, convention))
}

#[pyfunction]
pub(crate) fn distinct(
    texts: &Bound<'_, PyAny>,
    max_order: usize,
    convention: &str,
) -> PyResult<Vec<f64>> {
    let convention = self::convention(convention)?;
    check_order(max_order)?;
    of_texts(texts, move |texts| f2_metrics::distinct(texts, max_order, convention))
}

#[pyfunction]
pub(crate) fn ms_jaccard(
    hyps: &Bound<'_, PyAny>,
    refs: &Bound<'_, PyAny>,
    max_order: usize,
    convention: &str,
) -> PyResult<Vec<f64>> {
    let convention = self::convention(convention)?;
    check_order(max_order)?;
    of_pair(hyps, refs, move |refs, hyps| f2_metrics::ms_jaccard(refs, hyps, max_order, convention))
}

#[pyfunction]
pub(crate) fn kld(
    hyps: &Bound<'_, PyAny>,
    refs: &Bound<'_, PyAny>,
    convention: &str,
) -> PyResult<f64> {
    let convention = self::convention(convention)?;
    of_pair(hyps, refs, move |refs, hyps| f2_metrics::kl_divergence(refs, hyps, convention))
}

#[pyfunction]
pub(crate) fn repetition(texts: &Bound<'_, PyAny>) -> PyResult<f64> {
    of_texts(texts, |texts| f2_metrics::repetition(texts))
}

#[pyfunction]
pub(crate) fn uniq(texts: &Bound<'_, PyAny>) -> PyResult<usize> {
    of_texts(texts, |texts| f2_metrics::uniq(texts))
}

#[pyfunction]
pub(crate) fn bands(texts: &Bound<'_, PyAny>, counts: &Bound<'_, PyAny>) -> PyResult<[f64; 4]> {
    let ranking = Ranking::new(counts)?;
    let mut reader = Reader::default();
    let read = reader.read("texts", texts)?;
    let ranked = ranking.apply(&reader, "texts", read)?;
    let work = move |_: &_| ranking.bands.shares(&ranked.slices());
    interruptible(texts.py(), work)?.map_err(value_error)
}

#[pyfunction]
#[pyo3(signature = (hyps, refs, counts, max_order, convention, bootstrap, seed))]
pub(crate) fn evaluate<'py>(
    hyps: &Bound<'py, PyAny>,
    refs: Option<&Bound<'py, PyAny>>,
    counts: Option<&Bound<'py, PyAny>>,
    max_order: usize,
    convention: &str,
    bootstrap: Option<usize>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    check_order(max_order)?;
    if bootstrap == Some(0) {
        return Err(PyValueError::new_err("bootstrap must be at least 1; 1000 is usual"));
    }
    let ranking = counts.map(Ranking::new).transpose()?;
    let settings = Settings {
        max_order,
        convention: self::convention(convention)?,
        bands: ranking.as_ref().map(|ranking| ranking.bands.clone()),
        bootstrap: bootstrap.map(|replicates| Bootstrap { replicates, seed }),
    };
    let mut reader = Reader::default();
    let mut read = |argument, texts: &Bound<'py, PyAny>| {
        let texts = reader.read(argument, texts)?;
        match &ranking {
            Some(ranking) => ranking.apply(&reader, argument, texts),
            None => Ok(texts),
        }
    };
    let references = refs.map(|refs| read("refs", refs)).transpose()?;
    let hypotheses = read("hyps", hyps)?;
    let evaluation = interruptible(hyps.py(), move |cancelled| {
        let references = references.as_ref().map(Texts::slices);
        let hypotheses = hypotheses.slices();
        let drawn = || cancelled.check();
        f2_metrics::evaluate_watched(references.as_deref(), &hypotheses, &settings, &drawn)
    })?;
    described(hyps.py(), &evaluation.map_err(value_error)?)
}

/// The ranks of ids and the bands they fall into.
struct Ranking {
    bands: Bands,
    /// `None` if ids are ranks.
    rank_of_id: Option<Vec<u32>>,
}

impl Ranking {
    fn new(counts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let counts = rank(&read_counts(counts)?)?;
        let bands = Bands::from_counts(counts.counts()).map_err(value_error)?;
        let mut rank_of_id = vec![0; counts.ids().len()];
        for (rank, id) in (0..).zip(counts.ids()) {
            rank_of_id[*id as usize] = rank;
        }
        let are_ranks = rank_of_id.iter().copied().eq(0..rank_of_id.len() as u32);
        Ok(Self { bands, rank_of_id: (!are_ranks).then_some(rank_of_id) })
    }

    fn apply(&self, reader: &Reader, argument: &str, texts: Texts) -> PyResult<Texts> {
        if reader.has_words() {
            return Err(PyValueError::new_err(
                "words cannot be looked up in counts of tokens: give texts as the ids the counts \
                 are for",
            ));
        }
        match &self.rank_of_id {
            Some(rank_of_id) => texts.renamed(argument, rank_of_id),
            None => Ok(texts),
        }
    }
}

fn described<'py>(py: Python<'py>, evaluation: &Evaluation) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("texts", evaluation.texts)?;
    result.set_item("tokens", evaluation.tokens)?;
    result.set_item("values", values(py, &evaluation.metrics, |value| *value)?)?;
    let ends = |interval: &Interval| (interval.low, interval.high);
    let intervals =
        evaluation.intervals.as_ref().map(|intervals| values(py, intervals, ends)).transpose()?;
    result.set_item("intervals", intervals)?;
    let undefined = evaluation.undefined.iter().map(ToString::to_string);
    result.set_item("undefined", PyList::new(py, undefined.collect::<Vec<_>>())?)?;
    Ok(result)
}

/// A value for each metric and order; orders start at 1.
fn values<'py, V: Copy, T: IntoPyObject<'py>>(
    py: Python<'py>,
    metrics: &Metrics<V>,
    value: impl Fn(&V) -> T,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    let set = |name: &str, of: &Option<V>| values.set_item(name, of.as_ref().map(&value));
    // Perplexity needs a model.
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Ppl) {
        for (order, of) in (1..).zip(metrics.orders(metric)) {
            let order = if metric.has_orders() { format!("_{order}") } else { String::new() };
            set(&format!("{}{order}", metric.key()), of)?;
        }
    }
    let shares = metrics.bands.as_ref().map(BandShares::shares);
    for (band, name) in f2_metrics::BAND_NAMES.iter().enumerate() {
        set(name, &shares.map(|shares| shares[band]))?;
    }
    Ok(values)
}
