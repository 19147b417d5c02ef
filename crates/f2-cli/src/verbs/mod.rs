//! One file per verb, and what the verbs share: flags and the device.

mod bench;
mod classes;
mod compare;
mod completions;
mod demo;
mod device;
mod doctor;
mod eval;
mod export;
mod flags;
mod generate;
mod gpus;
mod import;
mod perplexity;
mod prepare;
mod report;
mod reproduce;
mod serve;
mod speed;
mod train;
mod tune;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::Outcome;

/// Diverse text generation by frequency factorised softmax (F²-Softmax, EMNLP 2020).
#[derive(Parser)]
#[command(name = "f2", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Exit codes: 0 success, 1 a check failed, 2 usage or configuration, \
                        3 bad data, 4 device, memory, disk or network, 130 interrupted.")]
pub(crate) struct Program {
    #[command(subcommand)]
    verb: Verb,
}

/// In the order of the pipeline.
#[derive(Subcommand)]
enum Verb {
    Demo(demo::Demo),
    Prepare(prepare::Prepare),
    Classes(classes::Classes),
    Train(train::Train),
    Import(import::Import),
    Export(export::Export),
    Generate(Box<generate::Generate>),
    Serve(Box<serve::Serve>),
    Tune(Box<tune::Tune>),
    Perplexity(perplexity::Perplexity),
    Eval(Box<eval::Eval>),
    Compare(compare::Compare),
    Reproduce(Box<reproduce::Reproduce>),
    Report(report::MakeReport),
    Doctor(doctor::Doctor),
    Bench(bench::Bench),
    Completions(completions::Completions),
}

impl Program {
    /// Parses the command line, or prints what is wrong with it and exits.
    pub(crate) fn read() -> Self {
        let mut definition = Self::command().mut_subcommands(take_negative_numbers);
        let matches = definition.try_get_matches_from_mut(std::env::args_os());
        let matches = matches.unwrap_or_else(|error| refuse(&error));
        Self::from_arg_matches(&matches)
            .unwrap_or_else(|error| refuse(&error.format(&mut definition)))
    }

    pub(crate) fn run(self) -> Outcome {
        match self.verb {
            Verb::Demo(verb) => verb.run(),
            Verb::Prepare(verb) => verb.run(),
            Verb::Classes(verb) => verb.run(),
            Verb::Train(verb) => verb.run(),
            Verb::Import(verb) => verb.run(),
            Verb::Export(verb) => verb.run(),
            Verb::Generate(verb) => verb.run(),
            Verb::Serve(verb) => verb.run(),
            Verb::Tune(verb) => verb.run(),
            Verb::Perplexity(verb) => verb.run(),
            Verb::Eval(verb) => verb.run(),
            Verb::Compare(verb) => verb.run(),
            Verb::Reproduce(verb) => verb.run(),
            Verb::Report(verb) => verb.run(),
            Verb::Doctor(verb) => verb.run(),
            Verb::Bench(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(),
        }
    }
}

/// Prints what is wrong with the command line, or the requested help, and exits. If arguments hold
/// control characters, the text goes through `remark!`, without colours, to make them harmless.
fn refuse(error: &clap::Error) -> ! {
    let odd = |word: std::ffi::OsString| word.to_string_lossy().contains(char::is_control);
    if !std::env::args_os().any(odd) {
        error.exit();
    }
    remark!("{}", error.render().to_string().trim_end());
    std::process::exit(error.exit_code())
}

/// Takes a negative number for a value that is out of range, not for an unknown flag.
fn take_negative_numbers(verb: Command) -> Command {
    verb.mut_subcommands(take_negative_numbers).mut_args(|argument| {
        let takes_a_value = !argument.is_positional() && argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_a_value)
    })
}
