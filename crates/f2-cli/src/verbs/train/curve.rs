//! The loss curve of a run, drawn from its log.

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{ReadError, write_text_atomically};
use f2_lm::run::{EVENTS, Event, read_events};
use f2_report::{Axis, LineChart, Series};

use crate::failure::Outcome;

/// The name of the curve in the run folder.
pub(super) const FILE: &str = "loss.svg";

/// Draws the curve next to the log. After an interruption the log can hold a step twice; the later
/// one counts.
pub(super) fn draw(run: &Path) -> Outcome {
    let log = run.join(EVENTS);
    let events = read_events(&log).map_err(ReadError::of(&log))?;
    let (mut training, mut validation) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::Step { step, loss, .. } => drop(training.insert(step, loss)),
            Event::Evaluated { step, loss, .. } => drop(validation.insert(step, loss)),
            _ => {}
        }
    }
    let points = |losses: BTreeMap<u64, f64>| {
        let finite = losses.into_iter().filter(|(_, loss)| loss.is_finite());
        finite.map(|(step, loss)| (step as f64, loss))
    };
    let mut chart =
        LineChart::new("Loss", Axis::new("step").whole(), Axis::new("loss").unit("nats"))
            .series(Series::new("training", points(training)));
    if !validation.is_empty() {
        chart = chart.series(Series::new("validation", points(validation)));
    }
    Ok(write_text_atomically(&run.join(FILE), &chart.to_svg())?)
}
