//! `f2`: from raw text to a language model that writes as diversely as people do.

// These end the program where nobody listens; `output` has what does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod advice;
mod failure;
mod format;
mod hub;
mod interrupt;
mod machine;
mod progress;
mod ranked_counts;
mod texts;
mod verbs;

fn main() -> std::process::ExitCode {
    let program = verbs::Program::read();
    machine::do_without_threads_if_need_be();
    match program.run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
