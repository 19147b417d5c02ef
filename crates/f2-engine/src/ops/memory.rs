//! Buffers, and copies between them and the host.

use std::ops::Range;

use crate::{Error, Parameter};

/// Memory of a device. New buffers hold zeros.
pub trait Memory: Sized + 'static {
    /// Numbers in working precision.
    type Activations;
    /// Numbers in `f32`.
    type Floats;
    /// Parameters, with whatever copies the device multiplies by.
    type Weights;
    /// Row or token numbers.
    type Indices;
    /// One float being copied to the host.
    type Reading;

    /// Bytes of one activation.
    const ACTIVATION_BYTES: usize;
    /// Bytes of one parameter, with its copies.
    const WEIGHT_BYTES: usize;

    /// `len` activations.
    fn activations(&self, len: usize) -> Result<Self::Activations, Error>;
    /// `len` floats.
    fn floats(&self, len: usize) -> Result<Self::Floats, Error>;
    /// All parameters of a [`Layout`](crate::Layout) of length `len`.
    fn weights(&self, len: usize) -> Result<Self::Weights, Error>;
    /// A buffer of `len` indices.
    fn indices(&self, len: usize) -> Result<Self::Indices, Error>;
    /// A buffer for a float that is being read.
    fn reading(&self) -> Result<Self::Reading, Error>;

    /// Writes the first `from.len()` activations, rounded to working precision.
    fn write_activations(&self, from: &[f32], to: &mut Self::Activations);
    /// Reads the first `to.len()` activations.
    fn read_activations(&self, from: &Self::Activations, to: &mut [f32]) -> Result<(), Error>;
    /// Writes `from` at `offset`.
    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Self::Floats);
    /// Reads `to.len()` floats at `offset`.
    fn read_floats(&self, from: &Self::Floats, offset: usize, to: &mut [f32]) -> Result<(), Error>;
    /// The first `len` floats, for the host to read and overwrite: in place, or in `copy`.
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
    /// Begins to read the first float. Operations enqueued later do not change the value.
    fn begin_reading(&self, from: &Self::Floats, to: &mut Self::Reading);
    /// The float once it has arrived; does not wait for operations enqueued after it.
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
    /// Picks rows: `to[i] = from[rows[i]]`, each of `width`.
    fn gather(
        &self,
        width: usize,
        rows: &Self::Indices,
        from: &Self::Activations,
        to: &mut Self::Activations,
    );
}
