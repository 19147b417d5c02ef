//! Every command of the guide, at a size that takes seconds.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Folder, invented_text};

const GUIDE: &str = include_str!("../../../docs/guide.md");

/// What makes a command of the guide small: words, and what stands in their place here.
const SMALLER: [(&str, &str); 7] = [
    ("--vocab-size 4096", "--vocab-size 400"),
    ("--steps 600", "--steps 2 --set model.layers=1 --set model.width=16 --set batch.size=2"),
    ("--streams 64", "--streams 4"),
    ("--bootstrap 200", "--bootstrap 3"),
    ("f2 demo", "f2 demo --steps 1"),
    ("--preset tiny --dry-run", "--plan small.toml --dry-run"),
    ("study --preset tiny", "study --plan small.toml"),
];

/// The tiny plan, as small as it can be.
const SMALLER_PLAN: [(&str, &str); 10] = [
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

/// The lines of all blocks of shell commands.
fn commands() -> impl Iterator<Item = &'static str> {
    let blocks = GUIDE.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines())
}

fn replaced(text: &str, replacements: &[(&str, &str)]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn every_command_of_the_guide_works() {
    let folder = Folder::new();
    folder.write("novel.txt", invented_text(400));
    folder.write("news.txt", invented_text(400).replace("ka", "zu"));
    let plan = folder.f2(&["reproduce", "--preset", "tiny", "--show-plan"]).stdout;
    folder.write("small.toml", replaced(&plan, &SMALLER_PLAN));
    let program = Path::new(env!("CARGO_BIN_EXE_f2")).parent().unwrap().to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&path)));
    let path = path.unwrap();
    let mut run = 0;
    for command in commands() {
        let command = replaced(command, &SMALLER);
        if command.contains("--plan plan.toml") {
            folder.write("plan.toml", replaced(&folder.read("plan.toml"), &SMALLER_PLAN));
        }
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path(""))
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "$ {command}\n{said}");
        run += 1;
    }
    assert_eq!(run, 26, "commands of the guide");
    for made in ["classes.svg", "report.html", "study/report.html", "f2-demo/report.html"] {
        assert!(folder.path(made).exists(), "{made}");
    }
}
