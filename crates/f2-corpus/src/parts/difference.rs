//! The difference between two jobs, named by command-line flags.

use super::job::{Job, JobFile};
use crate::split::Fractions;
use crate::{Options, Pairs, TokenizerChoice};

impl Job {
    /// A message on the first difference of another job from this one; `None` if there is none.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let program = || program_difference(&self.made_by, &other.made_by);
        let files = || file_difference(&self.files, &other.files);
        program().or_else(files).or_else(|| setting_difference(self, other))
    }
}

/// A message if parts were made by another version of the program.
pub(super) fn program_difference(ours: &str, theirs: &str) -> Option<String> {
    (ours != theirs).then(|| format!("it was made by {theirs}, this is {ours}"))
}

/// A message on the first difference between the files of two texts.
pub(super) fn file_difference(ours: &[JobFile], theirs: &[JobFile]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let lacks = |files: &[JobFile], path: &str| files.iter().all(|file| file.path != path);
    for (ours, theirs) in ours.iter().zip(theirs) {
        if ours.path == theirs.path && ours.bytes != theirs.bytes {
            return Some(format!("{} has {} bytes, not {}", theirs.path, theirs.bytes, ours.bytes));
        }
    }
    let missing = ours.iter().find(|file| lacks(theirs, &file.path));
    let added = theirs.iter().find(|file| lacks(ours, &file.path));
    match (missing, added) {
        (Some(file), _) => Some(format!("{} is not among its inputs", file.path)),
        (None, Some(file)) => Some(format!("{} is among its inputs", file.path)),
        (None, None) => Some("its inputs have another order or other splits".to_owned()),
    }
}

fn setting_difference(ours: &Job, theirs: &Job) -> Option<String> {
    let (ours, theirs) = (settings(ours), settings(theirs));
    let mut both = ours.into_iter().zip(theirs);
    both.find(|(ours, theirs)| ours != theirs)
        .map(|((name, ours), (_, theirs))| format!("{name} is {theirs}, not {ours}"))
}

/// The settings of a job: each flag with its value.
fn settings(job: &Job) -> Vec<(&'static str, String)> {
    let Job { made_by: _, parts, options, tokenizer_sha256, files: _ } = job;
    // Exhaustive, so that no new option is forgotten; those ignored do not affect the result.
    let Options {
        inputs,
        out: _,
        replace: _,
        documents,
        field,
        lossy,
        longest_document,
        in_order,
        text_of,
        tokenizer,
        keep_ids,
        end_of_text,
        start_of_text,
        pairs,
        shard_tokens,
        threads: _,
    } = options;
    let (given, size) = match tokenizer {
        TokenizerChoice::Train { vocabulary_size } => (None, Some(vocabulary_size.to_string())),
        given => (Some(given.describe()), None),
    };
    vec![
        ("the number of parts", parts.to_string()),
        ("INPUT", inputs.describe()),
        ("--split", list(inputs.fractions().map(shares))),
        ("--split-by", if *in_order { "order" } else { "hash" }.to_owned()),
        ("--documents", documents.to_string()),
        ("--max-document", longest_document.to_string()),
        ("--field", field.clone()),
        ("--lossy", lossy.to_string()),
        ("--tokenizer", list(given)),
        ("--vocab-size", list(size)),
        ("the SHA-256 of --tokenizer", list(tokenizer_sha256)),
        ("--keep-ids", keep_ids.to_string()),
        ("--end-of-text", end_of_text.to_string()),
        ("--start-of-text", start_of_text.to_string()),
        ("--pairs", list(pairs.as_ref().map(words_of_pairs))),
        ("--text", list(text_of.iter().map(|split| split.name()))),
        ("--shard-tokens", shard_tokens.to_string()),
    ]
}

fn words_of_pairs(Pairs { source, target, separator }: &Pairs) -> String {
    format!("{source} {separator} {target}")
}

/// Values separated by commas, as flags take them.
fn list(values: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.as_ref().to_owned()).collect();
    if values.is_empty() { "none".to_owned() } else { values.join(",") }
}

fn shares(Fractions { train, valid, test }: Fractions) -> String {
    format!("{train},{valid},{test}")
}
