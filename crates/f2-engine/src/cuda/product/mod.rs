//! Matrix products by cuBLASLt, the algorithm for each shape chosen once.

mod choice;
mod descriptors;
mod measured;
mod speed;

use std::ffi::c_void;
use std::sync::Mutex;

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{self, cublasLtEpilogue_t, cudaDataType_t};

use choice::{Choices, Key};
use descriptors::{Algorithm, Descriptors};

use super::memory::Buffer;
use super::runtime::{Address, Grid, Stream, kernels, load_from_wheels};
use super::{Cuda, DEVICE, Precision};
use crate::Error;

/// Whether cuBLASLt can be loaded, from the system or from wheels in the program's Python
/// environment.
pub fn cublaslt_is_present() -> bool {
    // SAFETY: loading the library runs its initialisers, as in every program that uses it.
    let is_loaded = || unsafe { sys::is_culib_present() };
    is_loaded() || {
        load_from_wheels("cublasLt");
        is_loaded()
    }
}

/// The size of cuBLASLt's workspace in bytes, for sums that are split over several blocks.
pub(super) const WORKSPACE: usize = 64 << 20;

/// Rows, columns and the length of sums; both operands with their strides; the output, its stride
/// and whether it is added to.
type Plain =
    (usize, usize, usize, Address, usize, usize, Address, usize, usize, Address, usize, bool);

kernels! {
    PRODUCT_REAL: Plain = product_real;
    PRODUCT_FLOAT: Plain = product_float;
}

/// A row-major matrix in working precision: its address, and the stride of its rows in elements.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) start: u64,
    pub(super) stride: usize,
    pub(super) transposed: bool,
}

impl Matrix {
    pub(super) fn new(start: u64, stride: usize) -> Self {
        Self { start, stride, transposed: false }
    }

    pub(super) fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The strides from row to row and from column to column.
    fn strides(self) -> [usize; 2] {
        if self.transposed { [1, self.stride] } else { [self.stride, 1] }
    }
}

/// The output of a product.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) start: u64,
    pub(super) stride: usize,
    /// `f32` instead of working precision.
    pub(super) float: bool,
    /// Whether the product is added to the output.
    pub(super) add: bool,
}

impl Target {
    /// Overwrites, in working precision.
    pub(super) fn real(start: u64, stride: usize) -> Self {
        Self { start, stride, float: false, add: false }
    }

    /// Overwrites, in `f32`.
    pub(super) fn float(start: u64, stride: usize) -> Self {
        Self { start, stride, float: true, add: false }
    }

    /// Adds, in `f32`.
    pub(super) fn sum(start: u64, stride: usize) -> Self {
        Self { start, stride, float: true, add: true }
    }
}

/// An epilogue of a product, applied before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Finish {
    Nothing,
    /// Adds `bias`, one number per column.
    Bias(u64),
    /// Adds `bias`, stores the sum at `before`, and applies GELU.
    BiasGelu {
        bias: u64,
        before: u64,
    },
}

/// How an algorithm is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The library's first suggestion: for shapes that change from batch to batch.
    Suggested,
    /// The fastest of its suggestions.
    Measured,
}

impl Finish {
    pub(super) fn epilogue(self) -> cublasLtEpilogue_t {
        match self {
            Self::Nothing => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Self::Bias(_) => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Self::BiasGelu { .. } => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        }
    }
}

/// The library, its workspace, and the algorithms chosen by shape.
pub(super) struct Products {
    pub(super) handle: sys::cublasLtHandle_t,
    workspace: Buffer<u8>,
    pub(super) element: cudaDataType_t,
    choices: Mutex<Choices>,
}

// SAFETY: the library's handle may be used by any thread.
unsafe impl Send for Products {}
// SAFETY: as above; everything else is behind a lock or never changes.
unsafe impl Sync for Products {}

impl Products {
    pub(super) fn new(stream: &Stream, element: cudaDataType_t) -> Result<Self, Error> {
        let failed = |reason: String| Error::Failed { device: DEVICE, reason };
        if !cublaslt_is_present() {
            return Err(failed("libcublasLt was not found; install the CUDA toolkit".to_owned()));
        }
        let handle = result::create_handle().map_err(|error| failed(error.to_string()))?;
        let workspace = Buffer::zeroed(stream, WORKSPACE)?;
        let choices = Mutex::new(Choices::open(&stream.model()?, element));
        Ok(Self { handle, workspace, element, choices })
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed here only.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

impl<P: Precision> Cuda<P> {
    /// `to = a · b` or `to += a · b`; `sizes` are the rows and columns of the result and the length
    /// of the sums.
    pub(super) fn product(&self, sizes: [usize; 3], a: Matrix, b: Matrix, to: Target) {
        if sizes.contains(&0) {
            return;
        }
        if !self.library_product(sizes, a, b, to, Finish::Nothing, Choice::Suggested) {
            self.plain_product(sizes, a, b, to);
        }
    }

    /// [`product`](Self::product) of a recurring shape, for which algorithms are measured.
    pub(super) fn layer_product(&self, sizes: [usize; 3], a: Matrix, b: Matrix, to: Target) {
        if !self.library_product(sizes, a, b, to, Finish::Nothing, Choice::Measured) {
            self.plain_product(sizes, a, b, to);
        }
    }

    /// [`product`](Self::product) with an epilogue. False if the library does not support it.
    pub(super) fn library_product(
        &self,
        sizes: [usize; 3],
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
        choice: Choice,
    ) -> bool {
        let Ok(descriptors) = Descriptors::new(self.products.element, sizes, a, b, to, finish)
        else {
            return false;
        };
        let key = Key::new(sizes, a, b, to, finish, choice);
        let Some(algorithm) = self.choose(&key, &descriptors, a, b, to, finish) else {
            return false;
        };
        // If the bucket's algorithm does not support this exact size, one is looked up each time.
        self.run(&descriptors, a, b, to, &algorithm).is_ok()
            || descriptors.suggestions(self.products.handle, key.alignments, 1).is_ok_and(|own| {
                own.first().is_some_and(|own| self.run(&descriptors, a, b, to, own).is_ok())
            })
    }

    fn run(
        &self,
        descriptors: &Descriptors,
        a: Matrix,
        b: Matrix,
        to: Target,
        algorithm: &Algorithm,
    ) -> Result<(), CublasError> {
        self.stream.count_operation();
        let (one, beta) = (1.0_f32, if to.add { 1.0_f32 } else { 0.0 });
        let [left, right, output] = descriptors.layouts;
        // SAFETY: the addresses are in buffers of this device, as large as the layouts require; the
        // numbers on the host are read before the call returns.
        unsafe {
            result::matmul(
                self.products.handle,
                descriptors.operation,
                (&raw const one).cast(),
                (&raw const beta).cast(),
                b.start as *const c_void,
                left,
                a.start as *const c_void,
                right,
                to.start as *const c_void,
                output,
                to.start as *mut c_void,
                output,
                algorithm,
                self.products.workspace.at(0) as *mut c_void,
                WORKSPACE,
                self.stream.raw().cast(),
            )
        }
    }

    /// For shapes the library does not support: one thread per element.
    fn plain_product(&self, sizes: [usize; 3], a: Matrix, b: Matrix, to: Target) {
        let [rows, columns, inner] = sizes;
        let kernel = if to.float { PRODUCT_FLOAT } else { PRODUCT_REAL };
        let grid = Grid::blocks(rows, 256).by(columns.div_ceil(256));
        let ([a_row, a_step], [b_step, b_column]) = (a.strides(), b.strides());
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                kernel,
                grid,
                (
                    rows, columns, inner, a.start, a_row, a_step, b.start, b_step, b_column,
                    to.start, to.stride, to.add,
                ),
            );
        }
    }
}
