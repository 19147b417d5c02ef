//! `f2 prepare`: from text to a corpus.

mod bars;
mod in_parts;
mod named;
mod summary;
mod tokenizer;
mod values;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use f2_corpus::{
    Boundaries, Fractions, Inputs, LONGEST_DOCUMENT, Options, Pairs, Part, SEPARATOR, SHARD_TOKENS,
    Split, Summary, prepare,
};
use f2_experiment::{PrepareTask, TokenizerSource};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{print, terminal};
use crate::verbs::flags::{Threads, split};
use bars::Bars;
use in_parts::IN_PARTS;
use summary::{dataset_table, grouped, remark_on, to_json};
use values::{boundaries, shares, size};

/// Turn text into a corpus: tokenizer, token shards and counts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 prepare novels/ --out corpus
  f2 prepare --train wiki.train.tokens --valid wiki.valid.tokens --test wiki.test.tokens --out wikitext103
  f2 prepare novel.txt --documents chapters --out novel
  f2 prepare reviews.jsonl.zst --field body --vocab-size 8000 --out reviews
  f2 prepare news.jsonl.gz --pairs --source-field article --target-field summary --out news
  zcat dump.txt.gz | f2 prepare - --documents lines --out corpus
  f2 prepare hf://datasets/Salesforce/wikitext/wikitext-2-raw-v1 --out wikitext2

In parts, on the machines of a cluster that share a file system; the corpus has the same bytes:
  sbatch --array=1-64 --wrap 'f2 prepare texts/ --part $SLURM_ARRAY_TASK_ID/64 --out parts'
  f2 prepare --merge parts --out corpus
The parts count words; the merge learns the vocabulary and encodes the text. With two more steps
between, the parts encode, too: `f2 prepare --learn parts`, and the array again. A part that was
killed is run again; finished parts are left as they are. With --tokenizer the parts encode at once.

Files are recognised by name: .txt, .jsonl, .parquet and Wikitext's .tokens; text may be compressed
as .gz or .zst. Anything else is read as plain text. Folders are searched for such files; a folder
reached again through a symbolic link is read once.

hf://datasets/OWNER/NAME[@REVISION][/FOLDER or FILE, * matches anything] is a dataset of the Hugging
Face hub, read from its cache (HF_HOME); missing files are downloaded (HF_ENDPOINT, HF_TOKEN;
HF_HUB_OFFLINE=1 forbids it). Where file names contain train, validation or test, they decide the
splits.")]
pub(crate) struct Prepare {
    /// Files, folders, or - for standard input; split as --split and --split-by say.
    #[arg(value_name = "INPUT", conflicts_with = "train")]
    #[arg(required_unless_present_any = ["train", "learn", "merge"])]
    inputs: Vec<PathBuf>,

    /// Training text, if the splits are given separately.
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    train: Vec<PathBuf>,

    /// Validation text.
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "train")]
    valid: Vec<PathBuf>,

    /// Test text.
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "train")]
    test: Vec<PathBuf>,

    /// The corpus folder to write; with --part the folder of parts.
    #[arg(long, short, value_name = "CORPUS", required_unless_present = "learn")]
    out: Option<PathBuf>,

    /// Replace CORPUS if it exists and holds nothing but a corpus.
    #[arg(long, conflicts_with_all = ["part", "learn"])]
    force: bool,

    /// Do one part of the work, such as 3/64: count the words of its share of the text, or encode
    /// it once the vocabulary is learned. All parts take the same INPUT and options.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["learn", "merge"])]
    part: Option<Part>,

    /// Learn the vocabulary from the words that all parts have counted.
    #[arg(long, value_name = "PARTS", conflicts_with_all = IN_PARTS)]
    #[arg(conflicts_with_all = ["merge", "out"])]
    learn: Option<PathBuf>,

    /// Make the corpus from its parts; INPUT and options are those of the parts.
    #[arg(long, value_name = "PARTS", conflicts_with_all = IN_PARTS)]
    merge: Option<PathBuf>,

    /// Shares of train, valid and test.
    #[arg(long, value_name = "SHARES", default_value = "0.9,0.05,0.05", value_parser = shares)]
    #[arg(conflicts_with = "train")]
    split: Fractions,

    /// How the documents of INPUT are split: hash, by their content alone, or order, the first
    /// ones for train and the last for test. Order is the default for chapters and pieces.
    #[arg(long, value_enum, value_name = "RULE", conflicts_with = "train")]
    split_by: Option<SplitBy>,

    /// Document boundaries in plain text: auto (articles in .tokens, blank lines elsewhere),
    /// blank-lines, lines, files, articles (` = Title = ` between blank lines), chapters (headings
    /// as in a novel), or a number: pieces of so many lines.
    #[arg(long, value_name = "WHERE", default_value = "auto", value_parser = boundaries)]
    documents: Boundaries,

    /// The largest document in bytes; K, M and G are understood.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    max_document: u64,

    /// The field of JSON Lines, or the column of Parquet, that holds the text.
    #[arg(long, default_value = "text")]
    field: String,

    /// Read pairs of a source and a target from JSON Lines, whatever the files are called: each is
    /// one document, with the separator between and <|endoftext|> after it, and training predicts
    /// targets.
    #[arg(long, conflicts_with_all = ["documents", "field", "start_of_text"])]
    pairs: bool,

    /// The field of a pair that holds its source.
    #[arg(long, value_name = "FIELD", default_value = "source", requires = "pairs")]
    source_field: String,

    /// The field of a pair that holds its target.
    #[arg(long, value_name = "FIELD", default_value = "target", requires = "pairs")]
    target_field: String,

    /// The special token between source and target. A given tokenizer must have it; it may be
    /// <|endoftext|>.
    #[arg(long, value_name = "TOKEN", default_value = SEPARATOR, requires = "pairs")]
    separator: String,

    /// Replace invalid UTF-8 instead of refusing it.
    #[arg(long)]
    lossy: bool,

    /// Tokens to learn, the 256 bytes included.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_VOCABULARY)]
    vocab_size: usize,

    /// An existing tokenizer: a tokenizer.json, vocab.json and merges.txt, or a folder that holds
    /// them: a corpus, a run, a model.
    #[arg(long, value_name = "FILE", num_args = 1..=2, conflicts_with = "vocab_size")]
    tokenizer: Vec<PathBuf>,

    /// Keep the tokenizer's ids and store the frequency ranks in a file of their own.
    #[arg(long, requires = "tokenizer")]
    keep_ids: bool,

    /// Append the token <|endoftext|> to every document.
    #[arg(long)]
    end_of_text: bool,

    /// Put the token <|endoftext|> before every document, as a start symbol that is not counted.
    #[arg(long)]
    start_of_text: bool,

    /// Also write the text of the test split, or of those named, to CORPUS/test.jsonl: JSON lines
    /// that `f2 eval` and `f2 generate` read.
    #[arg(long, value_name = "SPLITS", num_args = 0..=1, require_equals = true)]
    #[arg(value_delimiter = ',', value_parser = split(), default_missing_value = "test")]
    text: Vec<Split>,

    /// Tokens in a shard after which the next document begins a new shard.
    #[arg(long, value_name = "N", default_value_t = SHARD_TOKENS, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    shard_tokens: u64,

    #[command(flatten)]
    threads: Threads,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// The number of tokens learned by default.
const DEFAULT_VOCABULARY: usize = 30_000;

/// How documents are distributed over the splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SplitBy {
    Hash,
    Order,
}

impl Prepare {
    pub(crate) fn run(mut self) -> Outcome {
        interrupt::listen();
        if let Some(parts) = &self.learn {
            return self.learn_from(parts);
        }
        if let Some(parts) = &self.merge {
            let summary = self.merge_from(parts)?;
            return self.show(&summary);
        }
        self.fetch_named()?;
        if let Some(part) = self.part {
            return self.prepare_part(part);
        }
        let summary = self.prepare()?;
        self.show(&summary)
    }

    /// The output folder, which clap requires in every mode that writes to one.
    fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(""))
    }

    /// Prints the size of the corpus.
    fn show(&self, summary: &Summary) -> Outcome {
        if self.json {
            return print(&format!("{}\n", to_json(summary)));
        }
        let (corpus, vocabulary) = (self.out().display(), grouped(summary.vocabulary_size as u64));
        remark!("corpus: {corpus}, next `f2 classes {corpus}`");
        let table = dataset_table(summary).to_terminal(terminal());
        print(&format!("{table}\nvocabulary: {vocabulary} tokens\n"))
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &PrepareTask<PathBuf>, threads: Threads) -> Result<Self, Failure> {
        let documents = task.documents.as_deref().unwrap_or("auto");
        let (vocab_size, tokenizer) = match &task.tokenizer {
            TokenizerSource::Learnt(size) => (*size, Vec::new()),
            TokenizerSource::File(file) => (DEFAULT_VOCABULARY, vec![file.clone()]),
        };
        Ok(Self {
            inputs: task.texts.clone(),
            train: Vec::new(),
            valid: Vec::new(),
            test: Vec::new(),
            out: Some(task.out.clone()),
            force: false,
            part: None,
            learn: None,
            merge: None,
            split: Fractions::default(),
            split_by: None,
            documents: boundaries(documents).map_err(|reason| {
                Failure::usage(format!("`documents = \"{documents}\"` in the plan: {reason}"))
                    .advise("`f2 prepare --help` lists the values of --documents")
            })?,
            max_document: LONGEST_DOCUMENT,
            field: "text".to_owned(),
            pairs: false,
            source_field: "source".to_owned(),
            target_field: "target".to_owned(),
            separator: SEPARATOR.to_owned(),
            lossy: false,
            vocab_size,
            tokenizer,
            keep_ids: false,
            end_of_text: false,
            start_of_text: task.start_of_text,
            text: Vec::new(),
            shard_tokens: SHARD_TOKENS,
            threads,
            json: false,
        })
    }

    /// Prepares the corpus, and reports what is unusual about it.
    pub(super) fn prepare(&self) -> Result<Summary, Failure> {
        let options = self.options()?;
        let summary = prepare(&options, &Bars::default())?;
        remark_on(&summary, &options);
        Ok(summary)
    }

    fn options(&self) -> Result<Options, Failure> {
        let inputs = if self.train.is_empty() {
            Inputs::Spread { paths: self.inputs.clone(), fractions: self.split }
        } else {
            let [train, valid, test] = [&self.train, &self.valid, &self.test].map(Clone::clone);
            Inputs::PerSplit { train, valid, test }
        };
        let mut options = Options::new(inputs, self.out());
        options.replace = self.force;
        options.documents = self.documents;
        options.longest_document = self.max_document;
        let of_a_novel = matches!(self.documents, Boundaries::Chapters | Boundaries::Pieces(_));
        let default = if of_a_novel { SplitBy::Order } else { SplitBy::Hash };
        options.in_order = self.split_by.unwrap_or(default) == SplitBy::Order;
        options.text_of.clone_from(&self.text);
        options.field.clone_from(&self.field);
        options.pairs = self.pairs.then(|| Pairs {
            source: self.source_field.clone(),
            target: self.target_field.clone(),
            separator: self.separator.clone(),
        });
        options.lossy = self.lossy;
        options.tokenizer = self.tokenizer_choice()?;
        options.keep_ids = self.keep_ids;
        options.end_of_text = self.end_of_text;
        options.start_of_text = self.start_of_text;
        options.shard_tokens = self.shard_tokens;
        options.threads = self.threads.count();
        Ok(options)
    }
}
