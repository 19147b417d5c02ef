//! Arrays of numpy, read in place.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A contiguous array of 32-bit integers owned by Python.
pub(crate) struct Array {
    /// Keeps the memory alive.
    _owner: Py<PyAny>,
    first: *const u32,
    length: usize,
}

// SAFETY: the memory is only read, and `_owner` keeps it until the array is dropped.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// Takes an array made by `f2_softmax._texts`: one-dimensional, contiguous, `uint32`.
    pub(crate) fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let about = array.getattr("__array_interface__")?;
        let kind: String = about.get_item("typestr")?.extract()?;
        let shape: Vec<usize> = about.get_item("shape")?.extract()?;
        let strided = about.get_item("strides").is_ok_and(|strides| !strides.is_none());
        let native = if cfg!(target_endian = "little") { "<u4" } else { ">u4" };
        let [length] = shape[..] else { return Err(unfit()) };
        if kind != native || strided {
            return Err(unfit());
        }
        let (address, _): (usize, bool) = about.get_item("data")?.extract()?;
        let first = std::ptr::with_exposed_provenance(address);
        Ok(Self { _owner: array.clone().unbind(), first, length })
    }

    /// The numbers, which Python must not change meanwhile.
    pub(crate) fn values(&self) -> &[u32] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: according to numpy, `length` contiguous, aligned 32-bit integers start at
        // `first`; `_owner` keeps them alive.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

fn unfit() -> PyErr {
    PyTypeError::new_err("the array must be one-dimensional, contiguous and of dtype uint32")
}
