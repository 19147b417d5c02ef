//! The precision of activations and matrix products.

use cudarc::cublaslt::sys::cudaDataType_t;

/// The precision of activations.
pub trait Precision: Send + Sync + 'static {
    /// One activation in GPU memory.
    type Element: Copy + Default + Send + Sync + 'static;
    /// The name of the precision, such as `bf16`.
    const NAME: &'static str;
    /// The precision as a cuBLASLt data type.
    const TYPE: cudaDataType_t;
    /// Rounds to this precision.
    fn narrow(value: f32) -> Self::Element;
    /// Converts to `f32`, exactly.
    fn widen(element: Self::Element) -> f32;
}

/// bf16: eight significant bits, fast on tensor cores.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;

/// Full precision, for comparisons with the CPU.
#[derive(Clone, Copy, Debug)]
pub struct F32;

impl Precision for Bf16 {
    type Element = u16;
    const NAME: &'static str = "bf16";
    const TYPE: cudaDataType_t = cudaDataType_t::CUDA_R_16BF;

    /// Rounds to the nearest, ties to even; NaN stays NaN.
    fn narrow(value: f32) -> u16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return (bits >> 16) as u16 | 0x40;
        }
        ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
    }

    fn widen(element: u16) -> f32 {
        f32::from_bits(u32::from(element) << 16)
    }
}

impl Precision for F32 {
    type Element = f32;
    const NAME: &'static str = "f32";
    const TYPE: cudaDataType_t = cudaDataType_t::CUDA_R_32F;

    fn narrow(value: f32) -> f32 {
        value
    }

    fn widen(element: f32) -> f32 {
        element
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_to_the_nearest_even() {
        let round = |bits: u32| Bf16::narrow(f32::from_bits(bits));
        assert_eq!(round(0x3f80_0000), 0x3f80);
        assert_eq!(round(0x3f80_8000), 0x3f80);
        assert_eq!(round(0x3f80_8001), 0x3f81);
        assert_eq!(round(0x3f81_8000), 0x3f82);
        assert_eq!(Bf16::narrow(f32::INFINITY), 0x7f80);
        assert!(Bf16::widen(Bf16::narrow(f32::NAN)).is_nan());
        assert_eq!(Bf16::widen(Bf16::narrow(-2.5)), -2.5);
    }
}
