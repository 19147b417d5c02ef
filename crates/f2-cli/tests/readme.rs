//! Runs every command of the README, at a size that takes seconds.

mod support;

use std::fs;

use support::Folder;
use support::hub::{LoopbackHub, Manners};
use support::printed::{commands, replaced, two_texts, type_in, write_small_plan};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// Replacements that make the README's commands small.
const SMALLER: [(&str, &str); 6] = [
    ("--vocab-size 4096", "--vocab-size 400"),
    ("--preset demo", "--steps 2 --set model.layers=1 --set model.width=16 --set batch.size=2"),
    ("--max-minutes 1", "--steps 1 --set batch.size=2"),
    ("--steps 20", "--steps 1 --set batch.size=2"),
    ("--streams 32", "--streams 4"),
    ("--preset tiny", "--plan small.toml"),
];

#[test]
fn every_command_of_the_readme_works() {
    let folder = Folder::new();
    for (name, text) in ["novels", "news"].into_iter().zip(two_texts()) {
        fs::create_dir(folder.path(name)).unwrap();
        folder.write(&format!("{name}/text.txt"), text);
    }
    support::copy_gpt2("tied", &folder.path("served"));
    let hub = LoopbackHub::serve("models/gpt2", &folder.path("served"), Manners::default());
    write_small_plan(&folder);
    let mut run = 0;
    for command in commands(&fs::read_to_string(README).unwrap()) {
        type_in(&folder, &replaced(command, &SMALLER), Some(&hub));
        run += 1;
    }
    assert_eq!(run, 22, "commands of the README");
    for made in ["classes.svg", "study/report.html", "transfer/report.html", "exported"] {
        assert!(folder.path(made).exists(), "{made}");
    }
}
