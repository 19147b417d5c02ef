//! `f2`: from raw text to a language model that writes as diversely as people do.

mod failure;
mod interrupt;
mod machine;
mod output;
mod progress;
mod verbs;

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    end_quietly_when_the_pipe_closes();
    match verbs::Program::parse().run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// `f2 … | head` ends us as it ends every other program, instead of failing a print.
fn end_quietly_when_the_pipe_closes() {
    // SAFETY: called first in main, while there is one thread and no handler to race with.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
