use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::Path;

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, View};

/// A tensor that will be fetched when the file comes to it, so that writing needs room for one
/// of them and not for all.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its name in the file.
    pub(crate) name: String,
    /// Its shape in the file.
    pub(crate) shape: Vec<usize>,
    /// What it holds.
    pub(crate) dtype: Dtype,
}

/// Why tensors could not be written.
#[derive(Debug)]
pub(crate) enum WriteFailure<Error> {
    /// The file's fault.
    Disk(io::Error),
    /// The values could not be had.
    Fetch(Error),
}

struct Lazy<'a, Fetch, Error> {
    planned: &'a Planned,
    index: usize,
    fetch: &'a RefCell<Fetch>,
    failure: &'a RefCell<Option<Error>>,
}

impl<Fetch, Error> View for Lazy<'_, Fetch, Error>
where
    Fetch: FnMut(usize) -> Result<Vec<u8>, Error>,
{
    fn dtype(&self) -> Dtype {
        self.planned.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.planned.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        // After a failure the file is lost; nothing more is fetched for it.
        let fetched = match *self.failure.borrow() {
            Some(_) => None,
            None => Some((self.fetch.borrow_mut())(self.index)),
        };
        match fetched {
            Some(Ok(bytes)) => bytes.into(),
            Some(Err(error)) => {
                *self.failure.borrow_mut() = Some(error);
                Cow::Borrowed(&[])
            }
            None => Cow::Borrowed(&[]),
        }
    }

    fn data_len(&self) -> usize {
        self.planned.shape.iter().product::<usize>() * self.planned.dtype.bitsize() / 8
    }
}

/// Writes the planned tensors; `fetch` gives the little endian bytes of the one at an index.
/// What `about` says goes into the header.
pub(crate) fn write<Error>(
    path: &Path,
    planned: &[Planned],
    about: HashMap<String, String>,
    fetch: impl FnMut(usize) -> Result<Vec<u8>, Error>,
) -> Result<(), WriteFailure<Error>> {
    let (fetch, failure) = (RefCell::new(fetch), RefCell::new(None));
    let views = planned.iter().enumerate().map(|(index, planned)| {
        (&planned.name, Lazy { planned, index, fetch: &fetch, failure: &failure })
    });
    let written = safetensors::serialize_to_file(views, Some(about), path);
    if let Some(error) = failure.take() {
        return Err(WriteFailure::Fetch(error));
    }
    written.map_err(|error| {
        WriteFailure::Disk(match error {
            SafeTensorError::IoError(error) => error,
            other => io::Error::other(other.to_string()),
        })
    })
}

/// The bytes of single precision numbers.
pub(crate) fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
