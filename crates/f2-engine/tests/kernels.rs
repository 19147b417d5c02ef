//! Every kernel compiles for the GPUs it is intended for, also on a machine without a GPU.

use f2_engine::{Bf16, F32, Precision, compile_kernels, nvrtc_is_present};

/// Compute capabilities: the kernels are tuned for 9.0 (H100, H200); 8.0 (A100) is the oldest
/// supported, 8.6 and 8.9 are the RTX 30 and 40 series, 10.0 and 12.0 are Blackwell.
const CAPABILITIES: [(i32, i32); 6] = [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

/// The suffix of the names of kernels that use the tensor cores of compute capability 9.0.
const HOPPER_KERNELS: &[u8] = b"_hopper\0";

fn compile<P: Precision>() {
    if !nvrtc_is_present() {
        eprintln!("skipped: libnvrtc was not found (pip install nvidia-cuda-nvrtc has it)");
        return;
    }
    for capability in CAPABILITIES {
        let code = compile_kernels::<P>(capability).unwrap();
        assert_eq!(code[..4], *b"\x7fELF", "machine code is an ELF file");
        // Other GPUs lack these instructions, so their modules must not contain the kernels: a
        // launch looks them up by name.
        let names_hopper = code.windows(HOPPER_KERNELS.len()).any(|name| name == HOPPER_KERNELS);
        let has_hopper = P::NAME == "bf16" && capability == (9, 0);
        assert_eq!(names_hopper, has_hopper, "{capability:?}");
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
