//! Matrices whose parts the GPU's copy unit brings to shared memory, on compute capability 9.0.

use std::ffi::c_void;

use cudarc::driver::{DriverError, sys};

/// A row-major bf16 matrix, copied in boxes of several rows and 64 columns. In shared memory the
/// chunks of a row are exchanged by the 128-byte swizzle.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct TensorMap {
    #[expect(dead_code, reason = "the driver and the GPU read it")]
    map: sys::CUtensorMap,
}

/// Columns of a box: 128 bytes, the length of a row that is swizzled.
const BOX_COLUMNS: u32 = 64;

impl TensorMap {
    /// A matrix at an address that is a multiple of 16 bytes, as is the length of its rows.
    pub(in crate::cuda) fn new(
        start: u64,
        [rows, columns]: [usize; 2],
        box_rows: usize,
    ) -> Result<Self, DriverError> {
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let sizes = [columns as u64, rows as u64];
        let row_bytes = [2 * columns as u64];
        let (part, steps) = ([BOX_COLUMNS, box_rows as u32], [1, 1]);
        // SAFETY: all pointers are to as many numbers as a matrix has dimensions, and are read before
        // the call returns.
        unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2,
                start as *mut c_void,
                sizes.as_ptr(),
                row_bytes.as_ptr(),
                part.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
        .result()?;
        Ok(Self { map })
    }
}
