//! All tests pass on every instruction set of the processor, and those with fused multiply-adds
//! give the same bits.

use std::process::{Command, Output};

use f2_engine::{Cpu, Simd};

use super::threads::outcome;

/// Runs tests of this binary on an instruction set, in a separate process.
fn on(simd: Simd, arguments: &[&str]) -> Output {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(arguments).env("F2_SIMD", simd.word()).output().unwrap()
}

fn chosen() -> bool {
    std::env::var_os("F2_SIMD").is_some()
}

#[test]
fn all_operations_pass_on_every_instruction_set() {
    if chosen() {
        return;
    }
    for simd in Simd::available().into_iter().filter(|&simd| simd < Simd::used()) {
        let output = on(simd, &[]);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "on {}:\n{printed}", simd.name());
    }
}

/// Prints a hash of the output bits of one operation of each kind.
#[test]
fn bits() {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for value in outcome(Cpu::new(2).unwrap()) {
        hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3);
    }
    println!("bits {hash:016x}");
}

/// So a run started on one machine can be continued on another, bit for bit.
#[test]
fn fused_instruction_sets_give_the_same_bits() {
    if chosen() {
        return;
    }
    let bits = |simd: Simd| {
        let output = on(simd, &["--exact", "instruction_sets::bits", "--nocapture"]);
        let printed = String::from_utf8_lossy(&output.stdout);
        let line = printed.lines().find_map(|line| line.split("bits ").nth(1).map(str::to_owned));
        line.unwrap_or_else(|| panic!("on {}:\n{printed}", simd.name()))
    };
    let fused = Simd::available().into_iter().filter(|&simd| simd >= Simd::Avx2);
    let all: Vec<String> = fused.map(bits).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}
