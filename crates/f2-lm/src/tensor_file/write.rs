//! Writing a safetensors file, tensor by tensor.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use f2_files::OutputFile;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

/// A tensor whose values are fetched when they are written, so that only one is in memory at a
/// time.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its name in the file.
    pub(crate) name: String,
    /// Its shape in the file.
    pub(crate) shape: Vec<usize>,
    /// The type of its elements.
    pub(crate) dtype: Dtype,
}

/// Why tensors could not be written.
#[derive(Debug)]
pub(crate) enum WriteFailure<Error> {
    /// The file could not be written.
    Disk(io::Error),
    /// The values could not be fetched.
    Fetch(Error),
}

impl Planned {
    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

impl<Error> From<io::Error> for WriteFailure<Error> {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Writes the planned tensors; `fetch` returns the little-endian bytes of the one at an index.
/// `about` is the header's metadata.
pub(crate) fn write<Error>(
    path: &Path,
    planned: &[Planned],
    about: HashMap<String, String>,
    mut fetch: impl FnMut(usize) -> Result<Vec<u8>, Error>,
) -> Result<(), WriteFailure<Error>> {
    // The wider types first, so that every tensor is aligned to its type.
    let mut order: Vec<usize> = (0..planned.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(planned[index].dtype), &planned[index].name));
    let header = header(order.iter().map(|&index| &planned[index]), about)?;
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(path)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for index in order {
        let bytes = fetch(index).map_err(WriteFailure::Fetch)?;
        assert_eq!(bytes.len(), planned[index].bytes(), "{}", planned[index].name);
        out.write_all(&bytes)?;
    }
    Ok(out.flush()?)
}

/// Names, shapes and places of the tensors as JSON, padded to a multiple of eight bytes.
fn header<'a>(
    planned: impl Iterator<Item = &'a Planned>,
    about: HashMap<String, String>,
) -> io::Result<Vec<u8>> {
    let mut end = 0;
    let tensors = planned.map(|tensor| {
        let start = end;
        end += tensor.bytes();
        let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
        (tensor.name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) })
    });
    let metadata = Metadata::new(Some(about), tensors.collect()).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// The little-endian bytes of single-precision numbers.
pub(crate) fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
