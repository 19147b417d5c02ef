//! `f2 eval`: the scores of generated texts.

mod chosen;
mod further;
mod models;
mod pairs;
mod perplexities;
mod print;
mod read;

use std::path::{Path, PathBuf};

use clap::Args;
use f2_experiment::ScoreTask;
use f2_metrics::{
    Bootstrap, Convention, Error, Evaluation, Halves, Metric, Settings, evaluate_watched,
};
use f2_report::{DifferenceRecord, HalfRecord, HumanRecord, ResultRecord};

use self::chosen::{Choice, Chosen};
use self::further::FurtherScorer;
use self::models::ModelFlags;
use self::print::keep;
use crate::failure::{Failure, Outcome};
use crate::format::Format;
use crate::progress::{Progress, Unit};
use crate::ranked_counts::RankedCounts;
use crate::texts::{TextReader, Texts};

/// Score generated texts: KLD, MS-Jaccard, Self-BLEU, Distinct, Rep, Uniq and frequency bands, and
/// further metrics by name.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  f2 eval --hyps model.jsonl --refs human.jsonl
  f2 eval --hyps mle.txt f2.txt --refs human.txt --words --markdown
  f2 eval --hyps mle.jsonl f2.jsonl --refs human.jsonl --ppl mle.ppl.json f2.ppl.json
  f2 eval --pairs --hyps mle.jsonl f2.jsonl --refs targets.jsonl
  f2 eval --hyps f2.jsonl --refs human.jsonl --counts corpus/counts.json --bootstrap 1000 --json
  f2 eval --hyps mle.jsonl f2.jsonl --refs human.jsonl --models mle f2 --corpus corpus
  f2 eval --hyps f2.jsonl --refs human.jsonl --metrics mauve,vendi,novelty --embedder gpt2-model \
    --corpus corpus
  f2 eval --hyps f2.jsonl --refs human.jsonl --metrics all --csv

A file whose name ends in .jsonl, .ndjson or .json holds objects with `ids` (token ids) or `text`;
any other holds one text a line. All may be compressed as .gz or .zst. With --counts, ids are those
the counts are for: ranks for a corpus's counts.json, indices into the array for a plain array. A
metric whose input was not given (references, a corpus, a model, text as well as ids) is left out
with a remark. docs/metrics.md defines every metric.")]
pub(crate) struct Eval {
    /// Generated texts, a file for each model.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    hyps: Vec<PathBuf>,

    /// Human texts to compare with; they also give the Human row.
    #[arg(long, value_name = "FILE")]
    refs: Option<PathBuf>,

    /// The metrics, separated by commas: `paper` are the seven of the paper, `texts` those further
    /// ones that need the texts alone, `training` those that need `--corpus`.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "paper")]
    #[arg(value_parser = Choice::parser(), hide_possible_values = false)]
    metrics: Vec<Choice>,

    /// Compare every text with the reference in the same line instead: BLEU, chrF and ROUGE.
    #[arg(long, conflicts_with_all = ["counts", "tokenizer", "words", "bootstrap", "ppl", "set"])]
    #[arg(conflicts_with_all = ["convention", "orders", "metrics", "models", "corpus", "embedder"])]
    pairs: bool,

    /// Token counts of the training corpus, for the frequency bands.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,

    /// The definitions: `paper` as the authors compute them, `textbook` as each metric's own
    /// paper defines it.
    #[arg(long, value_name = "NAME", default_value_t = Convention::Paper)]
    convention: Convention,

    /// Turn text into tokens by this tokenizer.json.
    #[arg(long, value_name = "FILE", conflicts_with = "words")]
    tokenizer: Option<PathBuf>,

    /// Split text into words at white space; the default if no tokenizer is given.
    #[arg(long)]
    words: bool,

    /// Longest n-grams of MS-Jaccard, Self-BLEU and Distinct.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=5))]
    orders: u8,

    /// Resample the texts N times for 95 % intervals; 1000 is usual.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    bootstrap: Option<u32>,

    /// Seed of the bootstrap and of the split of the references.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "bootstrap")]
    seed: u64,

    /// Names of the models, in the order of their files; the files' names if not given.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    names: Vec<String>,

    /// Perplexities of the models, in the order of their files, to show with the metrics: numbers,
    /// or files of `f2 perplexity --json`.
    #[arg(long, value_name = "PPL", num_args = 1.., value_parser = perplexities::given)]
    ppl: Vec<perplexities::Given>,

    #[command(flatten)]
    models: ModelFlags,

    /// Name of the set of texts that are continued, for `f2 compare` over several sets.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,

    #[command(flatten)]
    format: Format,
}

impl Eval {
    pub(crate) fn run(self) -> Outcome {
        if self.pairs {
            return self.run_pairs();
        }
        let (records, words) = self.score()?;
        self.print(&records, words)
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &ScoreTask<PathBuf>) -> Self {
        let mut metrics = vec![Choice::Paper, Choice::Texts];
        metrics.extend(task.corpus.as_ref().map(|_| Choice::Training));
        Self {
            hyps: task.texts.clone(),
            refs: Some(task.references.clone()),
            metrics,
            models: ModelFlags { corpus: task.corpus.clone(), ..ModelFlags::none() },
            pairs: false,
            counts: Some(task.counts.clone()),
            convention: Convention::Paper,
            tokenizer: None,
            words: false,
            orders: 3,
            bootstrap: u32::try_from(task.bootstrap).ok().filter(|draws| *draws > 0),
            seed: 1,
            names: task.names.clone(),
            ppl: Vec::new(),
            set: None,
            format: Format::json(),
        }
    }

    /// The scores of each file, and whether text was split into words for them.
    pub(super) fn score(&self) -> Result<(Vec<ResultRecord>, bool), Failure> {
        let names = self.model_names()?;
        let chosen = Chosen::new(&self.metrics);
        self.remark_on_missing(&chosen);
        let mut perplexities = perplexities::read(&self.ppl)?;
        let counts = self.counts.as_deref().map(RankedCounts::load).transpose()?;
        let mut reader = TextReader::new(self.splitting()?);
        let references = self
            .refs
            .as_deref()
            .map(|path| self.read(&mut reader, path, counts.as_ref(), None))
            .transpose()?;
        let settings = self.settings(counts.as_ref());
        let tokenizer = self.tokenizer.as_deref();
        let mut further = FurtherScorer::new(&self.models, &chosen, settings.bootstrap, tokenizer)?;
        let human = references
            .as_ref()
            .map(|texts| self.human(texts, &settings, &mut further))
            .transpose()?;
        let mut records: Vec<ResultRecord> = Vec::new();
        let mut scored: Vec<Evaluation> = Vec::new();
        for (path, name) in self.hyps.iter().zip(&names) {
            let texts = self.read(&mut reader, path, counts.as_ref(), references.as_ref())?;
            let mut evaluation = score(&texts, references.as_ref(), &settings)?;
            further.score(&mut evaluation, &texts)?;
            let mut record = ResultRecord::new(
                name,
                self.convention,
                &evaluation,
                settings.bootstrap,
                human.as_ref(),
            );
            let earlier = scored.iter().zip(&records);
            let differences = earlier.filter_map(|(other, record)| {
                let metrics = evaluation.difference(other)?;
                Some(DifferenceRecord { to: record.name.clone(), metrics })
            });
            record.differences = differences.collect();
            record.half =
                references.as_ref().and_then(|references| self.half(references, &texts, &settings));
            records.push(ResultRecord { set: self.set.clone(), ..record });
            scored.push(evaluation);
        }
        // Last, because it takes longest: texts that cannot be scored are refused before.
        if perplexities.is_empty() && chosen.paper.contains(&Metric::Ppl) {
            perplexities = self.models.perplexities()?;
        }
        for (record, perplexity) in records.iter_mut().zip(perplexities) {
            record.metrics.ppl = Some(perplexity);
        }
        records.iter_mut().for_each(|record| keep(record, &chosen));
        Ok((records, reader.split_into_words()))
    }

    /// The references' own values, and those of one half of them against the other.
    fn human(
        &self,
        references: &Texts,
        settings: &Settings,
        further: &mut FurtherScorer<'_>,
    ) -> Result<HumanRecord, Failure> {
        let mut evaluation = score(references, None, settings)?;
        further.score_human(&mut evaluation, references)?;
        let record = HumanRecord::new(&evaluation, settings.bootstrap);
        Ok(HumanRecord { half: self.half(references, references, settings), ..record })
    }

    /// Half of the texts against the other half of the references, if each text has its reference
    /// and there are enough of them.
    fn half(&self, references: &Texts, texts: &Texts, settings: &Settings) -> Option<HalfRecord> {
        let count = references.ids.len();
        let halves = Halves::new(count, self.seed).filter(|_| texts.ids.len() == count)?;
        // A metric without a value here has none for all texts either, which was reported.
        let evaluation = halves.evaluate(&references.ids, &texts.ids, settings).ok()?;
        Some(HalfRecord::new(&evaluation, self.seed))
    }

    /// A name for each file: as given, or the file's own up to its first dot, or its whole path if
    /// that is not unique.
    fn model_names(&self) -> Result<Vec<String>, Failure> {
        let models = self.models.models.len();
        for (flag, given) in
            [("--names", self.names.len()), ("--ppl", self.ppl.len()), ("--models", models)]
        {
            if given != 0 && given != self.hyps.len() {
                let files = self.hyps.len();
                return Err(Failure::usage(format!("{flag} has {given} values for {files} files"))
                    .advise("give one for each file of `--hyps`, in the same order"));
            }
        }
        if !self.names.is_empty() {
            return Ok(self.names.clone());
        }
        let stem = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.split('.').next().unwrap_or_default().to_owned()
        };
        let stems: Vec<String> = self.hyps.iter().map(stem).collect();
        let unique = |name: &String| stems.iter().filter(|other| *other == name).count() == 1;
        let names = stems.iter().zip(&self.hyps).map(|(name, path)| {
            if unique(name) && !name.is_empty() { name.clone() } else { path.display().to_string() }
        });
        Ok(names.collect())
    }

    fn settings(&self, counts: Option<&RankedCounts>) -> Settings {
        let seed = self.seed;
        Settings {
            max_order: self.orders.into(),
            convention: self.convention,
            bands: counts.map(|counts| counts.bands.clone()),
            bootstrap: self.bootstrap.map(|n| Bootstrap { replicates: n as usize, seed }),
        }
    }
}

/// Scores the texts of a file, and reports why values are missing.
fn score(
    texts: &Texts,
    references: Option<&Texts>,
    settings: &Settings,
) -> Result<Evaluation, Failure> {
    let references = references.map(|references| references.ids.as_slice());
    let path = texts.path.display();
    let draws = settings.bootstrap.map(|bootstrap| bootstrap.replicates as u64);
    let progress = Progress::new(&format!("scoring {path}"), draws, Unit::Draws);
    let evaluation = evaluate_watched(references, &texts.ids, settings, &|| progress.advance(1))
        .map_err(|error| refusal(&texts.path, &error))?;
    drop(progress);
    for missing in &evaluation.undefined {
        remark!("note: {path}: {missing}");
    }
    Ok(evaluation)
}

fn refusal(path: &Path, error: &Error) -> Failure {
    let advice = match error {
        Error::NoTexts | Error::NoTokens(_) => "give a file with one text a line",
        Error::Unmatched { .. } => "give one reference for each text, in the same order",
        Error::TooManyTokens(_) => "score fewer texts, such as those of the paper's protocol",
        Error::IdOutsideCounts { .. } => "give the counts of the corpus these ids come from",
        _ => "give more or longer texts",
    };
    Failure::data(format!("{}: {error}", path.display())).advise(advice)
}
