//! The tables and the figure of a search.

use f2_metrics::{DISTANCE_METRICS, Measure, Metrics};
use f2_report::{Align, Axis, Cell, LineChart, Series, Table};

use super::record::{Record, Trial};
use super::test::Test;
use crate::output;

/// How many settings off the frontier are drawn, the best first: more would hide each other.
const MOST_DRAWN: usize = 20;

/// The tables of the frontier and of the test.
pub(super) fn tables(record: &Record) -> String {
    let terminal = output::terminal();
    let mut shown = frontier(record).to_terminal(terminal);
    if let Some(test) = &record.test {
        let note = format!(
            "\nOn the test split, {} texts cut into halves; one half of the human texts against \
             the other:\n",
            test.texts
        );
        shown += &note;
        shown += &tested(test).to_terminal(terminal);
    }
    shown
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

fn frontier(record: &Record) -> Table {
    let right = |name: &'static str| (name, Align::Right);
    let mut table = Table::new([
        ("setting", Align::Left),
        right("distance"),
        right("to references"),
        right("among texts"),
    ]);
    let mut rows: Vec<usize> = record.frontier.clone();
    rows.extend((!record.trials.is_empty()).then_some(0));
    rows.extend(record.chosen);
    rows.sort_unstable();
    rows.dedup();
    rows.sort_by(|one, two| {
        let distance = |at: &usize| record.trials[*at].nearness.distance.unwrap_or(f64::INFINITY);
        distance(one).total_cmp(&distance(two))
    });
    for place in rows {
        let Trial { decoding, nearness, .. } = &record.trials[place];
        let name = match (record.chosen == Some(place), place) {
            (true, 0) => format!("{decoding} (untuned, chosen)"),
            (true, _) => format!("{decoding} (chosen)"),
            (false, 0) => format!("{decoding} (untuned)"),
            (false, _) => decoding.to_string(),
        };
        let cells = [
            name,
            number(nearness.distance),
            number(nearness.against_references),
            number(nearness.among_themselves),
        ];
        let strong = record.chosen == Some(place);
        table.row(cells.map(|text| if strong { Cell::strong(text) } else { text.into() }));
    }
    table
}

fn tested(test: &Test) -> Table {
    let all = Measure::of_metrics(&[&test.target]);
    let measures: Vec<Measure> = all
        .into_iter()
        .filter(|measure| matches!(measure, Measure::Metric(metric, _) if DISTANCE_METRICS.contains(metric)))
        .collect();
    let heading = |measure: &Measure| match measure {
        Measure::Metric(metric, order) if metric.has_orders() => {
            format!("{}{order}", metric.abbreviation())
        }
        Measure::Metric(metric, _) => metric.abbreviation().to_owned(),
        _ => String::new(),
    };
    let columns = [("decoding".to_owned(), Align::Left), ("distance".to_owned(), Align::Right)];
    let mut table = Table::new(
        columns.into_iter().chain(measures.iter().map(|measure| (heading(measure), Align::Right))),
    );
    let rows = [
        ("untuned", test.untuned.nearness.distance, &test.untuned.nearness.halves),
        ("tuned", test.tuned.nearness.distance, &test.tuned.nearness.halves),
        ("human", Some(0.0), &test.target),
    ];
    for (name, distance, values) in rows {
        let first = [name.to_owned(), number(distance)];
        let rest = measures.iter().map(|measure| printed(*measure, values));
        table.row(first.into_iter().chain(rest).map(Cell::from));
    }
    table
}

/// A value as the paper prints it.
fn printed(measure: Measure, values: &Metrics) -> String {
    let Measure::Metric(metric, _) = measure else { return String::new() };
    let (factor, decimals) = metric.printed();
    let shown = |value: f64| format!("{:.decimals$}", factor * value);
    values.get(measure).map_or_else(|| "–".to_owned(), shown)
}

/// The settings by their two distances.
pub(super) fn figure(record: &Record) -> LineChart {
    let axis = |words: &str| Axis::new(words).unit("spreads of human text").log();
    let chart = LineChart::new(
        "Decoding by its distance to human text",
        axis("KLD and MS-Jaccard, against the references"),
        axis("Self-BLEU, Distinct, Rep and Uniq"),
    )
    .subtitle("The lower left is closer. Stars: the choice, and untuned");
    let sides = |number: usize| record.trials[number].nearness.sides();
    let mut frontier =
        Series::new("frontier", record.frontier.iter().filter_map(|number| sides(*number)));
    if let (Some((x, y)), Some(chosen)) = (record.chosen.and_then(sides), record.chosen()) {
        frontier = frontier.star(x, y, format!("chosen: {}", chosen.decoding));
    }
    let mut others: Vec<usize> = (0..record.trials.len())
        .filter(|at| record.trials[*at].texts == record.conditions.texts)
        .filter(|at| !record.frontier.contains(at))
        .collect();
    others.sort_by(|one, two| {
        let distance = |at: usize| record.trials[at].nearness.distance.unwrap_or(f64::INFINITY);
        distance(*one).total_cmp(&distance(*two))
    });
    others.truncate(MOST_DRAWN);
    // With gaps between them: no line connects these points.
    let gap = (f64::NAN, f64::NAN);
    let points = others.into_iter().filter_map(sides).flat_map(|point| [point, gap]);
    let mut rest = Series::new("other settings", points);
    if let Some((x, y)) = record.trials.first().and_then(|trial| trial.nearness.sides()) {
        rest = rest.star(x, y, format!("untuned: {}", record.trials[0].decoding));
    }
    chart.series(frontier).series(rest)
}
