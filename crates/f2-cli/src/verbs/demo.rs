use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};

use super::Program;
use crate::failure::{Failure, Outcome};

/// Show it all on a text that is built in, or on your own: classes, and both models trained.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  f2 demo\n  f2 demo --text my-novel.txt --out my-demo --minutes 5"
)]
pub(crate) struct Demo {
    /// Your own text instead of the built-in one; blank lines between documents.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// The folder for everything that is made; it must not exist yet.
    #[arg(long, short, value_name = "FOLDER", default_value = "f2-demo")]
    out: PathBuf,
    /// How long to train each of the two models.
    #[arg(long, value_name = "M", default_value_t = 1.5)]
    minutes: f64,
}

impl Demo {
    /// The demonstration is nothing but the commands a user would type, shown as they run.
    pub(crate) fn run(self) -> Outcome {
        if self.out.exists() {
            return Err(Failure::usage(format!("{} already exists", self.out.display()))
                .advise("remove it, or choose another folder with `--out`"));
        }
        let text = match &self.text {
            Some(text) => text.clone(),
            None => write_builtin_text(&self.out)?,
        };
        let corpus = self.out.join("corpus");
        type_command("prepare", &[&text, "--vocab-size=4096".as_ref(), "--out".as_ref(), &corpus])?;
        let figure = self.out.join("classes.svg");
        type_command("classes", &[&corpus, "--plot".as_ref(), &figure])?;
        self.train(&corpus, "mle")?;
        self.train(&corpus, "f2")
    }

    fn train(&self, corpus: &Path, objective: &str) -> Outcome {
        let run = self.out.join(objective);
        let settings =
            format!("--preset=demo --objective={objective} --max-minutes={}", self.minutes);
        let mut words: Vec<&Path> = vec![corpus];
        words.extend(settings.split(' ').map(Path::new));
        words.extend([Path::new("--out"), &run]);
        type_command("train", &words)
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
fn type_command(verb: &str, arguments: &[&Path]) -> Outcome {
    let shown: Vec<String> = arguments.iter().map(|word| word.display().to_string()).collect();
    eprintln!("\n$ f2 {verb} {}", shown.join(" "));
    let words = arguments.iter().map(|word| word.as_os_str().to_owned());
    Program::parse_from(["f2".into(), OsString::from(verb)].into_iter().chain(words)).run()
}
