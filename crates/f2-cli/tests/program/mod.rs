//! Runs the program in a folder of its own and shows all that a user would see.
#![allow(unreachable_pub, missing_docs, dead_code)] // each test file uses its own part

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A folder with some files in it.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// Exit code, standard output and standard error of `f2`, run inside a folder.
pub fn f2(folder: &Path, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_f2"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("F2_THREADS")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    format!(
        "$ f2 {arguments}\nexit code: {}\n----- stdout -----\n{}----- stderr -----\n{}",
        output.status.code().unwrap(),
        rounded(&text(output.stdout)),
        text(output.stderr)
    )
}

/// Long fractions to nine digits: the last ones depend on the system's mathematics library.
fn rounded(text: &str) -> String {
    let number = |part: &str| -> String {
        let digits = part.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        match part.parse::<f64>() {
            Ok(value) if digits > 9 => format!("{value:.9}"),
            _ => part.to_owned(),
        }
    };
    let boundary = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    text.split_inclusive(boundary)
        .map(|piece| match piece.char_indices().next_back() {
            Some((end, last)) if boundary(last) => number(&piece[..end]) + &piece[end..],
            _ => number(piece),
        })
        .collect()
}
