//! `f2`: from raw text to a language model that writes as diversely as people do.

mod advice;
mod failure;
mod format;
mod interrupt;
mod machine;
mod output;
mod progress;
mod ranked_counts;
mod texts;
mod verbs;

fn main() -> std::process::ExitCode {
    match verbs::Program::read().run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
