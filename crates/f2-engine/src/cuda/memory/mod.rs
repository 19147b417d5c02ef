//! Buffers, copies between them and the host, and scratch.

mod buffer;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::runtime::{Address, Grid, Reading, Upload, kernels};
use super::{Cuda, Precision};
use crate::{Error, Memory, Parameter};

pub(super) use buffer::{Buffer, Weights};

/// Zeros after the last parameter: products over a multiple of eight rows may read up to seven rows
/// beyond a matrix.
const SPARE_WEIGHTS: usize = 1 << 17;

kernels! {
    ROUND_WEIGHTS: (usize, Address, Address) = round_weights;
    ADD_SUM: (usize, Address, Address) = add_sum;
    GATHER_ROWS: (usize, usize, Address, Address, Address) = gather_rows;
    SCATTER_ROWS: (usize, usize, bool, Address, Address, Address) = scatter_rows;
}

/// The widest rows for which these zeros suffice.
pub(super) const WIDEST: usize = SPARE_WEIGHTS / 7;

impl<P: Precision> Memory for Cuda<P> {
    type Activations = Buffer<P::Element>;
    type Floats = Buffer<f32>;
    type Weights = Weights<P>;
    type Indices = Indices;
    type Reading = Reading;

    const ACTIVATION_BYTES: usize = size_of::<P::Element>();
    const WEIGHT_BYTES: usize = if size_of::<P::Element>() < size_of::<f32>() {
        size_of::<f32>() + size_of::<P::Element>()
    } else {
        size_of::<f32>()
    };

    fn activations(&self, len: usize) -> Result<Buffer<P::Element>, Error> {
        Buffer::zeroed(&self.stream, len)
    }

    fn floats(&self, len: usize) -> Result<Buffer<f32>, Error> {
        Buffer::zeroed(&self.stream, len)
    }

    fn weights(&self, len: usize) -> Result<Weights<P>, Error> {
        let len = len + SPARE_WEIGHTS;
        let values = Buffer::zeroed(&self.stream, len)?;
        let is_rounded = size_of::<P::Element>() < size_of::<f32>();
        let rounded = is_rounded.then(|| Buffer::zeroed(&self.stream, len)).transpose()?;
        Ok(Weights { values, rounded })
    }

    fn indices(&self, len: usize) -> Result<Indices, Error> {
        Ok(Indices { words: Upload::new(&self.stream, len)?, len })
    }

    fn reading(&self) -> Result<Reading, Error> {
        Reading::new(&self.stream)
    }

    fn write_activations(&self, from: &[f32], to: &mut Buffer<P::Element>) {
        let rounded: Vec<P::Element> = from.iter().map(|&value| P::narrow(value)).collect();
        to.write(0, &rounded);
    }

    fn read_activations(&self, from: &Buffer<P::Element>, to: &mut [f32]) -> Result<(), Error> {
        let mut rounded = vec![P::Element::default(); to.len()];
        from.read(0, &mut rounded)?;
        to.iter_mut().zip(rounded).for_each(|(to, from)| *to = P::widen(from));
        Ok(())
    }

    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Buffer<f32>) {
        to.write(offset, from);
    }

    fn read_floats(&self, from: &Buffer<f32>, offset: usize, to: &mut [f32]) -> Result<(), Error> {
        from.read(offset, to)
    }

    fn begin_reading(&self, from: &Buffer<f32>, to: &mut Reading) {
        to.begin(from);
    }

    fn finish_reading(&self, reading: &Reading) -> Result<f32, Error> {
        reading.finish()
    }

    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Weights<P>) {
        to.values.write(parameter.offset, from);
        self.round_weights(parameter.offset..parameter.offset + from.len(), to);
    }

    fn read_weights(
        &self,
        from: &Weights<P>,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error> {
        from.values.read(parameter.offset, to)
    }

    fn write_indices(&self, from: &[u32], to: &mut Indices) {
        to.words.write_all(from);
        to.len = from.len();
    }

    fn read_indices(&self, from: &Indices, to: &mut [u32]) -> Result<(), Error> {
        from.words.read(to)
    }

    fn zero_activations(&self, len: usize, to: &mut Buffer<P::Element>) {
        to.zero(0..len);
    }

    fn zero_floats(&self, to: &mut Buffer<f32>) {
        to.zero(0..to.len());
    }

    fn add_sum(&self, from: &Buffer<f32>, range: Range<usize>, to: &mut Buffer<f32>, index: usize) {
        let arguments = (range.len(), from.at(range.start), to.at(index));
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(ADD_SUM, Grid::blocks(1, 1024), arguments) };
    }

    fn gather(
        &self,
        width: usize,
        rows: &Indices,
        from: &Buffer<P::Element>,
        to: &mut Buffer<P::Element>,
    ) {
        self.gather_rows(rows.len, width, rows.words.at(0), from.at(0), to.at(0));
    }
}

/// Row or token numbers.
#[derive(Debug)]
pub struct Indices {
    words: Upload,
    len: usize,
}

impl Indices {
    /// The address of the first one.
    pub(super) fn start(&self) -> u64 {
        self.words.at(0)
    }

    /// Sets their number to `len`, for a kernel to write them.
    pub(super) fn resize(&mut self, len: usize) {
        assert!(
            len <= self.words.len(),
            "{len} indices exceed the capacity of {}",
            self.words.len()
        );
        self.len = len;
    }
}

/// Scratch for partial sums, grown when an operation first needs more. Smaller buffers are not
/// freed, since a recorded graph may still write to them.
#[derive(Default)]
pub(super) struct Scratch {
    buffers: Mutex<Vec<Buffer<u64>>>,
}

impl<P: Precision> Cuda<P> {
    /// The address of at least `bytes` of scratch, used by one operation at a time; `None`, with
    /// the failure recorded, if out of memory.
    pub(super) fn scratch(&self, bytes: usize) -> Option<u64> {
        let words = bytes.div_ceil(size_of::<u64>());
        let mut buffers = self.scratch.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.last().is_none_or(|last| last.len() < words) {
            match Buffer::zeroed(&self.stream, words.next_power_of_two().max(1 << 17)) {
                Ok(buffer) => buffers.push(buffer),
                Err(error) => {
                    self.stream.note("allocating scratch", Err(error));
                    return None;
                }
            }
        }
        buffers.last().map(|last| last.at(0))
    }

    /// Updates the rounded copy of a range of parameters, if there is one.
    pub(super) fn round_weights(&self, range: Range<usize>, weights: &Weights<P>) {
        let Weights { values, rounded } = weights;
        if let Some(rounded) = rounded {
            let arguments = (range.len(), values.at(range.start), rounded.at(range.start));
            // SAFETY: both buffers hold every parameter.
            unsafe { self.launch(ROUND_WEIGHTS, Grid::items(range.len()), arguments) };
        }
    }

    /// `to[i] = from[rows[i]]`, each of `width`.
    pub(super) fn gather_rows(&self, count: usize, width: usize, rows: u64, from: u64, to: u64) {
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(GATHER_ROWS, Grid::rows(count), (count, width, rows, from, to)) };
    }

    /// `to[rows[i]] = from[i]`, or `+=`.
    pub(super) fn scatter_rows(
        &self,
        count: usize,
        width: usize,
        add: bool,
        [rows, from, to]: [u64; 3],
    ) {
        let arguments = (count, width, add, rows, from, to);
        // SAFETY: the operation's buffers have these sizes.
        unsafe { self.launch(SCATTER_ROWS, Grid::rows(count), arguments) };
    }
}
