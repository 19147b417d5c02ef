//! `f2 compare`: matches and a ranking from results.

use std::path::{Path, PathBuf};

use clap::Args;
use f2_metrics::Metric;
use f2_metrics::pairwise::{Match, Tally};
use f2_report::{Comparison, ComparisonError, ResultRecord};
use serde_json::error::Category;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::format::Format;
use crate::output;

const RULE: &str = "one point for each metric: lower PPL and KLD, higher MS-Jaccard-2; Self-BLEU-2, \
                    Distinct-3, Rep and Uniq closer to human; more points win the match";

/// Compare models pair by pair over the seven metrics, and rank them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  f2 eval --hyps mle.jsonl f2.jsonl --refs human.jsonl --ppl 24.7 25.6 --json > scores.json
  f2 compare scores.json
  f2 compare mle.json f2.json

A file holds one result of `f2 eval --json`, or an array of them. Results that name different sets
(`f2 eval --set`) are compared set by set and ranked over all. Perplexities are included if
`f2 eval --ppl` was given them, as numbers or files of `f2 perplexity --json`.")]
pub(crate) struct Compare {
    /// Results of `f2 eval --json`.
    #[arg(value_name = "RESULT.json", required = true)]
    results: Vec<PathBuf>,

    #[command(flatten)]
    format: Format,
}

impl Compare {
    pub(crate) fn run(self) -> Outcome {
        let mut records = Vec::new();
        for path in &self.results {
            records.extend(read(path)?);
        }
        if records.is_empty() {
            return Err(Failure::data("there are no results to compare")
                .advise("make them with `f2 eval --json`"));
        }
        let comparison = Comparison::new(&records).map_err(refusal)?;
        if self.format.json {
            return output::print(&format!("{:#}\n", to_json(&comparison)));
        }
        let tables = [comparison.pairwise_table(), comparison.ranking_table()];
        let explained = std::iter::once(RULE).chain(comparison.columns()).map(str::to_owned);
        let footnotes: Vec<String> = explained.chain(comparison.remarks()).collect();
        self.format.print(&tables, &footnotes)
    }
}

fn read(path: &Path) -> Result<Vec<ResultRecord>, Failure> {
    let fail = |reason: String| {
        Failure::data(format!("{}: {reason}", path.display()))
            .advise("make it with `f2 eval --json`")
    };
    ResultRecord::list(&f2_files::read_text(path)?).map_err(|error| match error.classify() {
        Category::Data => fail(format!("this is no result: {error}")),
        _ => fail(format!("broken JSON: {error}")),
    })
}

fn refusal(error: ComparisonError) -> Failure {
    let advice = match &error {
        ComparisonError::Alone(_) => "give the results of two models or more",
        ComparisonError::Twice { .. } => "name models with `f2 eval --names`, sets with `--set`",
        ComparisonError::NoHuman(_) => "score it again with `f2 eval --refs`",
        ComparisonError::Conventions { .. } => "score both with the same `f2 eval --convention`",
        ComparisonError::Humans { .. } => {
            "score both with the same `f2 eval --refs`, or name the sets with `--set`"
        }
    };
    Failure::data(error).advise(advice)
}

fn to_json(comparison: &Comparison) -> Value {
    let points = |outcome: &Match| json!([outcome.won(), outcome.lost()]);
    let matches = comparison.pairings.iter().map(|pairing| {
        let mut outcome = json!({
            "set": pairing.set,
            "winner": pairing.winner.name,
            "loser": pairing.loser.name,
            "points": points(&pairing.fitted),
            "points_by_bigrams": points(&pairing.bigram),
            "level": pairing.fitted.level().map(Metric::name).collect::<Vec<_>>(),
        });
        if let Some(metrics) = pairing.not_significant() {
            let names: Vec<&str> = metrics.into_iter().map(Metric::name).collect();
            outcome["not_significant"] = json!(names);
        }
        outcome
    });
    let tally =
        |tally: &Tally| json!({ "won": tally.won, "lost": tally.lost, "drawn": tally.drawn });
    let ranking = comparison.standings.iter().map(|standing| {
        json!({
            "place": standing.place,
            "name": standing.name,
            "matches": tally(&standing.fitted),
            "matches_by_bigrams": tally(&standing.bigram),
        })
    });
    json!({
        "matches": matches.collect::<Vec<_>>(),
        "ranking": ranking.collect::<Vec<_>>(),
        "remarks": comparison.remarks(),
    })
}
