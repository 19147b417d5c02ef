//! `f2 completions`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Program;
use crate::failure::Outcome;
use crate::output::print;

/// Print the completion script for a shell.
#[derive(Args)]
#[command(
    after_help = "Example:\n  f2 completions bash > ~/.local/share/bash-completion/completions/f2"
)]
pub(crate) struct Completions {
    /// The shell to complete for.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Program::command(), "f2", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
