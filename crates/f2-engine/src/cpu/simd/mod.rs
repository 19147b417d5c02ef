//! Vector kernels, from one source for every instruction set.
//!
//! A kernel is plain Rust over slices, generic over its [`Arithmetic`]. [`vectorised`] compiles it
//! for AVX-512, for AVX2 with FMA and for the target's baseline, and selects one at run time. Sums
//! use [`LANES`] independent accumulators, so every instruction set adds in the same order.

mod path;
mod vectors;

pub use path::Simd;
pub(super) use vectors::{add, dot, dot_kernel};

/// Independent accumulators of a sum: one AVX-512 register, two of AVX2.
pub(super) const LANES: usize = 16;

/// How products are added: with or without intermediate rounding.
pub(super) trait Arithmetic {
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// Fused multiply-add, with a single rounding; for targets that have the instruction.
pub(super) struct Fused;

/// Multiplication and addition, with two roundings: without the instruction, `f32::mul_add` is a
/// slow library call. ARM always has it.
#[cfg(any(test, not(target_arch = "aarch64")))]
pub(super) struct Separate;

impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

#[cfg(any(test, not(target_arch = "aarch64")))]
impl Arithmetic for Separate {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// Defines a function that runs the version of a kernel for the instruction set in use. The kernel
/// must be `#[inline(always)]`, so that each version contains its own copy.
macro_rules! vectorised {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?)
     $(-> $result:ty)? = $kernel:path) => {
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            use $kernel as kernel;
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    kernel::<$crate::cpu::simd::Fused>($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    kernel::<$crate::cpu::simd::Fused>($($argument),*)
                }
                let used = $crate::cpu::simd::Simd::used();
                if used >= $crate::cpu::simd::Simd::Avx512 {
                    // SAFETY: an instruction set is used only if it is available.
                    return unsafe { avx512($($argument),*) };
                }
                if used == $crate::cpu::simd::Simd::Avx2 {
                    // SAFETY: as above.
                    return unsafe { avx2($($argument),*) };
                }
            }
            #[cfg(target_arch = "aarch64")]
            return kernel::<$crate::cpu::simd::Fused>($($argument),*);
            #[cfg(not(target_arch = "aarch64"))]
            kernel::<$crate::cpu::simd::Separate>($($argument),*)
        }
    };
}
pub(super) use vectorised;

/// The sum of the lanes, pairwise.
#[inline(always)]
pub(super) fn reduce(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `Σ term(x)`.
#[inline(always)]
pub(super) fn sum_by(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] += term(block[lane]);
        }
    }
    for (lane, &x) in rest.iter().enumerate() {
        lanes[lane] += term(x);
    }
    reduce(lanes)
}

/// `Σ term(a, b, c)`.
#[inline(always)]
pub(super) fn sum_by_three([a, b, c]: [&[f32]; 3], term: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let [(a, a_rest), (b, b_rest), (c, c_rest)] = [a, b, c].map(<[f32]>::as_chunks::<LANES>);
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane], c[lane]);
        }
    }
    for (lane, ((&a, &b), &c)) in a_rest.iter().zip(b_rest).zip(c_rest).enumerate() {
        lanes[lane] += term(a, b, c);
    }
    reduce(lanes)
}

/// Turns every `x` into `exp(scale · x - shift)` and returns their sum.
///
/// In two passes: each is a simple vector loop, and the second finds its input in the L1 cache.
#[inline(always)]
pub(super) fn exponentials<A: Arithmetic>(scale: f32, shift: f32, x: &mut [f32]) -> f32 {
    for x in &mut *x {
        *x = exp::<A>(A::mul_add(*x, scale, -shift));
    }
    sum_by(x, |x| x)
}

/// The largest element; `-∞` if there is none.
#[inline(always)]
pub(super) fn maximum(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] = if block[lane] > lanes[lane] { block[lane] } else { lanes[lane] };
        }
    }
    let seen = lanes.into_iter().chain(rest.iter().copied());
    seen.fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
}

/// `e^x` to about one unit in the last place; 0 for `x < -87` and infinity for `x > 88`, both just
/// within the range of normal numbers; NaN for NaN.
#[inline(always)]
pub(super) fn exp<A: Arithmetic>(x: f32) -> f32 {
    // x = n ln 2 + r with |r| ≤ ln 2 / 2. Adding 1.5 · 2²³ leaves the nearest integer in the lowest
    // bits, and subtracting it gives n. ln 2 is split into two parts so that r is accurate.
    const ROUND: f32 = 12_582_912.0;
    let rounded = A::mul_add(x, std::f32::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = A::mul_add(n, -0.693_145_75, x);
    let r = A::mul_add(n, -1.428_606_8e-6, r);
    // The minimax polynomial of degree six on that interval, with a relative error of 3e-9.
    let mut p = 1.381_459_9e-3;
    p = A::mul_add(p, r, 8.368_717e-3);
    p = A::mul_add(p, r, 4.166_839e-2);
    p = A::mul_add(p, r, 1.666_652_1e-1);
    p = A::mul_add(p, r, 4.999_999_4e-1);
    p = A::mul_add(p, r, 1.0);
    p = A::mul_add(p, r, 1.0);
    let scale = f32::from_bits(rounded.to_bits().wrapping_add(127) << 23);
    let y = p * scale;
    let y = if x < -87.0 { 0.0 } else { y };
    if x > 88.0 { f32::INFINITY } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate() {
        for i in -870_000..880_000 {
            let x = i as f32 * 1e-4;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp::<Fused>(x)) - expected).abs() / expected;
            assert!(error < 2.5e-7, "exp({x}): relative error {error}");
        }
        assert_eq!(exp::<Fused>(0.0), 1.0);
        assert_eq!(exp::<Separate>(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp::<Separate>(1e4), f32::INFINITY);
        assert!(exp::<Separate>(f32::NAN).is_nan());
    }

    #[test]
    fn sums_take_every_term_once() {
        for len in [0, 1, 15, 16, 17, 100] {
            let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let squares: f32 = x.iter().map(|x| x * x).sum();
            assert_eq!(sum_by(&x, |x| x * x), squares);
            assert_eq!(sum_by_three([&x, &x, &x], |a, b, c| a * b + c - a), squares);
        }
    }

    #[test]
    fn maximum_finds_the_last_and_skips_nothing() {
        let mut x = vec![-3.0; 37];
        x[36] = -1.0;
        assert_eq!(maximum(&x), -1.0);
        assert_eq!(maximum(&[]), f32::NEG_INFINITY);
    }
}
