//! The choice of the library's algorithm for a shape: its first suggestion, or the fastest of
//! several, measured once per GPU and cached on disk, since another algorithm may round
//! differently.

use std::collections::HashMap;
use std::sync::PoisonError;

use cudarc::cublaslt::sys::{self, cudaDataType_t};
use cudarc::driver::sys::{CUevent_flags, CUstreamCaptureStatus};
use cudarc::driver::{DriverError, result};
use sha2::{Digest, Sha256};

use super::descriptors::{Algorithm, Descriptors};
use super::measured::Measured;
use super::{Choice, Finish, Matrix, Target, WORKSPACE};
use crate::cuda::runtime::cache_folder;
use crate::cuda::{Cuda, Precision};

/// To look up an algorithm, the number of rows is rounded up to a multiple of this, since the sizes
/// of classes change with every batch. The choice depends only on the rounded number, so that equal
/// batches give equal bits whatever ran before.
const ROW_BUCKET: usize = 128;
/// Suggestions that are tried, how often each is timed, and the products of one timing.
const SUGGESTIONS: usize = 12;
const ROUNDS: usize = 3;
const REPEATS: usize = 5;
/// A later suggestion must take less than this share of the first one's time: less gain may be
/// noise.
const GAIN: f32 = 0.98;

/// The properties of a product that decide its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    sizes: [usize; 3],
    strides: [usize; 3],
    transposed: [bool; 2],
    float: bool,
    add: bool,
    measured: bool,
    epilogue: u32,
    pub(super) alignments: [u32; 3],
}

impl Key {
    pub(super) fn new(
        sizes: [usize; 3],
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
        choice: Choice,
    ) -> Self {
        Self {
            sizes: bucket(sizes, a),
            strides: [a.stride, b.stride, to.stride],
            transposed: [a.transposed, b.transposed],
            float: to.float,
            add: to.add,
            measured: choice == Choice::Measured,
            epilogue: finish.epilogue() as u32,
            alignments: [b.start, a.start, to.start].map(alignment),
        }
    }

    /// The key as a word in the file of choices.
    fn word(&self) -> String {
        let Self { sizes: [m, n, k], strides: [a, b, c], transposed: [s, t], .. } = *self;
        let [i, j, l] = self.alignments;
        let flags = [s, t, self.float, self.add].map(u8::from);
        format!("{m}x{n}x{k}:{a},{b},{c}:{flags:?}:{}:{i},{j},{l}", self.epilogue).replace(' ', "")
    }
}

/// Rounds up the size that changes with the batch: the number of rows of `a` in memory.
fn bucket([rows, columns, inner]: [usize; 3], a: Matrix) -> [usize; 3] {
    if a.transposed {
        [rows, columns, inner.next_multiple_of(ROW_BUCKET)]
    } else {
        [rows.next_multiple_of(ROW_BUCKET), columns, inner]
    }
}

/// The largest power of two, up to 256, that divides an address.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(8)
}

/// The algorithms chosen so far.
pub(super) struct Choices {
    /// `None` if the library has no algorithm.
    chosen: HashMap<Key, Option<Algorithm>>,
    /// The indices of the fastest suggestions.
    measured: Measured,
}

impl Choices {
    /// The choices for a GPU model, the library's version and an element type.
    pub(super) fn open(model: &str, element: cudaDataType_t) -> Self {
        // SAFETY: the library was loaded.
        let version = unsafe { sys::cublasLtGetVersion() };
        let digest =
            Sha256::digest(format!("{model} {version} {element:?} {WORKSPACE} {SUGGESTIONS} 2"));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = cache_folder().map(|folder| folder.join(format!("products-{name}.txt")));
        Self { chosen: HashMap::new(), measured: Measured(path) }
    }
}

impl<P: Precision> Cuda<P> {
    /// The algorithm for a product; `None` if the library has none.
    pub(super) fn choose(
        &self,
        key: &Key,
        descriptors: &Descriptors,
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
    ) -> Option<Algorithm> {
        let products = &self.products;
        let mut choices = products.choices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = choices.chosen.get(key) {
            return *known;
        }
        let most = if key.measured { SUGGESTIONS } else { 1 };
        let suggestions = Descriptors::new(products.element, key.sizes, a, b, to, finish)
            .and_then(|descriptors| descriptors.suggestions(products.handle, key.alignments, most))
            .unwrap_or_default();
        let number = if suggestions.len() > 1 {
            self.fastest(&choices, key, descriptors, a, b, to, &suggestions)
        } else {
            Some(0)
        };
        let algorithm = suggestions.get(number.unwrap_or(0)).or(suggestions.first()).copied();
        // Nothing can be measured while a graph is recorded; a later call may measure.
        if number.is_some() {
            choices.chosen.insert(*key, algorithm);
        }
        algorithm
    }

    /// The index of the fastest suggestion, stored or measured; `None` if it cannot be measured
    /// now.
    fn fastest(
        &self,
        choices: &Choices,
        key: &Key,
        descriptors: &Descriptors,
        a: Matrix,
        b: Matrix,
        to: Target,
        suggestions: &[Algorithm],
    ) -> Option<usize> {
        let word = key.word();
        if let Some(number) = choices.measured.find(&word) {
            return Some(number);
        }
        let idle = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        if self.stream.cuda().capture_status().ok()? != idle {
            return None;
        }
        // Measuring must not add to the output.
        let [rows, columns, _] = key.sizes;
        let start =
            if to.add { self.scratch(rows * columns * size_of::<f32>())? } else { to.start };
        let to = Target { start, ..to };
        let mut best = [f32::INFINITY; SUGGESTIONS];
        for _ in 0..ROUNDS {
            for (best, suggestion) in best.iter_mut().zip(suggestions) {
                let time = self.time(descriptors, a, b, to, suggestion).unwrap_or(f32::INFINITY);
                *best = best.min(time);
            }
        }
        let mut fastest = 0;
        for number in 1..suggestions.len() {
            if best[number] < best[fastest].min(GAIN * best[0]) {
                fastest = number;
            }
        }
        Some(choices.measured.keep(&word, fastest).unwrap_or(0))
    }

    /// Milliseconds of a product; `None` if the algorithm does not support it.
    fn time(
        &self,
        descriptors: &Descriptors,
        a: Matrix,
        b: Matrix,
        to: Target,
        algorithm: &Algorithm,
    ) -> Option<f32> {
        self.run(descriptors, a, b, to, algorithm).ok()?;
        let raw = self.stream.raw();
        let event = || result::event::create(CUevent_flags::CU_EVENT_DEFAULT);
        let (start, end) = (event().ok()?, event().ok()?);
        let timed = || -> Result<f32, DriverError> {
            // SAFETY: the events and the stream are alive.
            unsafe { result::event::record(start, raw) }?;
            for _ in 0..REPEATS {
                let _ = self.run(descriptors, a, b, to, algorithm);
            }
            // SAFETY: as above; both events were recorded before the elapsed time is read.
            unsafe {
                result::event::record(end, raw)?;
                result::event::synchronize(end)?;
                result::event::elapsed(start, end)
            }
        };
        let time = timed();
        // SAFETY: created above, destroyed here only.
        unsafe {
            let _ = result::event::destroy(start);
            let _ = result::event::destroy(end);
        }
        Some(time.ok()? / REPEATS as f32)
    }
}
