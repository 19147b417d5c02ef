//! MefMax: frequency classes from token counts.

use std::path::PathBuf;

use f2_classes::{ClassSelection, Method, RankCounts, select};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::of_classes;
use crate::interrupt::interruptible;

/// The classes a method chose, and how good they are.
#[pyclass(frozen, module = "f2_softmax")]
pub(crate) struct Selection {
    selection: ClassSelection,
    /// The token of each rank.
    ids: Vec<u32>,
}

/// Reads counts by token from Python.
pub(crate) fn read_counts(counts: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let read = |(index, count): (usize, PyResult<Bound<'_, PyAny>>)| {
        let count = count?;
        count.extract::<u64>().map_err(|error| {
            if error.is_instance_of::<PyTypeError>(count.py()) {
                let found =
                    count.repr().map_or_else(|_| "an object".to_owned(), |it| it.to_string());
                PyTypeError::new_err(format!(
                    "count {index} is {found}, which is not a whole number"
                ))
            } else {
                let message = format!("count {index} is {count}; counts go from 0 to 2^64 - 1");
                PyValueError::new_err(message)
            }
        })
    };
    let counts = counts.try_iter().map_err(|_| {
        PyTypeError::new_err("counts must be a list of whole numbers, one for each token")
    })?;
    counts.enumerate().map(read).collect()
}

/// Ranks counts by frequency.
pub(crate) fn rank(counts: &[u64]) -> PyResult<RankCounts> {
    RankCounts::new(counts).map_err(of_classes)
}

#[pyfunction]
#[pyo3(signature = (counts, method, k, unseen))]
pub(crate) fn mefmax(
    counts: &Bound<'_, PyAny>,
    method: &str,
    k: Option<usize>,
    unseen: u64,
) -> PyResult<Selection> {
    let method: Method = method.parse().map_err(|message| {
        let names = Method::ALL.map(Method::name).join(", ");
        PyValueError::new_err(format!("{message}: those are {names}"))
    })?;
    if unseen > 1 {
        return Err(PyValueError::new_err(format!("unseen must be 0 or 1; got {unseen}")));
    }
    let counts_by_id = read_counts(counts)?;
    let counted = rank(&counts_by_id)?.with_unseen(unseen).map_err(of_classes)?;
    let ids = counted.ids().to_vec();
    let selected = interruptible(counts.py(), move |_| select(&counted, method, k))?;
    Ok(Selection { selection: selected.map_err(of_classes)?, ids })
}

#[pymethods]
impl Selection {
    /// The rank after the last of each class; the last is the size of the vocabulary.
    #[getter]
    fn ends(&self) -> Vec<usize> {
        self.selection.classes().ends().to_vec()
    }

    /// The number of classes.
    #[getter]
    fn k(&self) -> usize {
        self.selection.classes().len()
    }

    /// How the classes were cut.
    #[getter]
    fn method(&self) -> &'static str {
        self.selection.method().name()
    }

    /// The mean efficiency of the classes, Eq. 5 of the paper.
    #[getter]
    fn objective(&self) -> f64 {
        self.selection.objective()
    }

    /// How evenly the classes share the mass.
    #[getter]
    fn class_efficiency(&self) -> f64 {
        self.selection.class_efficiency()
    }

    /// `(k, objective)` of every number of classes that was tried.
    #[getter]
    fn curve(&self) -> Vec<(usize, f64)> {
        self.selection.curve().iter().map(|trial| (trial.k, trial.objective)).collect()
    }

    /// The share of all occurrences that each class holds.
    #[getter]
    fn masses(&self) -> Vec<f64> {
        self.selection.summaries().iter().map(|class| class.mass).collect()
    }

    /// How evenly the tokens of each class share its mass.
    #[getter]
    fn efficiencies(&self) -> Vec<f64> {
        self.selection.summaries().iter().map(|class| class.efficiency).collect()
    }

    /// The token of each rank, the most frequent first.
    #[getter]
    fn ids(&self) -> Vec<u32> {
        self.ids.clone()
    }

    /// Writes `classes.json`, as `f2 classes` does.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.selection.save(&path).map_err(of_classes)
    }

    fn __repr__(&self) -> String {
        let (ends, objective) = (self.selection.classes().ends(), self.selection.objective());
        format!("Selection(method={:?}, ends={ends:?}, objective={objective:.6})", self.method())
    }
}
