//! Errors of the underlying crates as Python exceptions.

use f2_classes::ClassesError;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

/// A `ValueError` with the crate's own message.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An `OSError` if a file cannot be read or written, otherwise a `ValueError`.
pub(crate) fn of_classes(error: ClassesError) -> PyErr {
    match error {
        ClassesError::Read(_) | ClassesError::Write(_) => PyOSError::new_err(error.to_string()),
        error => value_error(error),
    }
}
