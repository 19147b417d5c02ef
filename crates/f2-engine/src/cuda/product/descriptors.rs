//! One product in cuBLASLt's terms.
//!
//! The library is column-major, so a product of row-major matrices `to = a · b` is expressed as
//! `toᵀ = bᵀ · aᵀ`: the right matrix comes first.

use std::ffi::c_void;

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreferenceAttributes_t, cudaDataType_t,
};

use super::{Finish, Matrix, Target, WORKSPACE};

/// One of the library's algorithms.
pub(super) type Algorithm = sys::cublasLtMatmulAlgo_t;

/// cuBLASLt's descriptors of the operation and of its three matrices.
pub(super) struct Descriptors {
    pub(super) operation: sys::cublasLtMatmulDesc_t,
    pub(super) layouts: [sys::cublasLtMatrixLayout_t; 3],
}

impl Descriptors {
    pub(super) fn new(
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
        let descriptors = Self {
            operation,
            layouts: [
                matrix(b, inner, columns)?,
                matrix(a, rows, inner)?,
                layout(output, columns, rows, to.stride)?,
            ],
        };
        descriptors.describe(a, b, to, finish)?;
        Ok(descriptors)
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
        // SAFETY: the descriptor is alive, and the library copies the value.
        unsafe {
            result::set_matmul_desc_attribute(self.operation, attribute, pointer, size_of::<T>())
        }
    }

    /// The library's suggestions, best first.
    pub(super) fn suggestions(
        &self,
        handle: sys::cublasLtHandle_t,
        alignments: [u32; 3],
        most: usize,
    ) -> Result<Vec<Algorithm>, CublasError> {
        let preference = Preference::new(alignments)?;
        // SAFETY: the results are plain data, for which zeros are valid.
        let mut found: Vec<sys::cublasLtMatmulHeuristicResult_t> =
            vec![unsafe { std::mem::zeroed() }; most];
        let mut count = 0;
        let [a, b, c] = self.layouts;
        // SAFETY: all descriptors are alive, and `found` has room for as many as are requested.
        unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                self.operation,
                a,
                b,
                c,
                c,
                preference.0,
                most as i32,
                found.as_mut_ptr(),
                &raw mut count,
            )
        }
        .result()?;
        found.truncate(count as usize);
        found.retain(|found| found.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        Ok(found.into_iter().map(|found| found.algo).collect())
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: created with the descriptors, destroyed here only.
        unsafe {
            let _ = result::destroy_matmul_desc(self.operation);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

/// The limits of suggestions: workspace and alignments.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new([a, b, c]: [u32; 3]) -> Result<Self, CublasError> {
        type Attribute = cublasLtMatmulPreferenceAttributes_t;
        let preference = Self(result::create_matmul_pref()?);
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, WORKSPACE)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c)?;
        preference.set(Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c)?;
        Ok(preference)
    }

    fn set<T: Copy>(
        &self,
        attribute: cublasLtMatmulPreferenceAttributes_t,
        value: T,
    ) -> Result<(), CublasError> {
        let pointer = (&raw const value).cast::<c_void>();
        // SAFETY: the preference is alive, and the library copies the value.
        unsafe { result::set_matmul_pref_attribute(self.0, attribute, pointer, size_of::<T>()) }
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed here only.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
