//! `f2 report`: the page for any results.

use std::path::{Path, PathBuf};

use clap::Args;
use f2_experiment::read_run;
use f2_files::{ReadError, read_text, regular_file};
use f2_lm::run::CONFIG;
use f2_report::results::{Decoding, LoadError, ScoreSet};
use f2_report::{Report, ResultRecord, Results};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::verbs::perplexity::PerplexityReport;

/// Make the report of an experiment, or of results you gathered, as one HTML page.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 report study
  f2 report my-results --title \"Three decoders\" --out page

DIR is a folder that `f2 reproduce` or `f2 demo` wrote. A folder without results.json may hold
results of `f2 eval --json` as .json files, and run folders of `f2 train`: they are shown
together.")]
pub(crate) struct MakeReport {
    /// The folder with the results.
    #[arg(value_name = "DIR")]
    results: PathBuf,
    /// Where to write report.html, tables/ and figures/ [default: DIR].
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The title of the report.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl MakeReport {
    pub(crate) fn run(self) -> Outcome {
        let file = self.results.join("results.json");
        let mut results = if file.exists() {
            Results::load(&file).map_err(|error| refusal(&error))?
        } else {
            gather(&self.results)?
        };
        if let Some(title) = &self.title {
            results.title.clone_from(title);
        }
        let report = Report::new(&results);
        let page = report.write(self.out.as_deref().unwrap_or(&self.results))?;
        let tables: Vec<&str> = report.tables().map(|table| table.name.as_str()).collect();
        let figures: Vec<&str> = report.figures().map(|figure| figure.name.as_str()).collect();
        output::print(&if self.json {
            format!(
                "{}\n",
                json!({ "report": page.display().to_string(), "tables": tables, "figures": figures })
            )
        } else {
            let (tables, figures) = (tables.len(), figures.len());
            format!("report: {}\ntables: {tables}, figures: {figures}\n", page.display())
        })
    }
}

fn refusal(error: &LoadError) -> Failure {
    let failure = Failure::data(error);
    match error {
        LoadError::Version { .. } => failure.advise(
            "start `f2 reproduce` again with the same --out: finished stages are not repeated",
        ),
        _ => failure.advise("name the folder that `f2 reproduce` or `f2 demo` wrote"),
    }
}

/// Collects the scores and runs that lie in a folder.
fn gather(folder: &Path) -> Result<Results, Failure> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(ReadError::of(folder))?;
    paths.sort();
    let mut results = Results::new(folder.file_name().unwrap_or_default().to_string_lossy());
    let mut records = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.join(CONFIG).is_file() {
            results.runs.push(read_run(&name, &path)?);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            let text = regular_file(&path).and_then(read_text).unwrap_or_default();
            match ResultRecord::list(&text) {
                Ok(found) => records.extend(found),
                // Perplexities are shown only with scores that include them.
                Err(_) if PerplexityReport::read(&text).is_ok() => {}
                Err(_) => remark!("note: {} holds no result and is left out", path.display()),
            }
        }
    }
    check_kind(&records)?;
    if !records.is_empty() {
        results.scores.push(ScoreSet::new(Decoding::Given, records));
    }
    if results.runs.is_empty() && results.scores.is_empty() {
        return Err(Failure::data(format!("{} holds no results", folder.display())).advise(
            "name a folder that `f2 reproduce` wrote, or one with results of `f2 eval --json` or \
             runs of `f2 train`",
        ));
    }
    Ok(results)
}

/// Refuses results that cannot share a table: scored by other definitions or on other sets.
fn check_kind(records: &[ResultRecord]) -> Outcome {
    let kind = |record: &ResultRecord| match &record.set {
        Some(set) => format!("by the {} convention on {set}", record.convention),
        None => format!("by the {} convention", record.convention),
    };
    let Some((first, rest)) = records.split_first() else { return Ok(()) };
    match rest.iter().find(|other| kind(other) != kind(first)) {
        None => Ok(()),
        Some(other) => {
            let (one, two) = (&first.name, &other.name);
            let (first, other) = (kind(first), kind(other));
            Err(Failure::data(format!("{one} was scored {first}, {two} {other}"))
                .advise("put the results of each kind into a folder of their own"))
        }
    }
}
