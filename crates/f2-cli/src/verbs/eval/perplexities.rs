//! Perplexities to show with the scores: numbers, or output of `f2 perplexity --json`.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::verbs::perplexity::PerplexityReport;

/// The perplexity of a model, as given.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Number(f64),
    File(PathBuf),
}

/// Parses a flag's value: a number from 1 up, or else the name of a file.
pub(super) fn given(text: &str) -> Result<Given, String> {
    match text.parse() {
        Ok(number) if (1.0..f64::INFINITY).contains(&number) => Ok(Given::Number(number)),
        Ok(_) => Err("expected a number from 1 up, or a file of `f2 perplexity --json`".to_owned()),
        Err(_) => Ok(Given::File(text.into())),
    }
}

/// The perplexities of all models. Those that are not comparable are reported.
pub(super) fn read(all: &[Given]) -> Result<Vec<f64>, Failure> {
    let mut first: Option<(&PathBuf, PerplexityReport)> = None;
    let mut numbers = Vec::new();
    for given in all {
        let path = match given {
            Given::Number(number) => {
                numbers.push(*number);
                continue;
            }
            Given::File(path) => path,
        };
        let text = f2_files::read_text(path).map_err(|error| {
            Failure::from(error).advise("`--ppl` takes numbers and files of `f2 perplexity --json`")
        })?;
        let report = PerplexityReport::read(&text).map_err(|reason| {
            Failure::data(format!("{}: this is no perplexity: {reason}", path.display()))
                .advise("make it with `f2 perplexity MODEL CORPUS --json`")
        })?;
        numbers.push(report.token_perplexity);
        if let Some((other, before)) = &first
            && !report.is_like(before)
        {
            remark!(
                "note: {} and {} are perplexities of different texts or tokens, and not comparable",
                other.display(),
                path.display()
            );
        }
        first.get_or_insert((path, report));
    }
    Ok(numbers)
}
