//! Runs every command of the guide, at a size that takes seconds.

mod support;

use std::fs;

use support::Folder;
use support::printed::{SMALLER_PLAN, commands, replaced, two_texts, type_in, write_small_plan};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md");

/// Replacements that make the guide's commands small.
const SMALLER: [(&str, &str); 7] = [
    ("--vocab-size 4096", "--vocab-size 400"),
    ("--steps 600", "--steps 2 --set model.layers=1 --set model.width=16 --set batch.size=2"),
    ("--streams 64", "--streams 4"),
    ("--bootstrap 200", "--bootstrap 3"),
    ("f2 demo", "f2 demo --steps 1"),
    ("--preset tiny --dry-run", "--plan small.toml --dry-run"),
    ("study --preset tiny", "study --plan small.toml"),
];

#[test]
fn every_command_of_the_guide_works() {
    let folder = Folder::new();
    let [novel, news] = two_texts();
    folder.write("novel.txt", novel);
    folder.write("news.txt", news);
    write_small_plan(&folder);
    let mut run = 0;
    for command in commands(&fs::read_to_string(GUIDE).unwrap()) {
        let command = replaced(command, &SMALLER);
        if command.contains("--plan plan.toml") {
            folder.write("plan.toml", replaced(&folder.read("plan.toml"), &SMALLER_PLAN));
        }
        type_in(&folder, &command, None);
        run += 1;
    }
    assert_eq!(run, 29, "commands of the guide");
    let scores: serde_json::Value = serde_json::from_str(&folder.read("scores.json")).unwrap();
    assert!(scores[0]["ppl"].as_f64().unwrap() > 1.0, "perplexities came along");
    for made in ["classes.svg", "report.html", "study/report.html", "f2-demo/report.html"] {
        assert!(folder.path(made).exists(), "{made}");
    }
}
