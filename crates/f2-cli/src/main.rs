//! `f2`: the command-line program for training, generating and evaluating with F²-Softmax.

// These panic on a closed pipe; `output` has functions that do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod advice;
mod bounded;
mod failure;
mod format;
#[cfg(test)]
mod fuzz;
mod hub;
mod interrupt;
mod machine;
mod progress;
mod ranked_counts;
mod texts;
mod verbs;

fn main() -> std::process::ExitCode {
    let program = verbs::Program::read();
    machine::avoid_threads_if_unavailable();
    match program.run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
