//! Runs the commands of an experiment, as if they were typed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use f2_experiment::{Conductor, Moment};
use indicatif::HumanDuration;

use crate::failure::{Failure, Kind};
use crate::verbs::Program;
use crate::{interrupt, output};

/// Types the commands of an experiment, and shows them as they run.
pub(super) struct Typist {
    out: PathBuf,
    /// The stages that were begun.
    begun: Vec<String>,
}

impl Typist {
    pub(super) fn new(out: &Path) -> Self {
        Self { out: out.to_path_buf(), begun: Vec::new() }
    }

    fn stopped(&self) -> Failure {
        Failure::new(Kind::Interrupted, "stopped; everything that was done is kept").advise(
            format!("go on by the same command, with the same `--out {}`", self.out.display()),
        )
    }
}

impl Conductor for Typist {
    type Failure = Failure;

    fn announce(&mut self, moment: &Moment<'_>) {
        let Moment { place, of, stage, done, seconds_left } = moment;
        if self.begun.iter().any(|begun| begun == stage) {
            return;
        }
        if *done {
            remark!("[{place}/{of}] {stage}: done before");
            return;
        }
        self.begun.push((*stage).to_owned());
        let left = HumanDuration(Duration::from_secs_f64(seconds_left.clamp(1.0, 1e9)));
        remark!("\n[{place}/{of}] {stage}; about {left} left for everything");
    }

    fn run(&mut self, command: &[OsString]) -> Result<String, Failure> {
        if interrupt::asked() {
            return Err(self.stopped());
        }
        let shown: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        remark!("$ f2 {}", shown.join(" "));
        let words = std::iter::once("f2".into()).chain(command.iter().cloned());
        let program = Program::try_parse_from(words).map_err(|error| {
            Failure::usage(error.to_string().trim_start_matches("error: ").trim())
        })?;
        let kept = output::keep(|| program.run());
        match kept {
            Err(failure) if failure.is_interruption() => Err(self.stopped()),
            other => other,
        }
    }
}
