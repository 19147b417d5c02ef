//! The vector registers of each instruction set, for the tiles.

/// A vector register.
///
/// # Safety
/// The register's instruction set must be available, and pointers must be valid for [`Self::LANES`]
/// floats, or for one in [`Self::splat`].
pub(super) unsafe trait Register: Copy {
    /// The number of floats it holds: a divisor of a panel's columns.
    const LANES: usize;

    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// Loads all lanes.
    unsafe fn load(from: *const f32) -> Self;
    /// Loads one float into all lanes.
    unsafe fn splat(from: *const f32) -> Self;
    /// `self · factor + sum`.
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// Stores all lanes.
    unsafe fn store(self, to: *mut f32);
}

/// Four lanes in plain Rust, for processors without the other registers. Products are rounded
/// before they are added.
#[cfg(any(test, not(target_arch = "aarch64")))]
#[derive(Clone, Copy)]
pub(super) struct Portable([f32; 4]);

#[cfg(any(test, not(target_arch = "aarch64")))]
// SAFETY: no instruction set is needed; four floats are read and written.
unsafe impl Register for Portable {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { from.cast::<[f32; 4]>().read() })
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        Self([unsafe { *from }; 4])
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, sum: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] * factor.0[lane] + sum.0[lane]))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { to.cast::<[f32; 4]>().write(self.0) }
    }
}

/// Implements [`Register`] with intrinsics.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! register {
    ($type:ty, $lanes:literal, zero: $zero:expr, load: $load:path, splat: $splat:expr,
     mul_add: $mul_add:expr, add: $add:path, store: $store:path) => {
        // SAFETY: the intrinsics require what callers of the trait guarantee.
        unsafe impl Register for $type {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $zero }
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const f32) -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $splat(from) }
            }

            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, sum: Self) -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $mul_add(self, factor, sum) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $add(self, other) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: guaranteed by the caller.
                unsafe { $store(to, self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256, __m512, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps,
        _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
        _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::Register;

    register!(
        __m512, 16,
        zero: _mm512_setzero_ps(),
        load: _mm512_loadu_ps,
        splat: |from: *const f32| _mm512_set1_ps(*from),
        mul_add: _mm512_fmadd_ps,
        add: _mm512_add_ps,
        store: _mm512_storeu_ps
    );
    register!(
        __m256, 8,
        zero: _mm256_setzero_ps(),
        load: _mm256_loadu_ps,
        splat: |from: *const f32| _mm256_broadcast_ss(&*from),
        mul_add: _mm256_fmadd_ps,
        add: _mm256_add_ps,
        store: _mm256_storeu_ps
    );
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::{
        float32x4_t, vaddq_f32, vdupq_n_f32, vfmaq_f32, vld1q_dup_f32, vld1q_f32, vst1q_f32,
    };

    use super::Register;

    register!(
        float32x4_t, 4,
        zero: vdupq_n_f32(0.0),
        load: vld1q_f32,
        splat: vld1q_dup_f32,
        mul_add: |factor, other, sum| vfmaq_f32(sum, factor, other),
        add: vaddq_f32,
        store: vst1q_f32
    );
}
