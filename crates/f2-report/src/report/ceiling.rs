//! The ceiling: how close human text is to other human text, and how much of the gap to it each
//! model closes.

use f2_metrics::{Measure, Metric};

use super::{Block, Section};
use crate::metrics_table::{Column, MetricTable};
use crate::record::{HalfRecord, HumanRecord, ResultRecord};
use crate::results::Results;
use crate::table::{Align, Table};

/// The row of human text.
const HUMAN: &str = "Human, other half";

/// The model from which the gap is measured.
const START: &str = "MLE";

/// Half of the texts of every model, and half of the references, against the other half of the
/// references.
pub(super) fn section(results: &Results) -> Option<Section> {
    let halves = Halves::new(results)?;
    let texts = halves.ceiling.texts;
    let columns = Column::of_metrics(&halves.models);
    let mut blocks = vec![Block::table(
        "ceiling",
        format!("{texts} texts of each model against {texts} references"),
        MetricTable::new(&halves.models).human_as(HUMAN).build(),
    )];
    blocks.extend(halves.shares(&columns).map(|table| {
        let caption = "Share of the way from MLE to human text, in percent";
        Block::table("way-to-human", caption, table)
    }));
    Some(Section {
        id: "ceiling",
        title: "The ceiling".to_owned(),
        text: vec![
            format!(
                "The references are cut in two at random (seed {}). One half, scored against the \
                 other as if a model had written it, is as close to human as text can be at this \
                 number of texts; no model need be better. The models are scored on as many \
                 texts: the continuations of the same half of the prefixes.",
                halves.ceiling.seed
            ),
            "The share of the way is (model − MLE) / (human − MLE) for each metric: 0 is maximum \
             likelihood, 100 is human text, and values above 100 are beyond it."
                .to_owned(),
        ],
        blocks,
    })
}

/// Scores of half of the texts.
struct Halves<'a> {
    /// The models; the human record of each is the ceiling.
    models: Vec<ResultRecord>,
    ceiling: &'a HalfRecord,
}

impl<'a> Halves<'a> {
    fn new(results: &'a Results) -> Option<Self> {
        let records = &results.scores.first()?.records;
        let human = records.iter().find_map(|record| record.human.as_ref())?;
        let ceiling = human.half.as_ref()?;
        let (texts, metrics) = (ceiling.texts, ceiling.metrics.clone());
        let human = HumanRecord { texts, metrics, ..HumanRecord::default() };
        let model = |record: &ResultRecord| {
            let half = record.half.as_ref().filter(|half| half.texts == ceiling.texts)?;
            Some(ResultRecord {
                name: record.name.clone(),
                convention: record.convention.clone(),
                texts,
                metrics: half.metrics.clone(),
                human: Some(human.clone()),
                ..ResultRecord::default()
            })
        };
        let models: Vec<ResultRecord> = records.iter().filter_map(model).collect();
        (!models.is_empty()).then_some(Self { models, ceiling })
    }

    /// The share of the gap between maximum likelihood and human text that a model closes; 1 is
    /// all.
    fn share(&self, model: &ResultRecord, measure: Measure) -> Option<f64> {
        let start = self.models.iter().find(|record| record.name == START)?;
        let (start, end) = (start.metrics.get(measure)?, self.ceiling.metrics.get(measure)?);
        let way = end - start;
        (way.abs() > f64::EPSILON).then(|| Some((model.metrics.get(measure)? - start) / way))?
    }

    fn shares(&self, columns: &[Column]) -> Option<Table> {
        let start = self.models.iter().find(|record| record.name == START)?;
        let others: Vec<&ResultRecord> =
            self.models.iter().filter(|record| record.name != start.name).collect();
        let headings = columns.iter().map(|column| (column.heading(), Align::Right));
        let name = ("model".to_owned(), Align::Left);
        let mut table = Table::new(std::iter::once(name).chain(headings));
        for record in &others {
            let cells = columns.iter().map(|column| {
                let share = self.share(record, column.0);
                share.map_or_else(|| "–".to_owned(), |share| format!("{:.0}", 100.0 * share))
            });
            table.row(std::iter::once(record.name.clone()).chain(cells).map(Into::into));
        }
        (!others.is_empty()).then_some(table)
    }
}

/// The share of the gap that F² closes, in a sentence.
pub(super) fn lead(results: &Results) -> Option<String> {
    let halves = Halves::new(results)?;
    let f2 = halves.models.iter().find(|record| record.name == "F²-Softmax")?;
    let share = |metric, order| halves.share(f2, Measure::Metric(metric, order));
    let (kld, ms_jaccard) = (share(Metric::Kld, 1)?, share(Metric::MsJaccard, 2)?);
    Some(format!(
        "On half of the texts F²-Softmax goes {:.0} % of the way from maximum likelihood to human \
         text in KLD, and {:.0} % in MS-Jaccard-2.",
        100.0 * kld,
        100.0 * ms_jaccard
    ))
}
