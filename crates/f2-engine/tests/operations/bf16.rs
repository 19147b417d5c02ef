//! Products in bf16: close to those in `f32`, with the same bits on any number of threads.

use f2_engine::{Cpu, Simd};

use super::threads::outcome;

/// The CPU with products in bf16, if the processor has instructions for them.
fn bf16(threads: usize) -> Option<Cpu> {
    if !Simd::has_bf16() {
        eprintln!("skipped: {} has no bf16", Simd::used().name());
        return None;
    }
    Some(Cpu::with_bf16(threads).unwrap())
}

/// One operation of each kind, forward and backward. bf16 keeps 8 bits: every operand has a
/// relative error of up to 2⁻⁹. Weights and inputs of unit variance give logits in the tens, whose
/// exponentials raise the error to some percent.
#[test]
fn operations_stay_near_those_in_f32() {
    let Some(cpu) = bf16(2) else { return };
    let (rounded, exact) = (outcome(cpu), outcome(Cpu::new(2).unwrap()));
    let difference = |a: &[f32], b: &[f32]| {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
        let norm: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
        (squares.sum::<f64>() / norm).sqrt()
    };
    let error = difference(&rounded, &exact);
    assert!((1e-3..0.1).contains(&error), "relative error {error}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let Some(cpu) = bf16(1) else { return };
    let expected = outcome(cpu);
    for threads in [2, 5] {
        assert!(outcome(bf16(threads).unwrap()) == expected, "{threads} threads");
    }
}

#[test]
fn a_processor_without_it_says_so() {
    if Simd::has_bf16() {
        return;
    }
    let error = Cpu::with_bf16(1).unwrap_err().to_string();
    assert!(error.contains("AVX512_BF16"), "{error}");
}
