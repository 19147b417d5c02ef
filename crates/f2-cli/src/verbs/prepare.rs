//! `f2 prepare`: text in, a corpus out.

mod named;

use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use f2_corpus::{
    Boundaries, Fractions, Inputs, Observer, Options, Summary, TokenizerChoice, prepare,
};
use f2_report::{Align, Table};

use crate::failure::Outcome;
use crate::interrupt;
use crate::output::print;
use crate::progress::{Progress, Unit};
use crate::verbs::flags::Threads;

/// Turn text into a corpus: tokenizer, token shards and counts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 prepare novels/ --out corpus
  f2 prepare --train wiki.train.tokens --valid wiki.valid.tokens --test wiki.test.tokens --out wikitext103
  f2 prepare reviews.jsonl.zst --field body --vocab-size 8000 --out reviews
  zcat dump.txt.gz | f2 prepare - --documents lines --out corpus
  f2 prepare hf://datasets/Salesforce/wikitext/wikitext-2-raw-v1 --out wikitext2

Files are recognised by name: .txt, .jsonl, .parquet and Wikitext's .tokens; text may be packed as
.gz or .zst. Anything else is read as plain text.

hf://datasets/OWNER/NAME[@REVISION][/FOLDER or FILE, with * for any] is a dataset of the Hugging Face
hub: found in its cache (HF_HOME), fetched what is missing (HF_ENDPOINT, HF_TOKEN; HF_HUB_OFFLINE=1
forbids it). Files whose names tell their split are taken as split.")]
pub(crate) struct Prepare {
    /// Files, folders, or - for standard input; split by a hash of each document.
    #[arg(value_name = "INPUT", required_unless_present = "train", conflicts_with = "train")]
    inputs: Vec<PathBuf>,

    /// Training text, where the splits are given.
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    train: Vec<PathBuf>,

    /// Validation text.
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "train")]
    valid: Vec<PathBuf>,

    /// Test text.
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "train")]
    test: Vec<PathBuf>,

    /// The corpus folder to write.
    #[arg(long, short, value_name = "CORPUS")]
    out: PathBuf,

    /// Replace CORPUS if it exists.
    #[arg(long)]
    force: bool,

    /// Shares of train, valid and test when splitting by hash.
    #[arg(long, value_name = "SHARES", default_value = "0.9,0.05,0.05", value_parser = shares)]
    #[arg(conflicts_with = "train")]
    split: Fractions,

    /// Where one document ends in plain text.
    #[arg(long, value_enum, default_value_t = DocumentsArg::Auto)]
    documents: DocumentsArg,

    /// The field of JSON Lines, or the column of Parquet, that holds the text.
    #[arg(long, default_value = "text")]
    field: String,

    /// Replace invalid UTF-8 instead of refusing it.
    #[arg(long)]
    lossy: bool,

    /// Tokens to learn, the 256 bytes included.
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    vocab_size: usize,

    /// An existing tokenizer: a tokenizer.json, or vocab.json and merges.txt.
    #[arg(long, value_name = "FILE", num_args = 1..=2, conflicts_with = "vocab_size")]
    tokenizer: Vec<PathBuf>,

    /// Leave the tokenizer's ids alone and store the order of frequencies beside.
    #[arg(long, requires = "tokenizer")]
    keep_ids: bool,

    /// Put the token <|endoftext|> after every document.
    #[arg(long)]
    end_of_text: bool,

    #[command(flatten)]
    threads: Threads,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DocumentsArg {
    /// Articles in .tokens, blank lines elsewhere.
    Auto,
    /// Blank lines stand between documents.
    BlankLines,
    /// Every line is a document.
    Lines,
    /// Every file is a document.
    Files,
    /// Documents start at ` = Title = ` between blank lines.
    Articles,
}

impl From<DocumentsArg> for Boundaries {
    fn from(documents: DocumentsArg) -> Self {
        match documents {
            DocumentsArg::Auto => Self::Auto,
            DocumentsArg::BlankLines => Self::BlankLines,
            DocumentsArg::Lines => Self::Lines,
            DocumentsArg::Files => Self::Files,
            DocumentsArg::Articles => Self::Articles,
        }
    }
}

impl Prepare {
    pub(crate) fn run(mut self) -> Outcome {
        interrupt::listen();
        self.fetch_named()?;
        let options = self.options();
        let summary = prepare(&options, &Bars::default())?;
        if let TokenizerChoice::Train { vocabulary_size } = options.tokenizer
            && summary.vocabulary_size < vocabulary_size
        {
            remark!(
                "note: learned {} of {vocabulary_size} tokens: the text has no more pairs that \
                 occur twice",
                summary.vocabulary_size
            );
        }
        if self.json {
            return print(&format!("{}\n", to_json(&summary)));
        }
        let (corpus, vocabulary) = (options.out.display(), grouped(summary.vocabulary_size as u64));
        remark!("corpus: {corpus}, next `f2 classes {corpus}`");
        let table = dataset_table(&summary).to_terminal(false);
        print(&format!("{table}\nvocabulary: {vocabulary} tokens\n"))
    }

    fn options(&self) -> Options {
        let inputs = if self.train.is_empty() {
            Inputs::Spread { paths: self.inputs.clone(), fractions: self.split }
        } else {
            let [train, valid, test] = [&self.train, &self.valid, &self.test].map(Clone::clone);
            Inputs::PerSplit { train, valid, test }
        };
        let mut options = Options::new(inputs, &self.out);
        options.replace = self.force;
        options.documents = self.documents.into();
        options.field.clone_from(&self.field);
        options.lossy = self.lossy;
        options.tokenizer = self.tokenizer_choice();
        options.keep_ids = self.keep_ids;
        options.end_of_text = self.end_of_text;
        options.threads = self.threads.count();
        options
    }

    fn tokenizer_choice(&self) -> TokenizerChoice {
        match self.tokenizer.as_slice() {
            [] => TokenizerChoice::Train { vocabulary_size: self.vocab_size },
            [vocabulary, merges] => TokenizerChoice::VocabularyAndMerges {
                vocabulary: vocabulary.clone(),
                merges: merges.clone(),
            },
            [file, ..] => TokenizerChoice::File(file.clone()),
        }
    }
}

/// Reads `0.8,0.1,0.1`.
fn shares(text: &str) -> Result<Fractions, String> {
    let shares: Result<Vec<f64>, _> = text.split(',').map(|share| share.trim().parse()).collect();
    match shares.as_deref() {
        Ok(&[train, valid, test]) => Ok(Fractions { train, valid, test }),
        _ => Err("expected three numbers, as in 0.8,0.1,0.1".to_owned()),
    }
}

/// The paper's dataset table.
fn dataset_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        ("split", Align::Left),
        ("documents", Align::Right),
        ("words", Align::Right),
        ("tokens", Align::Right),
        ("bytes", Align::Right),
    ]);
    for size in &summary.splits {
        table.row([
            size.split.name().into(),
            grouped(size.documents).into(),
            grouped(size.words).into(),
            grouped(size.tokens).into(),
            grouped(size.bytes).into(),
        ]);
    }
    table
}

fn to_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "vocabulary_size": summary.vocabulary_size,
        "splits": summary.splits,
    })
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

/// Shows each stage of the preparation as a bar.
#[derive(Default)]
struct Bars {
    current: Mutex<Option<Progress>>,
}

impl Observer for Bars {
    fn stage(&self, name: &str, bytes: Option<u64>) {
        let mut current = self.current.lock().expect("no bar panics");
        // The old bar leaves its line before the new one takes it.
        *current = None;
        let unit = if bytes.is_some() { Unit::Bytes } else { Unit::Time };
        *current = Some(Progress::new(name, bytes, unit));
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = &*self.current.lock().expect("no bar panics") {
            bar.advance(bytes);
        }
    }

    fn interrupted(&self) -> bool {
        interrupt::asked()
    }
}
