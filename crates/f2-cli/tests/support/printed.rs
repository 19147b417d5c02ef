//! The commands of a document, run in a shell from top to bottom.

use std::path::Path;
use std::process::Command;

use super::hub::LoopbackHub;
use super::{Folder, invented_text};

/// Replacements that make the tiny plan as small as possible.
pub const SMALLER_PLAN: [(&str, &str); 10] = [
    ("steps = 400", "steps = 2"),
    ("steps = 800", "steps = 2"),
    ("fine_tuning_steps = 150", "fine_tuning_steps = 1"),
    ("\"model.layers\" = 2", "\"model.layers\" = 1"),
    ("\"model.width\" = 64", "\"model.width\" = 16"),
    ("\"batch.size\" = 8", "\"batch.size\" = 2"),
    ("other_k = [5, 10, 20]", "other_k = [5]"),
    ("streams = 64", "streams = 4"),
    ("equal_k = [2, 4, 8, 16]", "equal_k = [2]"),
    ("bootstrap = 200", "bootstrap = 3"),
];

/// The lines of a document's blocks of shell commands.
pub fn commands(document: &str) -> impl Iterator<Item = &str> {
    let blocks = document.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines())
}

/// The text with replacements applied: pairs of a string and its replacement.
pub fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Writes the tiny plan, as small as possible, to `small.toml`.
pub fn write_small_plan(folder: &Folder) {
    let plan = folder.f2(&["reproduce", "--preset", "tiny", "--show-plan"]).stdout;
    folder.write("small.toml", replaced(&plan, &SMALLER_PLAN));
}

/// Two texts with partly different words, to pretrain on one and transfer to the other.
pub fn two_texts() -> [String; 2] {
    let text = invented_text(400);
    let other = text.replace("ka", "zu");
    [text, other]
}

/// Runs a command in a shell that finds the program, with this hub, or offline without one.
pub fn type_in(folder: &Folder, command: &str, hub: Option<&LoopbackHub>) {
    let program = Path::new(env!("CARGO_BIN_EXE_f2")).parent().unwrap().to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&path)));
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder.path(""))
        .env("PATH", path.unwrap())
        .env("HF_HOME", folder.path("huggingface"))
        .env("HF_HUB_OFFLINE", if hub.is_some() { "0" } else { "1" })
        .envs(hub.map(|hub| ("HF_ENDPOINT", &hub.endpoint)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "$ {command}\n{said}");
}
