//! Every kernel compiles for the GPUs it is meant for, on a machine without one.

use f2_engine::{Bf16, F32, Precision, compile_kernels, nvrtc_is_present};

/// Tuned on 9.0; 8.0 is the oldest.
const CAPABILITIES: [(i32, i32); 2] = [(8, 0), (9, 0)];

fn compile<P: Precision>() {
    if !nvrtc_is_present() {
        eprintln!("skipped: libnvrtc was not found (pip install nvidia-cuda-nvrtc has it)");
        return;
    }
    for capability in CAPABILITIES {
        let code = compile_kernels::<P>(capability).unwrap();
        assert_eq!(code[..4], *b"\x7fELF", "machine code is an ELF file");
    }
}

#[test]
fn kernels_compile_in_bf16() {
    compile::<Bf16>();
}

#[test]
fn kernels_compile_in_f32() {
    compile::<F32>();
}
