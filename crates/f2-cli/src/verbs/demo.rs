use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};

use super::Program;
use crate::failure::{Failure, Outcome};

/// Show it all on a text that is built in, or on your own.
#[derive(Args)]
#[command(after_help = "Examples:\n  f2 demo\n  f2 demo --text my-novel.txt --out my-demo")]
pub(crate) struct Demo {
    /// Your own text instead of the built-in one; blank lines between documents.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// The folder for everything that is made.
    #[arg(long, short, value_name = "FOLDER", default_value = "f2-demo")]
    out: PathBuf,
}

impl Demo {
    /// The demonstration is nothing but the commands a user would type, shown as they run.
    pub(crate) fn run(self) -> Outcome {
        let text = match self.text {
            Some(text) => text,
            None => write_builtin_text(&self.out)?,
        };
        let [corpus, figure] = ["corpus", "classes.svg"].map(|name| self.out.join(name));
        type_command(&[
            "prepare".as_ref(),
            &text,
            "--vocab-size=4096".as_ref(),
            "--force".as_ref(),
            "--out".as_ref(),
            &corpus,
        ])?;
        type_command(&["classes".as_ref(), &corpus, "--plot".as_ref(), &figure])
    }
}

fn write_builtin_text(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("king-james.txt");
    std::fs::create_dir_all(folder)
        .and_then(|()| f2_files::write_text_atomically(&path, &f2_corpus::builtin_text()))
        .map_err(|error| Failure::writing(&path, &error))?;
    Ok(path)
}

/// Shows a command as it would be typed, and runs it.
fn type_command(arguments: &[&Path]) -> Outcome {
    let shown: Vec<String> = arguments.iter().map(|word| word.display().to_string()).collect();
    eprintln!("\n$ f2 {}", shown.join(" "));
    let words = arguments.iter().map(|word| word.as_os_str().to_owned());
    Program::parse_from(std::iter::once(OsString::from("f2")).chain(words)).run()
}
