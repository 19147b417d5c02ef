//! The machine code of the CPU's kernels uses whole vectors, without gathers and scatters.
//!
//! A compiler may vectorise a loop with gathers, which once made the product seven times slower.
//! The test disassembles its own binary with `objdump` from binutils.

#![cfg(target_arch = "x86_64")]

use std::process::Command;

/// The functions of the CPU engine: their names and disassembly.
fn functions() -> Option<Vec<(String, String)>> {
    let binary = std::env::current_exe().unwrap();
    let arguments = ["--disassemble", "--demangle", "--no-show-raw-insn", "--no-addresses"];
    let output = Command::new("objdump").args(arguments).arg(binary).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_engine = |name: &str| name.contains("f2_engine::cpu") || name.contains("f2_engine..cpu");
    let parts = text.split("\n\n").filter_map(|part| part.split_once(">:\n"));
    Some(
        parts
            .map(|(name, code)| (name.trim_start().to_owned(), code.to_owned()))
            .filter(|(name, _)| of_engine(name))
            .collect(),
    )
}

#[test]
fn kernels_neither_gather_nor_scatter() {
    let Some(functions) = functions() else {
        eprintln!("skipped: objdump was not found (binutils has it)");
        return;
    };
    assert!(functions.len() > 50, "only {} functions were found", functions.len());
    for (name, code) in &functions {
        let bad = |line: &&str| line.contains("gather") || line.contains("scatter");
        let bad: Vec<&str> = code.lines().filter(|line| !line.contains('<')).filter(bad).collect();
        assert!(bad.is_empty(), "{name}: {bad:#?}");
    }
    for (path, register) in [("avx512", "%zmm"), ("avx2", "%ymm")] {
        let name = format!("product::kernel::{path}");
        let (_, code) = functions.iter().find(|(found, _)| found.contains(&name)).expect(&name);
        let fused = code.lines().filter(|line| line.contains("vfmadd") && line.contains(register));
        assert!(fused.count() > 100, "{name} does not multiply in {register} registers");
    }
}
