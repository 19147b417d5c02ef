//! A warning about models that are too small to compare.

use crate::results::{Results, RunResult};

/// Below either of these, differences are due to chance rather than to the method: a model that has
/// seen so little text has hardly learned which words are frequent. The demo's models are just
/// above.
const FEWEST_PARAMETERS: usize = 1_000_000;
const FEWEST_TOKENS: u64 = 1_000_000;

/// A remark if a model is too small, or has seen too little text, for a comparison.
pub(super) fn remark(results: &Results) -> Option<String> {
    let smallest = results.runs.iter().filter(|run| is_too_small(run));
    let smallest = smallest.min_by_key(|run| (tokens(run), run.parameters))?;
    let amount = |number: f64| match number {
        _ if number < 1e5 => format!("{number:.0}"),
        _ => format!("{:.1} million", number / 1e6),
    };
    let seen = tokens(smallest).map_or_else(String::new, |tokens| {
        format!(" and was trained on {} tokens", amount(tokens as f64))
    });
    Some(format!(
        "These models are too small to compare: {} has {} parameters{seen}. It works, but the \
         differences between them say little about the methods; `f2 reproduce --preset small` shows \
         the effects.",
        smallest.name,
        amount(smallest.parameters as f64)
    ))
}

fn is_too_small(run: &RunResult) -> bool {
    let little_text = tokens(run).is_some_and(|tokens| tokens < FEWEST_TOKENS);
    run.parameters < FEWEST_PARAMETERS || (little_text && !is_fine_tuned(run))
}

/// Whether it was initialised from another run. A large model that was trained on little text is
/// assumed to be an imported one.
fn is_fine_tuned(run: &RunResult) -> bool {
    run.starts_from().is_some() || run.parameters > 20_000_000
}

/// The number of tokens it was trained on, if its settings are known.
fn tokens(run: &RunResult) -> Option<u64> {
    let setting = |key: &str| run.setting(key)?.parse::<u64>().ok();
    Some(
        run.steps.saturating_mul(setting("batch.size")?.saturating_mul(setting("batch.sequence")?)),
    )
}
