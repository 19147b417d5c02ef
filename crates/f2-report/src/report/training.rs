//! Training: curves, cost and perplexity of every model.

use super::palette::{OTHERS, Palette};
use super::{Block, NamedFigure, Section};
use crate::plot::{Axis, Figure, LineChart, Series};
use crate::results::{Results, RunResult};
use crate::table::{Align, Table};

/// Loss curves and the cost of training.
pub(super) fn section(results: &Results, palette: &Palette) -> Option<Section> {
    if results.runs.is_empty() {
        return None;
    }
    let scratch: Vec<&RunResult> =
        results.runs.iter().filter(|run| run.starts_from().is_none()).collect();
    let figures = [
        chart("training", "Training loss", &scratch, palette, |run| &run.training),
        chart("validation", "Validation loss", &scratch, palette, |run| &run.validation),
    ];
    let tuned = results.runs.iter().filter_map(|run| fine_tuning(run, palette));
    let blocks = vec![
        Block::Figures(figures.into_iter().flatten().chain(tuned).collect()),
        Block::table("training", "The cost of each model", table(&results.runs)),
    ];
    Some(Section {
        id: "training",
        title: "Training".to_owned(),
        text: vec![
            "Loss in nats per token. A training loss is what the objective minimises: those of \
             unlikelihood and FACE are not comparable with the others. Validation loss is always \
             the likelihood of the whole posterior. FACE and UL-token+seq are fine-tuned: their \
             steps come after those of the model they start from, and have charts of their own."
                .to_owned(),
            "Steps, tokens, minutes and petaFLOP of a fine-tuned model are those of its fine-tuning \
             alone; minutes with start include the model it starts from. PPL is the perplexity of \
             the checkpoint that is used: the best one on the validation split, or the last one of \
             a fine-tuning."
                .to_owned(),
        ],
        blocks,
    })
}

/// A line chart of the losses of each run.
pub(super) fn chart(
    name: &str,
    title: &str,
    runs: &[&RunResult],
    palette: &Palette,
    losses: fn(&RunResult) -> &Vec<(u64, f64)>,
) -> Option<NamedFigure> {
    let mut chart = LineChart::new(title, Axis::new("step").whole(), loss_axis());
    for run in runs {
        chart =
            chart.series(Series::new(&run.name, points(losses(run))).look(palette.look(&run.name)));
    }
    let any = runs.iter().any(|run| !losses(run).is_empty());
    any.then(|| NamedFigure::new(name, Figure::new(title).line_chart(&chart)))
}

/// A separate chart for a fine-tuned run: its losses fluctuate so much that they would cover those
/// of the other runs.
fn fine_tuning(run: &RunResult, palette: &Palette) -> Option<NamedFigure> {
    let start = run.starts_from().filter(|_| !run.training.is_empty())?;
    let title = format!("{}, fine-tuned from {start}", run.name);
    let training = Series::new("training", points(&run.training)).look(palette.look(&run.name));
    let validation = Series::new("validation", points(&run.validation)).look(OTHERS[0]);
    let chart = LineChart::new(&title, Axis::new("step of fine-tuning").whole(), loss_axis())
        .series(training)
        .series(validation);
    let name = run.name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let figure = Figure::new(title).line_chart(&chart);
    Some(NamedFigure::new(format!("fine-tuning-{name}"), figure))
}

fn points(losses: &[(u64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    losses.iter().map(|&(step, loss)| (step as f64, loss))
}

fn loss_axis() -> Axis {
    Axis::new("loss").unit("nats")
}

/// A column of the table of runs: its heading, and a run's cell if it has one.
type RunColumn = (&'static str, fn(&RunResult, &[RunResult]) -> Option<String>);

const COLUMNS: [RunColumn; 10] = [
    ("fine-tuned from", |run, _| run.starts_from().map(str::to_owned)),
    ("parameters", |run, _| Some(format!("{:.2} M", run.parameters as f64 / 1e6))),
    ("steps", |run, _| Some(run.steps.to_string())),
    ("tokens", |run, _| Some(format!("{:.1} M", run.cost?.tokens as f64 / 1e6))),
    ("minutes", |run, _| Some(format!("{:.1}", run.seconds / 60.0))),
    ("minutes with start", |run, all| {
        let start = all.iter().find(|other| Some(other.name.as_str()) == run.starts_from())?;
        Some(format!("{:.1}", (run.seconds + start.seconds) / 60.0))
    }),
    ("tokens/s", |run, _| {
        let cost = run.cost.filter(|cost| cost.step_seconds > 0.0)?;
        Some(format!("{:.0}", cost.tokens as f64 / cost.step_seconds))
    }),
    ("petaFLOP", |run, _| Some(format!("{:.1}", run.cost?.operations / 1e15))),
    ("PPL, validation", |run, _| Some(format!("{:.1}", run.validation_perplexity?))),
    ("PPL, test", |run, _| Some(format!("{:.1}", run.perplexity?))),
];

/// The cost of each run, without columns that are empty for all runs.
pub(super) fn table(runs: &[RunResult]) -> Table {
    let shown: Vec<&RunColumn> = COLUMNS
        .iter()
        .filter(|(_, cell)| runs.iter().any(|run| cell(run, runs).is_some()))
        .collect();
    let headings = shown.iter().map(|(heading, _)| (*heading, Align::Right));
    let mut table = Table::new(
        [("model", Align::Left)].into_iter().chain(headings).chain([("device", Align::Left)]),
    );
    for run in runs {
        let cells = shown.iter().map(|(_, cell)| cell(run, runs).unwrap_or_else(|| "–".to_owned()));
        let cells = std::iter::once(run.name.clone()).chain(cells);
        table.row(cells.chain([run.device.clone()]).map(Into::into));
    }
    table
}
