//! `f2 eval --pairs`: every text against the reference in the same line.

use std::path::Path;

use f2_metrics::{Rouge, chrf, corpus_bleu, rouge};
use f2_report::{Align, Table};
use serde::{Deserialize, Serialize};

use super::{Eval, refusal};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::texts::{is_json, line_of, lines};
use f2_corpus::open_text;

/// Texts with the prompts they were written for, if the file has them.
struct Written {
    texts: Vec<String>,
    prompts: Vec<Option<String>>,
    numbers: Vec<usize>,
}

#[derive(Deserialize)]
struct JsonLine {
    prompt: Option<String>,
    text: Option<String>,
}

/// The scores of one model, as `--json` prints them.
#[derive(Serialize)]
struct PairScores {
    name: String,
    texts: usize,
    bleu: f64,
    chrf: f64,
    /// chrF++.
    chrf_2: f64,
    #[serde(flatten)]
    rouge: Rouge,
}

impl Eval {
    /// Scores and prints.
    pub(super) fn run_pairs(&self) -> Outcome {
        let Some(path) = &self.refs else {
            return Err(Failure::usage("--pairs needs references")
                .advise("give them with `--refs FILE`, one for each text, in the same order"));
        };
        let references = read(path)?;
        let mut all = Vec::new();
        for (path, name) in self.hyps.iter().zip(self.model_names()?) {
            let written = read(path)?;
            check_prompts(path, &written, &references)?;
            let (theirs, ours) = (&references.texts, &written.texts);
            let refused = |error| refusal(path, &error);
            all.push(PairScores {
                name,
                texts: ours.len(),
                bleu: corpus_bleu(theirs, ours).map_err(refused)?,
                chrf: chrf(theirs, ours, 0).map_err(refused)?,
                chrf_2: chrf(theirs, ours, 2).map_err(refused)?,
                rouge: rouge(theirs, ours).map_err(refused)?,
            });
        }
        if self.format.json {
            let json = match &all[..] {
                [one] => serde_json::to_string_pretty(one),
                all => serde_json::to_string_pretty(all),
            };
            return output::print(&(json.expect("scores have a JSON form") + "\n"));
        }
        let notes = [
            "BLEU, chrF, chrF++: as sacreBLEU (13a, exp; 6 characters, β = 2; with 2 words), of the \
             whole set",
            "R-1, R-2, R-L: F-scores of ROUGE as rouge-score without stemming, means over texts",
        ];
        self.format.print(&[table(&all)], &notes.map(str::to_owned))
    }
}

fn table(all: &[PairScores]) -> Table {
    let names = ["texts", "BLEU", "chrF", "chrF++", "R-1", "R-2", "R-L"];
    let columns = names.map(|name| (name, Align::Right));
    let mut table = Table::new([("", Align::Left)].into_iter().chain(columns));
    for PairScores { name, texts, bleu, chrf, chrf_2, rouge } in all {
        let Rouge { rouge_1, rouge_2, rouge_l } = rouge;
        let scores = [bleu, chrf, chrf_2, rouge_1, rouge_2, rouge_l];
        let scores = scores.map(|score| format!("{:.2}", 100.0 * score).into());
        table.row([name.clone().into(), texts.to_string().into()].into_iter().chain(scores));
    }
    table
}

fn read(path: &Path) -> Result<Written, Failure> {
    let (numbers, lines) = lines(path, open_text(path)?)?;
    if !is_json(path) {
        let prompts = lines.iter().map(|_| None).collect();
        return Ok(Written { texts: lines, prompts, numbers });
    }
    let mut written = Written { texts: Vec::new(), prompts: Vec::new(), numbers: Vec::new() };
    for (number, line) in numbers.into_iter().zip(lines) {
        if line.trim().is_empty() {
            continue;
        }
        let bad = |reason: &str| {
            Failure::data(format!("{}: {reason}", line_of(path, number)))
                .advise("each line must be an object with `text`, as `f2 generate --out` writes it")
        };
        let JsonLine { prompt, text } = serde_json::from_str(&line)
            .map_err(|error| bad(&error.to_string().replace(" at line 1 column", " at column")))?;
        written.texts.push(text.ok_or_else(|| bad("there is no `text`"))?);
        written.prompts.push(prompt);
        written.numbers.push(number);
    }
    Ok(written)
}

/// Refuses a text whose reference has another prompt, if both have one.
fn check_prompts(path: &Path, written: &Written, references: &Written) -> Result<(), Failure> {
    let both = written.prompts.iter().zip(&references.prompts);
    let unlike = both
        .zip(&written.numbers)
        .find(|((ours, theirs), _)| ours.is_some() && theirs.is_some() && ours != theirs);
    match unlike {
        None => Ok(()),
        Some((_, number)) => {
            let place = line_of(path, *number);
            Err(Failure::data(format!("{place}: its prompt is not that of the reference there"))
                .advise(
                    "text i is compared with reference i: take the files of the same corpus and split, \
                     with one text for each prompt (`-n 1`)",
                ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_texts;

    #[test]
    fn changed_files_are_read_or_refused() {
        fuzz_texts("pairs", "pairs.jsonl", |path| {
            let Ok(written) = read(path) else { return };
            assert_eq!(written.texts.len(), written.prompts.len());
            assert_eq!(written.texts.len(), written.numbers.len());
        });
    }
}
