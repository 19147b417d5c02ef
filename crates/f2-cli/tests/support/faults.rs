//! Injected faults at each change to the disk in turn: see `f2_files::fault`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Folder, Run};

/// Every kind of fault: one change fails, the disk is full from then on, the process is killed.
pub const ALL: [&str; 3] = ["fail", "full", "kill"];

/// For each kind of fault, runs a command with a fault at the first change to the disk, at the
/// second, and so on until there was one at each. `prepare` is called before each run, `check`
/// after it with the plan of the fault.
///
/// Does nothing in release builds, which have no injected faults.
pub fn at_every_change(
    folder: &Folder,
    arguments: &[&str],
    kinds: &[&str],
    mut prepare: impl FnMut(),
    mut check: impl FnMut(&str),
) {
    if !cfg!(debug_assertions) {
        return;
    }
    for &kind in kinds {
        for change in 1.. {
            let plan = format!("{kind}:{change}");
            prepare();
            let run = folder.f2_with(arguments, &[("F2_FAULT", &plan)]);
            if !run.stderr.contains("fault: ") {
                assert_eq!(run.code, 0, "{}", run.stderr);
                assert!(change > 5, "{kind} never struck");
                break;
            }
            check_code(kind, &plan, &run);
            check(&plan);
        }
    }
}

/// A fault is reported as a failed write, or the run succeeds in spite of it.
fn check_code(kind: &str, plan: &str, run: &Run) {
    let expected: &[i32] = if kind == "kill" { &[137] } else { &[0, 4] };
    assert!(expected.contains(&run.code), "{plan}: {}", run.shown());
    assert!(run.code == 0 || kind == "kill" || run.stderr.contains("error: cannot "), "{plan}");
}

/// The content of every file below a folder, by its relative path.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inner = contents(&path).into_iter();
            files.extend(inner.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}
