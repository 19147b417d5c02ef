//! `f2 classes`: from counts to frequency classes.

mod figure;
mod source;
mod tables;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use f2_classes::{ClassSelection, ClassSummary, ClassesError, Method, RankCounts, Trial, select};
use f2_experiment::ClassesTask;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{print, print_styled, terminal};
use source::CountsSource;

/// Cut the vocabulary into frequency classes.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  f2 classes corpus\n  f2 classes corpus --method exact --plot classes.svg\n  \
                  f2 classes --counts counts.json --k 19 --json"
)]
pub(crate) struct Classes {
    /// The folder that `f2 prepare` wrote.
    #[arg(required_unless_present = "counts", conflicts_with = "counts")]
    corpus: Option<PathBuf>,
    /// A JSON list of counts, in any order, instead of a corpus.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// How to cut: `greedy` is the paper's Algorithm 1, `author` the rule of its authors' program,
    /// `exact` the best mean efficiency; the other two fill classes evenly.
    #[arg(long, default_value_t = Method::Greedy, value_parser = method_parser())]
    method: Method,
    /// Number of classes; by default the method chooses (the equal ones use greedy's).
    #[arg(long)]
    k: Option<usize>,
    /// The count of tokens that were never seen.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1))]
    unseen: u64,
    /// The file to write the classes to, by default CORPUS/classes.json. Without a corpus nothing
    /// is written by default.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the mean efficiency over K for all methods, and the mass of each class.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

fn method_parser() -> impl clap::builder::TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name)).try_map(|name| name.parse::<Method>())
}

impl Classes {
    pub(crate) fn run(self) -> Outcome {
        let source = self.source()?;
        let (counts, selection) = self.cut(&source)?;
        if let Some(path) = &self.plot {
            let figure = figure::draw(&counts, &selection).map_err(failure)?;
            f2_files::write_text_atomically(path, &figure.to_svg())?;
            remark!("figure: {}", path.display());
        }
        if self.json {
            return print(&(json(&selection) + "\n"));
        }
        print_styled(&tables::page(&counts, &selection, &source, terminal()))
    }

    /// The arguments for a stage of `f2 reproduce`.
    pub(super) fn of_task(task: &ClassesTask<PathBuf>) -> Self {
        Self {
            corpus: Some(task.corpus.clone()),
            counts: None,
            method: task.method,
            k: task.k,
            unseen: 1,
            out: Some(task.out.clone()),
            plot: None,
            json: false,
        }
    }

    /// Cuts the classes and saves them.
    pub(super) fn save(&self) -> Outcome {
        self.cut(&self.source()?).map(drop)
    }

    fn cut(&self, source: &CountsSource) -> Result<(RankCounts, ClassSelection), Failure> {
        let counts = source.counts.clone().with_unseen(self.unseen).map_err(failure)?;
        let selection = select(&counts, self.method, self.k).map_err(failure)?;
        if let Some(path) = self.destination() {
            selection.save(&path).map_err(failure)?;
            remark!("classes: {}", path.display());
        }
        Ok((counts, selection))
    }

    fn source(&self) -> Result<CountsSource, Failure> {
        match (&self.corpus, &self.counts) {
            (Some(folder), _) => CountsSource::corpus(folder),
            (None, Some(file)) => CountsSource::file(file),
            (None, None) => Err(Failure::usage("neither a corpus nor counts were given")),
        }
    }

    fn destination(&self) -> Option<PathBuf> {
        let beside_the_corpus = || Some(self.corpus.as_ref()?.join(f2_corpus::names::CLASSES));
        self.out.clone().or_else(beside_the_corpus)
    }
}

/// Adds advice to an error.
fn failure(error: ClassesError) -> Failure {
    match error {
        ClassesError::Write(error) => error.into(),
        ClassesError::NoClasses => {
            Failure::usage(error).advise("leave `--k` out to let the method choose")
        }
        ClassesError::MoreClassesThanTokens { tokens, .. } => {
            Failure::usage(error).advise(format!("`--k` can be {tokens} at most here"))
        }
        ClassesError::Unreachable { .. } => {
            Failure::usage(error).advise("use `--unseen 1`, a smaller `--k` or another `--method`")
        }
        ClassesError::NotCounts { .. } | ClassesError::Json { .. } => {
            Failure::data(error).advise("`--counts` takes a file like [120, 7, 45]; for a corpus, give its folder: `f2 classes CORPUS`")
        }
        ClassesError::Read(error) => error.into(),
        _ => {
            Failure::data(error).advise("counts are whole numbers from 0 up, and not all of them 0")
        }
    }
}

/// The output of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    method: Method,
    k: usize,
    ends: &'a [usize],
    objective: f64,
    class_efficiency: f64,
    classes: &'a [ClassSummary],
    curve: &'a [Trial],
}

fn json(selection: &ClassSelection) -> String {
    let answer = Answer {
        method: selection.method(),
        k: selection.classes().len(),
        ends: selection.classes().ends(),
        objective: selection.objective(),
        class_efficiency: selection.class_efficiency(),
        classes: selection.summaries(),
        curve: selection.curve(),
    };
    serde_json::to_string(&answer).expect("numbers and names always have a JSON form")
}
