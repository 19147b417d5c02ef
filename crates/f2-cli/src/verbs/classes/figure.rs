//! The figure of `f2 classes --plot`.

use f2_classes::{ClassSelection, ClassesError, Method, RankCounts, select};
use f2_report::{Axis, BarChart, Direction, Figure, LineChart, Series};

/// The methods in the chart and their labels. Equal frequency cuts like greedy for every K, so one
/// line shows both.
const LINES: [(Method, &str); 4] = [
    (Method::Exact, "exact"),
    (Method::Author, "author"),
    (Method::Greedy, "greedy = equal-frequency"),
    (Method::EqualTokens, "equal-tokens"),
];

/// The mean efficiency over K for all methods, and the mass of each class that was chosen.
pub(super) fn draw(
    counts: &RankCounts,
    selection: &ClassSelection,
) -> Result<Figure, ClassesError> {
    let figure = Figure::new("Mean efficiency over the number of classes, and mass of each class");
    Ok(figure.line_chart(&objectives(counts, selection)?).bar_chart(&masses(selection)))
}

fn objectives(counts: &RankCounts, chosen: &ClassSelection) -> Result<LineChart, ClassesError> {
    let (k, objective) = (
        Axis::new("classes K").whole(),
        Axis::new("mean efficiency, spaced by its distance to 2").approaching(2.0),
    );
    let mut chart = LineChart::new("Mean efficiency over the number of classes", k, objective)
        .subtitle("Eq. 5 of the paper: 2 at the most. Stars mark the K chosen");
    for (method, name) in LINES {
        let all = select(counts, method, None)?;
        let points = all.curve().iter().map(|trial| (trial.k as f64, trial.objective));
        let starred = if is_shown_by(method, chosen.method()) { chosen } else { &all };
        let (k, objective) = (starred.classes().len(), starred.objective());
        let series = Series::new(name, points).star(k as f64, objective, format!("K = {k}"));
        chart = chart.series(if method == Method::EqualTokens { series.dashed() } else { series });
    }
    Ok(chart)
}

/// Whether the line `line` also shows `method`.
fn is_shown_by(line: Method, method: Method) -> bool {
    line == method || (line == Method::Greedy && method == Method::EqualFrequency)
}

fn masses(selection: &ClassSelection) -> BarChart {
    let k = selection.classes().len();
    let subtitle =
        format!("{}, K = {k}; class 1 holds the most frequent tokens", selection.method());
    BarChart::new("Mass of each class", Direction::Up, (1..=k).map(|class| class.to_string()))
        .subtitle(subtitle)
        .categories_axis("class")
        .values_axis(Axis::new("share of occurrences").unit("%"))
        .group("mass", selection.summaries().iter().map(|class| 100.0 * class.mass))
        .reference("equal shares", 100.0 / k as f64)
}
