//! The flags of the truncation rules, made from the list of rules.

use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use f2_lm::decode::{TruncationRule, TruncationSetting, Truncations};

/// The truncations set by flags.
#[derive(Debug, Default)]
pub(super) struct TruncationFlags(pub(super) Truncations);

impl TruncationFlags {
    /// The clap ids of the flags.
    pub(super) fn ids() -> impl Iterator<Item = &'static str> {
        Truncations::rules_for_readers().map(|rule| rule.key)
    }
}

impl Args for TruncationFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Truncations::rules_for_readers().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(rule: &'static TruncationRule) -> Arg {
    let flag = Arg::new(rule.key).long(rule.flag()).value_name(rule.value_name).help(rule.help);
    match rule.setting {
        TruncationSetting::Count => flag.value_parser(value_parser!(usize)),
        TruncationSetting::Share | TruncationSetting::Positive => {
            flag.value_parser(value_parser!(f64))
        }
    }
}

impl FromArgMatches for TruncationFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for rule in Truncations::rules() {
            let given = match rule.setting {
                TruncationSetting::Count => {
                    matches.get_one::<usize>(rule.key).map(|count| *count as f64)
                }
                TruncationSetting::Share | TruncationSetting::Positive => {
                    matches.get_one::<f64>(rule.key).copied()
                }
            };
            self.0 = self.0.with(rule, given.or(self.0.get(rule)));
        }
        Ok(())
    }
}
