//! The figure of frequency bands, and its numbers.

use f2_metrics::BandShares;

use super::palette::Palette;
use super::{Block, NamedFigure, Section};
use crate::metrics_table::band_table;
use crate::plot::{Axis, BarChart, Direction, Figure};
use crate::results::Results;

const BANDS: [&str; 4] = ["frequent", "medium", "rare", "very rare"];

/// The figure of frequency bands, and its numbers.
pub(super) fn section(results: &Results, palette: &Palette) -> Option<Section> {
    let records = &results.scores.first()?.records;
    let table = band_table(records)?;
    let percent = |bands: BandShares| bands.shares().map(|share| 100.0 * share);
    let mut chart = BarChart::new("Tokens by frequency band", Direction::Up, BANDS)
        .subtitle("Bands hold 40, 30, 20 and 10 % of the training text")
        .values_axis(Axis::new("share of tokens").unit("%"));
    let models = records.iter().map(|record| (record.name.as_str(), record.metrics.bands));
    let human = records.iter().find_map(|record| record.human.as_ref());
    for (name, bands) in models.chain(human.map(|human| ("Human", human.metrics.bands))) {
        if let Some(bands) = bands {
            chart = chart.group_in(palette.look(name), name, percent(bands));
        }
    }
    let figure = Figure::new("Tokens by frequency band").bar_chart(&chart);
    Some(Section {
        id: "bands",
        title: "Frequent and rare words".to_owned(),
        text: vec![
            "Maximum likelihood overuses frequent tokens and underuses rare ones. The paper \
             finds +34 % frequent and −40 % rare and very rare tokens for it on Wikitext-103, and \
             F²-Softmax within 6 % of human text."
                .to_owned(),
        ],
        blocks: vec![
            Block::Figures(vec![NamedFigure::new("bands", figure)]),
            Block::table(
                "bands",
                "Share of each band in percent, and (model − human) / human",
                table,
            ),
        ],
    })
}
