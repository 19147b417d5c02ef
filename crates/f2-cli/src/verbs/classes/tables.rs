//! The tables that `f2 classes` prints.

use f2_classes::{ClassSelection, Method, RankCounts, author_score};
use f2_report::{Align, Cell, Table, Terminal};

use super::source::CountsSource;

/// The most rows of the objective over K; of more, only those around the chosen K are shown.
const MOST_TRIALS: usize = 60;

/// The output without `--json`.
pub(super) fn page(
    counts: &RankCounts,
    selection: &ClassSelection,
    source: &CountsSource,
    terminal: Terminal,
) -> String {
    let (classes, trials) = (classes(selection, source), trials(selection));
    format!(
        "{}\n\n{}\n{}",
        summary(counts, selection),
        classes.to_terminal(terminal),
        trials.to_terminal(terminal)
    )
}

fn summary(counts: &RankCounts, selection: &ClassSelection) -> String {
    let (objective, between) = (selection.objective(), selection.class_efficiency());
    let choice = format!(
        "{}: K = {} for {} tokens",
        selection.method(),
        selection.classes().len(),
        counts.vocabulary(),
    );
    let cap = format!(
        "the paper's cap on K: {}, above which the most frequent token alone would be more than a \
         class's share",
        counts.class_cap(),
    );
    let within = objective - between;
    let terms = format!(
        "mean efficiency (Eq. 5, at most 2): {objective:.6} = U(C) {between:.6}, how evenly the \
         classes share the occurrences, + mean U(V) {within:.6}, how evenly the tokens of a class \
         do"
    );
    match selection.method() {
        Method::Author => {
            let score = author_score(counts, selection.classes());
            let reason = format!("authors' score: {score:.6}, by which their program chooses K");
            [choice, cap, terms, reason].join("\n")
        }
        _ => [choice, cap, terms].join("\n"),
    }
}

fn classes(selection: &ClassSelection, source: &CountsSource) -> Table {
    let numbers = ["class", "ranks", "tokens", "mass %", "efficiency"].map(|n| (n, Align::Right));
    let texts = ["first", "last"].map(|name| (name, Align::Left));
    let shown_texts = if source.knows_tokens() { &texts[..] } else { &[] };
    let mut table = Table::new(numbers.iter().chain(shown_texts).copied());
    for (class, summary) in selection.summaries().iter().enumerate() {
        let (first, last) = (summary.start, summary.end - 1);
        let mut row: Vec<Cell> = vec![
            (class + 1).to_string().into(),
            if first == last { first.to_string() } else { format!("{first}–{last}") }.into(),
            summary.tokens.to_string().into(),
            format!("{:.2}", 100.0 * summary.mass).into(),
            format!("{:.4}", summary.efficiency).into(),
        ];
        if source.knows_tokens() {
            row.extend([source.text(first).into(), source.text(last).into()]);
        }
        table.row(row);
    }
    table
}

fn trials(selection: &ClassSelection) -> Table {
    let (chosen, curve) = (selection.classes().len(), selection.curve());
    let place = curve.iter().position(|trial| trial.k == chosen).unwrap_or(0);
    let last_start = curve.len().saturating_sub(MOST_TRIALS);
    let start = place.saturating_sub(MOST_TRIALS / 2).min(last_start);
    let mut table = Table::new([("K", Align::Right), ("mean efficiency", Align::Right)]);
    for trial in curve.iter().skip(start).take(MOST_TRIALS) {
        let objective = format!("{:.6}", trial.objective);
        let strong = trial.k == chosen;
        table.row([trial.k.to_string().into(), Cell { strong, ..objective.into() }]);
    }
    table
}
