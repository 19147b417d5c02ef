//! The frequency classes: the K that MefMax chose, and the uniformity of the classes.

use super::palette::OTHERS;
use super::{Block, NamedFigure, Section};
use crate::plot::{Axis, BarChart, Direction, Figure, LineChart, Series};
use crate::results::{ClassesResult, Results};
use crate::table::{Align, Table};

/// The frequency classes: the K that MefMax chose, and the uniformity of the classes.
pub(super) fn section(results: &Results) -> Option<Section> {
    let chosen = results.classes.first()?;
    let mut objectives = LineChart::new(
        "Mean efficiency over the number of classes",
        Axis::new("classes K").whole(),
        Axis::new("mean efficiency, spaced by its distance to 2").approaching(2.0),
    )
    .subtitle("Eq. 5 of the paper, 2 at the most; stars mark the K chosen");
    for (place, classes) in results.classes.iter().enumerate() {
        let points = classes.curve.iter().map(|&(k, objective)| (k as f64, objective));
        let k = classes.tokens.len();
        let series = Series::new(&classes.method, points).look(OTHERS[place % OTHERS.len()]);
        let chosen = format!("K = {k}");
        objectives = objectives.series(series.star(k as f64, classes.objective, chosen));
    }
    let k = chosen.tokens.len();
    let masses =
        BarChart::new("Mass of each class", Direction::Up, (1..=k).map(|class| class.to_string()))
            .subtitle(format!("{}, K = {k}; class 1 holds the most frequent tokens", chosen.method))
            .categories_axis("class")
            .values_axis(Axis::new("share of occurrences").unit("%"))
            .group_in(OTHERS[0], "mass", chosen.masses.iter().map(|mass| 100.0 * mass))
            .reference("equal shares", 100.0 / k as f64);
    let figures = vec![
        NamedFigure::new("class-masses", Figure::new("Mass of each class").bar_chart(&masses)),
        NamedFigure::new("mean-efficiency", Figure::new("Mean efficiency").line_chart(&objectives)),
    ];
    Some(Section {
        id: "classes",
        title: "Frequency classes".to_owned(),
        text: vec![
            "MefMax cuts the vocabulary, sorted by frequency, into classes of about equal mass \
             whose members are about equally frequent."
                .to_owned(),
        ],
        blocks: vec![
            Block::Figures(figures),
            Block::table("classes", "The classes of each method", table(&results.classes)),
        ],
    })
}

fn table(all: &[ClassesResult]) -> Table {
    let mut table = Table::new([
        ("method", Align::Left),
        ("K", Align::Right),
        ("mean efficiency", Align::Right),
        ("smallest", Align::Right),
        ("largest", Align::Right),
        ("mean U(V)", Align::Right),
    ]);
    for classes in all {
        let size = |size: Option<&usize>| size.map_or_else(String::new, usize::to_string);
        let mean = classes.efficiencies.iter().sum::<f64>() / classes.efficiencies.len() as f64;
        table.row([
            classes.method.clone().into(),
            classes.tokens.len().to_string().into(),
            format!("{:.4}", classes.objective).into(),
            size(classes.tokens.iter().min()).into(),
            size(classes.tokens.iter().max()).into(),
            format!("{mean:.4}").into(),
        ]);
    }
    table
}
