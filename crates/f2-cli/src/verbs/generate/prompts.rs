//! What the model goes on from: a text, a file, standard input, or the paper's protocol.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use f2_corpus::{Corpus, END_OF_TEXT, Split};
use f2_experiment::GenerateTask;
use f2_lm::decode::{Protocol, TestWindows};
use f2_lm::run::SavedModel;
use serde::Deserialize;

use crate::failure::Failure;
use crate::texts::{is_json, line_of, lines, open_file_or_input};
use crate::verbs::flags::{SplitName, from_one};

/// Streams of the protocol where no number is given.
const DEFAULT_STREAMS: usize = 256;

#[derive(Args, Debug)]
#[command(next_help_heading = "Prompts")]
pub(super) struct PromptFlags {
    /// A text to go on from; can be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompts", "corpus"])]
    prompt: Vec<String>,
    /// A file of prompts: one a line, or JSON lines with `prompt`, `text` or `ids`; - for standard
    /// input, which is also read when no prompt is given.
    #[arg(long, value_name = "FILE", conflicts_with = "corpus")]
    prompts: Option<PathBuf>,
    /// Take prompts from this corpus, as the protocol says.
    #[arg(long, value_name = "CORPUS", requires = "protocol")]
    corpus: Option<PathBuf>,
    /// How the corpus is cut: `paper` cuts 256 streams into windows of 150 tokens, of which 50
    /// are the prefix and 100 are written.
    #[arg(long, value_enum, requires = "corpus")]
    protocol: Option<ProtocolName>,
    /// The split of the corpus.
    #[arg(long, value_enum, default_value = "test", requires = "corpus")]
    split: SplitName,
    /// Streams of the protocol: equal pieces the split is cut into, each of as many windows as fit.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STREAMS, requires = "corpus")]
    streams: usize,
    /// Tokens of a window that are the prefix.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "corpus")]
    prefix: usize,
    /// Tokens of a window after the prefix: as many are written.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "corpus")]
    continuation: usize,
    /// No more windows than this, taken from all over the split.
    #[arg(long, value_name = "N", requires = "corpus", value_parser = from_one)]
    texts: Option<NonZeroUsize>,
    /// Write what a human wrote after the protocol's prefixes to this file, as JSON lines.
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pub(super) references: Option<PathBuf>,
    /// Refuse prompts longer than the model can see, instead of keeping their last tokens.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    Paper,
}

/// What the model goes on from.
pub(super) struct Prompts {
    pub(super) ids: Vec<Vec<u32>>,
    /// As they were given; none where ids were.
    pub(super) texts: Vec<Option<String>>,
    /// What a human wrote instead; empty but for a protocol.
    pub(super) references: Vec<Vec<u32>>,
    /// What the protocol wants written.
    pub(super) new_tokens: Option<usize>,
}

#[derive(Deserialize)]
struct JsonPrompt {
    prompt: Option<String>,
    text: Option<String>,
    ids: Option<Vec<u32>>,
}

impl PromptFlags {
    /// The prompts of a stage.
    pub(super) fn of_task(task: &GenerateTask<PathBuf>) -> Self {
        Self {
            prompt: Vec::new(),
            prompts: None,
            corpus: Some(task.corpus.clone()),
            protocol: ProtocolName::from_str(task.protocol.name(), false).ok(),
            split: SplitName::Test,
            streams: task.streams.unwrap_or(DEFAULT_STREAMS),
            prefix: task.prefix,
            continuation: task.continuation,
            texts: task.texts.and_then(NonZeroUsize::new),
            references: Some(task.references.clone()),
            strict: false,
        }
    }

    pub(super) fn read(&self, model: &SavedModel) -> Result<Prompts, Failure> {
        if let Some(corpus) = &self.corpus {
            return self.cut(corpus, model);
        }
        let mut prompts = Prompts {
            ids: Vec::new(),
            texts: Vec::new(),
            references: Vec::new(),
            new_tokens: None,
        };
        if self.prompt.is_empty() {
            self.read_file(&mut prompts, model)?;
        } else {
            for text in &self.prompt {
                prompts.push_text(text.clone(), model)?;
            }
        }
        if prompts.ids.is_empty() {
            return Err(
                Failure::data("there are no prompts").advise("give one with `--prompt TEXT`")
            );
        }
        self.check(&mut prompts, model)?;
        Ok(prompts)
    }

    fn cut(&self, folder: &Path, model: &SavedModel) -> Result<Prompts, Failure> {
        let corpus = Corpus::open(folder)?;
        model.check_corpus(&corpus)?;
        let window = self.prefix.saturating_add(self.continuation);
        let protocol = Protocol { streams: self.streams, window, prefix: self.prefix };
        let shard = corpus.shard(Split::from(self.split))?;
        let mut ids = vec![0; shard.len()];
        shard.copy_to(0, &mut ids);
        let TestWindows { prefixes, references } = protocol.cut(&ids)?;
        let most = self.texts.map_or(usize::MAX, NonZeroUsize::get);
        let [prefixes, references] = [prefixes, references].map(|all| spread(all, most));
        let texts = prefixes.iter().map(|_| None).collect();
        let new_tokens = Some(protocol.new_tokens());
        let mut prompts = Prompts { ids: prefixes, texts, references, new_tokens };
        self.check(&mut prompts, model)?;
        Ok(prompts)
    }

    fn read_file(&self, prompts: &mut Prompts, model: &SavedModel) -> Result<(), Failure> {
        let stdin = PathBuf::from("-");
        let path = self.prompts.as_ref().unwrap_or(&stdin);
        if self.prompts.is_none() && std::io::stdin().is_terminal() {
            return Err(Failure::usage("there is no prompt")
                .advise("give one with `--prompt TEXT`, `--prompts FILE` or on standard input"));
        }
        let (numbers, lines) = lines(path, open_file_or_input(path)?)?;
        for (number, line) in numbers.into_iter().zip(lines) {
            if line.trim().is_empty() {
                continue;
            }
            if is_json(path) {
                prompts.push_json(&line, &line_of(path, number), model)?;
            } else {
                prompts.push_text(line, model)?;
            }
        }
        Ok(())
    }

    /// Gives empty prompts a beginning, and tells of those that are too long.
    fn check(&self, prompts: &mut Prompts, model: &SavedModel) -> Result<(), Failure> {
        let positions = model.shape.positions;
        for (number, ids) in (1..).zip(&mut prompts.ids) {
            if ids.is_empty() {
                let start = model.vocabulary.token(END_OF_TEXT).ok_or_else(|| {
                    let reason = format!("the tokenizer has no {END_OF_TEXT} to begin with");
                    Failure::usage(format!("prompt {number} is empty, and {reason}"))
                        .advise("give at least one token, such as a space or a line break")
                })?;
                ids.push(start);
            }
            if ids.len() <= positions {
                continue;
            }
            let long = format!(
                "prompt {number} has {} tokens, more than the {positions} the model sees",
                ids.len()
            );
            if self.strict {
                return Err(Failure::usage(long)
                    .advise("shorten it, or leave --strict out to keep its last tokens"));
            }
            remark!("note: {long}; its last {positions} are kept");
        }
        Ok(())
    }
}

/// As many as asked for at most, at even distances.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    let kept = most.min(count);
    let places = all.into_iter().enumerate();
    places.filter(|(place, _)| place * kept % count < kept).map(|(_, one)| one).collect()
}

impl Prompts {
    fn push_text(&mut self, text: String, model: &SavedModel) -> Result<(), Failure> {
        self.ids.push(model.vocabulary.encode(&text)?);
        self.texts.push(Some(text));
        Ok(())
    }

    fn push_json(&mut self, line: &str, place: &str, model: &SavedModel) -> Result<(), Failure> {
        let advice = "each line must be an object with `prompt`, `text` or `ids`";
        let JsonPrompt { prompt, text, ids } = serde_json::from_str(line).map_err(|error| {
            let reason = error.to_string().replace(" at line 1 column", " at column");
            Failure::data(format!("{place}: {reason}")).advise(advice)
        })?;
        match (prompt.or(text), ids) {
            (Some(text), _) => self.push_text(text, model),
            (None, Some(ids)) => {
                let vocabulary = model.shape.vocabulary;
                if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
                    return Err(Failure::data(format!(
                        "{place}: there is no token {id}; the model's vocabulary has {vocabulary}"
                    ))
                    .advise("give ids of this model's tokenizer, or the text itself"));
                }
                self.ids.push(ids);
                self.texts.push(None);
                Ok(())
            }
            (None, None) => {
                let reason = format!("{place}: there is neither `prompt` nor `text` nor `ids`");
                Err(Failure::data(reason).advise(advice))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn fewer_windows_come_from_all_over_the_split() {
        let all = |count: usize| (0..count).collect::<Vec<_>>();
        assert_eq!(spread(all(10), 4), [0, 3, 5, 8]);
        assert_eq!(spread(all(3), 3), [0, 1, 2]);
        assert_eq!(spread(all(3), usize::MAX), [0, 1, 2]);
        assert_eq!(spread(all(0), 5), all(0));
        assert!((1..50).all(|most| spread(all(49), most).len() == most));
    }
}
