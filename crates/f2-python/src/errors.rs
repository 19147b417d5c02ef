//! Errors of the crates beneath as exceptions of Python.

use f2_classes::ClassesError;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

/// A `ValueError` with the crate's own message.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A file that cannot be read or written is an `OSError`, all else a `ValueError`.
pub(crate) fn of_classes(error: ClassesError) -> PyErr {
    match error {
        ClassesError::Read(_) | ClassesError::Write(_) => PyOSError::new_err(error.to_string()),
        error => value_error(error),
    }
}
