//! Buffers, and copies between them and the host.

use std::ops::Range;

use crate::{Error, Parameter};

/// Memory of a device. New buffers hold zeros.
pub trait Memory: Sized + 'static {
    /// Values in working precision.
    type Activations;
    /// Values in `f32`.
    type Floats;
    /// Parameters, with rounded copies for products if the device uses them.
    type Weights;
    /// Row indices or token ids.
    type Indices;
    /// A float being copied to the host.
    type Reading;

    /// The size of one activation in bytes.
    const ACTIVATION_BYTES: usize;
    /// The size of one parameter in bytes, including its copies.
    const WEIGHT_BYTES: usize;

    /// A buffer of `len` activations.
    fn activations(&self, len: usize) -> Result<Self::Activations, Error>;
    /// A buffer of `len` floats.
    fn floats(&self, len: usize) -> Result<Self::Floats, Error>;
    /// A buffer for the parameters of a [`Layout`](crate::Layout) of length `len`.
    fn weights(&self, len: usize) -> Result<Self::Weights, Error>;
    /// A buffer of `len` indices.
    fn indices(&self, len: usize) -> Result<Self::Indices, Error>;
    /// A buffer for reading one float.
    fn reading(&self) -> Result<Self::Reading, Error>;

    /// Writes the first `from.len()` activations, rounded to working precision.
    fn write_activations(&self, from: &[f32], to: &mut Self::Activations);
    /// Reads the first `to.len()` activations.
    fn read_activations(&self, from: &Self::Activations, to: &mut [f32]) -> Result<(), Error>;
    /// Writes `from` at `offset`.
    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Self::Floats);
    /// Reads `to.len()` floats at `offset`.
    fn read_floats(&self, from: &Self::Floats, offset: usize, to: &mut [f32]) -> Result<(), Error>;
    /// The first `len` floats, for the host to read and overwrite: the buffer itself if it is in
    /// host memory, else a copy of it in `copy`.
    fn host_floats<'a>(
        &self,
        from: &'a mut Self::Floats,
        len: usize,
        copy: &'a mut Vec<f32>,
    ) -> Result<&'a mut [f32], Error> {
        copy.resize(len, 0.0);
        self.read_floats(from, 0, copy)?;
        Ok(copy)
    }
    /// Starts reading the first float. Operations enqueued later do not affect the value read.
    fn begin_reading(&self, from: &Self::Floats, to: &mut Self::Reading);
    /// Waits for the float being read, but not for operations enqueued after
    /// [`begin_reading`](Self::begin_reading).
    fn finish_reading(&self, reading: &Self::Reading) -> Result<f32, Error>;
    /// Writes one parameter, `from.len() == parameter.len()`.
    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Self::Weights);
    /// Reads one parameter in full precision.
    fn read_weights(
        &self,
        from: &Self::Weights,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error>;
    /// Writes indices; their number becomes `from.len()`.
    fn write_indices(&self, from: &[u32], to: &mut Self::Indices);
    /// Reads the first `to.len()` indices.
    fn read_indices(&self, from: &Self::Indices, to: &mut [u32]) -> Result<(), Error>;

    /// Sets the first `len` activations to zero.
    fn zero_activations(&self, len: usize, to: &mut Self::Activations);
    /// Sets all floats to zero.
    fn zero_floats(&self, to: &mut Self::Floats);
    /// `to[index] += Σ from[range]`.
    fn add_sum(
        &self,
        from: &Self::Floats,
        range: Range<usize>,
        to: &mut Self::Floats,
        index: usize,
    );
    /// Gathers rows of length `width`: `to[i] = from[rows[i]]`.
    fn gather(
        &self,
        width: usize,
        rows: &Self::Indices,
        from: &Self::Activations,
        to: &mut Self::Activations,
    );
}
