//! Matrix products by cuBLASLt, the best algorithm for each shape looked up once.
//!
//! The library counts columns first, so a product of row-major matrices `to = a · b` is asked for
//! as `toᵀ = bᵀ · aᵀ`: the right matrix comes first.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t, cublasLtEpilogue_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreferenceAttributes_t, cudaDataType_t,
};

use super::launch::{Grid, arguments};
use super::memory::Buffer;
use super::stream::Stream;
use super::{Cuda, DEVICE, Precision};
use crate::Error;

/// Room for sums that several blocks share.
const WORKSPACE: usize = 64 << 20;
/// Counts of rows are rounded up to a multiple of this where an algorithm is looked up, since the
/// sizes of classes change with every batch. The choice depends on nothing but the rounded count, so
/// that equal batches give equal bits whatever came before.
const ROW_BUCKET: usize = 128;

/// A row-major matrix of working precision: its address, and the elements from row to row.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    start: u64,
    stride: usize,
    transposed: bool,
}

impl Matrix {
    pub(super) fn new(start: u64, stride: usize) -> Self {
        Self { start, stride, transposed: false }
    }

    pub(super) fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The steps from row to row and from column to column.
    fn steps(self) -> [usize; 2] {
        if self.transposed { [1, self.stride] } else { [self.stride, 1] }
    }
}

/// Where a product goes.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) start: u64,
    pub(super) stride: usize,
    /// `f32` instead of working precision.
    pub(super) float: bool,
    /// Whether it is added to what is there.
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

/// What is done to a product before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Finish {
    Nothing,
    /// Adds `bias`, one number per column.
    Bias(u64),
    /// Adds `bias`, keeps the sum at `before`, and goes through GELU.
    BiasGelu {
        bias: u64,
        before: u64,
    },
}

impl Finish {
    fn epilogue(self) -> cublasLtEpilogue_t {
        match self {
            Self::Nothing => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Self::Bias(_) => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Self::BiasGelu { .. } => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        }
    }
}

/// What decides the best algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    sizes: [usize; 3],
    strides: [usize; 3],
    transposed: [bool; 2],
    float: bool,
    add: bool,
    epilogue: u32,
    alignments: [u32; 3],
}

/// The library, its workspace, and what it said about shapes.
pub(super) struct Products {
    handle: sys::cublasLtHandle_t,
    workspace: Buffer<u8>,
    element: cudaDataType_t,
    /// None where the library knows no algorithm.
    chosen: Mutex<HashMap<Key, Option<sys::cublasLtMatmulAlgo_t>>>,
}

// SAFETY: the library's handle may be used by any thread.
unsafe impl Send for Products {}
// SAFETY: as above; everything else is behind a lock or never changes.
unsafe impl Sync for Products {}

impl Products {
    pub(super) fn new(stream: &Stream, element: cudaDataType_t) -> Result<Self, Error> {
        let failed = |reason: String| Error::Failed { device: DEVICE, reason };
        // SAFETY: loading the library runs its initialisers, as in every program that uses it.
        if !unsafe { sys::is_culib_present() } {
            return Err(failed("libcublasLt was not found; install the CUDA toolkit".to_owned()));
        }
        let handle = result::create_handle().map_err(|error| failed(error.to_string()))?;
        let workspace = Buffer::zeroed(stream, WORKSPACE)?;
        Ok(Self { handle, workspace, element, chosen: Mutex::default() })
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed here only.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// One product, in the library's terms.
struct Plan {
    operation: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
}

impl Plan {
    fn new(
        element: cudaDataType_t,
        [rows, columns, inner]: [usize; 3],
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
    ) -> Result<Self, CublasError> {
        let float = cudaDataType_t::CUDA_R_32F;
        let operation = result::create_matmul_desc(cublasComputeType_t::CUBLAS_COMPUTE_32F, float)?;
        let layout = |kind, rows: usize, columns: usize, stride: usize| {
            result::create_matrix_layout(kind, rows as u64, columns as u64, stride as i64)
        };
        // Column-major, so a row-major [r, c] is [c, r].
        let matrix = |matrix: Matrix, rows: usize, columns: usize| {
            let (rows, columns) = if matrix.transposed { (columns, rows) } else { (rows, columns) };
            layout(element, columns, rows, matrix.stride)
        };
        let output = if to.float { float } else { element };
        let plan = Self {
            operation,
            layouts: [
                matrix(b, inner, columns)?,
                matrix(a, rows, inner)?,
                layout(output, columns, rows, to.stride)?,
            ],
        };
        plan.describe(a, b, to, finish)?;
        Ok(plan)
    }

    fn describe(
        &self,
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
    ) -> Result<(), CublasError> {
        type Attribute = cublasLtMatmulDescAttributes_t;
        // `CUBLAS_OP_N` and `CUBLAS_OP_T` of the library's interface.
        let transpose = |matrix: Matrix| i32::from(matrix.transposed);
        self.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, transpose(b))?;
        self.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, transpose(a))?;
        self.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, finish.epilogue())?;
        if let Finish::Bias(bias) | Finish::BiasGelu { bias, .. } = finish {
            self.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)?;
        }
        if let Finish::BiasGelu { before, .. } = finish {
            self.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, before)?;
            self.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, to.stride as i64)?;
        }
        Ok(())
    }

    fn set<T: Copy>(
        &self,
        attribute: cublasLtMatmulDescAttributes_t,
        value: T,
    ) -> Result<(), CublasError> {
        let pointer = (&raw const value).cast::<c_void>();
        // SAFETY: the description is alive, and the library copies the value.
        unsafe {
            result::set_matmul_desc_attribute(self.operation, attribute, pointer, size_of::<T>())
        }
    }

    fn choose(
        &self,
        handle: sys::cublasLtHandle_t,
        alignments: [u32; 3],
    ) -> Result<sys::cublasLtMatmulAlgo_t, CublasError> {
        type Attribute = cublasLtMatmulPreferenceAttributes_t;
        let preference = result::create_matmul_pref()?;
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference is alive, and the library copies the value.
            unsafe { result::set_matmul_pref_attribute(preference, attribute, value, size) }
        };
        let workspace = WORKSPACE;
        let attribute = Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        set(attribute, (&raw const workspace).cast(), size_of::<usize>())?;
        let [a, b, c] = alignments;
        for (attribute, alignment) in [
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c),
        ] {
            set(attribute, (&raw const alignment).cast(), size_of::<u32>())?;
        }
        let [a, b, c] = self.layouts;
        // SAFETY: all descriptions are alive.
        let best = unsafe {
            result::get_matmul_algo_heuristic(handle, self.operation, a, b, c, c, preference)
        };
        // SAFETY: created above, destroyed here only.
        unsafe { result::destroy_matmul_pref(preference) }?;
        best.map(|best| best.algo)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: created with the plan, destroyed here only.
        unsafe {
            let _ = result::destroy_matmul_desc(self.operation);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

/// The sizes with the number of rows in memory, which batches change, rounded up.
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

impl<P: Precision> Cuda<P> {
    /// `to = a · b` or `to += a · b`; `sizes` are the rows and columns of the result and what is
    /// summed over.
    pub(super) fn product(&self, sizes: [usize; 3], a: Matrix, b: Matrix, to: Target) {
        if sizes.contains(&0) {
            return;
        }
        if !self.library_product(sizes, a, b, to, Finish::Nothing) {
            self.plain_product(sizes, a, b, to);
        }
    }

    /// [`product`](Self::product) with something done to it before it is written. False where the
    /// library cannot.
    pub(super) fn library_product(
        &self,
        sizes: [usize; 3],
        a: Matrix,
        b: Matrix,
        to: Target,
        finish: Finish,
    ) -> bool {
        let products = &self.products;
        let plan = |sizes| Plan::new(products.element, sizes, a, b, to, finish);
        let alignments = [alignment(b.start), alignment(a.start), alignment(to.start)];
        let bucket = bucket(sizes, a);
        let key = Key {
            sizes: bucket,
            strides: [a.stride, b.stride, to.stride],
            transposed: [a.transposed, b.transposed],
            float: to.float,
            add: to.add,
            epilogue: finish.epilogue() as u32,
            alignments,
        };
        let mut chosen = products.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        let algorithm = chosen.entry(key).or_insert_with(|| {
            plan(bucket).and_then(|plan| plan.choose(products.handle, alignments)).ok()
        });
        let Some(algorithm) = algorithm else { return false };
        let Ok(plan) = plan(sizes) else { return false };
        // Where the bucket's algorithm does not fit this very size, its own is looked up each time.
        self.run(&plan, a, b, to, algorithm).is_ok()
            || plan
                .choose(products.handle, alignments)
                .and_then(|own| self.run(&plan, a, b, to, &own))
                .is_ok()
    }

    fn run(
        &self,
        plan: &Plan,
        a: Matrix,
        b: Matrix,
        to: Target,
        algorithm: &sys::cublasLtMatmulAlgo_t,
    ) -> Result<(), CublasError> {
        let (one, beta) = (1.0_f32, if to.add { 1.0_f32 } else { 0.0 });
        let [left, right, output] = plan.layouts;
        // SAFETY: the addresses are buffers of this device, as large as the layouts say; the
        // numbers on the host are read before the call returns.
        unsafe {
            result::matmul(
                self.products.handle,
                plan.operation,
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

    /// For shapes the library does not take: a thread per element.
    fn plain_product(&self, sizes: [usize; 3], a: Matrix, b: Matrix, to: Target) {
        let [rows, columns, inner] = sizes;
        let name = if to.float { "product_float" } else { "product_real" };
        let grid = Grid::blocks(rows, 256).by(columns.div_ceil(256));
        let ([a_row, a_step], [b_step, b_column]) = (a.steps(), b.steps());
        self.launch(
            name,
            grid,
            arguments![
                rows, columns, inner, a.start, a_row, a_step, b.start, b_step, b_column, to.start,
                to.stride, to.add,
            ],
        );
    }
}
