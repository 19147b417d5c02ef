use super::{Block, NamedFigure, Section};
use crate::plot::{Axis, Figure, LineChart, Series};
use crate::results::{Results, RunResult};
use crate::table::{Align, Table};

/// How the models learned, and what it cost.
pub(super) fn section(results: &Results) -> Option<Section> {
    if results.runs.is_empty() {
        return None;
    }
    let figures = [
        chart("training", "Training loss", &results.runs, |run| &run.training),
        chart("validation", "Validation loss", &results.runs, |run| &run.validation),
    ];
    Some(Section {
        id: "training",
        title: "Training".to_owned(),
        text: vec![
            "Loss in nats per token. A training loss is what the objective minimises: those of \
             unlikelihood and FACE are not comparable with the others. Validation loss is always \
             the likelihood of the whole posterior."
                .to_owned(),
        ],
        blocks: vec![
            Block::Figures(figures.into_iter().flatten().collect()),
            Block::table("training", "What was trained", table(&results.runs)),
        ],
    })
}

pub(super) fn chart(
    name: &str,
    title: &str,
    runs: &[RunResult],
    losses: fn(&RunResult) -> &Vec<(u64, f64)>,
) -> Option<NamedFigure> {
    let (step, loss) = (Axis::new("step").whole(), Axis::new("loss").unit("nats"));
    let mut chart = LineChart::new(title, step, loss);
    for run in runs {
        let points = losses(run).iter().map(|&(step, loss)| (step as f64, loss));
        chart = chart.series(Series::new(&run.name, points));
    }
    let any = runs.iter().any(|run| !losses(run).is_empty());
    any.then(|| NamedFigure::new(name, Figure::new(title).line_chart(&chart)))
}

pub(super) fn table(runs: &[RunResult]) -> Table {
    let mut table = Table::new([
        ("model", Align::Left),
        ("parameters", Align::Right),
        ("steps", Align::Right),
        ("minutes", Align::Right),
        ("PPL", Align::Right),
        ("device", Align::Left),
    ]);
    for run in runs {
        table.row([
            run.name.clone().into(),
            format!("{:.2} M", run.parameters as f64 / 1e6).into(),
            run.steps.to_string().into(),
            format!("{:.1}", run.seconds / 60.0).into(),
            run.perplexity.map_or_else(|| "–".into(), |ppl| format!("{ppl:.1}").into()),
            run.device.clone().into(),
        ]);
    }
    table
}
