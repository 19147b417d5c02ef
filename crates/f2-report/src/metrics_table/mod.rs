//! The metrics of several models side by side.

mod column;

use f2_metrics::{Convention, Further, Measure, Metric};

use crate::record::{HumanRecord, ResultRecord};
use crate::table::{Align, Cell, Table};
pub(crate) use column::Column;

/// One line of definition for each metric.
pub fn definitions(convention: Convention) -> impl Iterator<Item = (&'static str, &'static str)> {
    Metric::ALL.into_iter().map(move |metric| (metric.name(), metric.definition(convention)))
}

/// One line of definition for each further metric that any of these models has.
pub fn further_definitions(records: &[ResultRecord]) -> Vec<(&'static str, String)> {
    let asked = |metric: &Further| {
        records.iter().any(|record| record.metrics.further.metrics().any(|each| each == *metric))
    };
    let metrics = Further::ALL.into_iter().filter(asked);
    metrics.map(|metric| (metric.name(), metric.definition())).collect()
}

/// The metrics of several models side by side, with a row for human text if it is known; then
/// tables of the frequency bands and of the further metrics, if there are any.
pub fn metric_tables(records: &[ResultRecord]) -> Vec<Table> {
    metric_tables_of(records, &Metric::ALL)
}

/// [`metric_tables`] with only some of the paper's metrics.
pub fn metric_tables_of(records: &[ResultRecord], metrics: &[Metric]) -> Vec<Table> {
    let mut columns = Column::of_metrics(records);
    columns.retain(|column| match column.0 {
        Measure::Metric(metric, _) => metrics.contains(&metric),
        _ => true,
    });
    let main = (!metrics.is_empty()).then(|| MetricTable::new(records).build_with(&columns));
    main.into_iter().chain(band_table(records)).chain(further_table(records)).collect()
}

/// The further metrics, if any were requested.
pub fn further_table(records: &[ResultRecord]) -> Option<Table> {
    let columns = Column::of_further(records);
    (!columns.is_empty()).then(|| MetricTable::new(records).build_with(&columns))
}

/// The shares of the frequency bands, if they are known.
pub fn band_table(records: &[ResultRecord]) -> Option<Table> {
    let known = records.iter().any(|record| record.metrics.bands.is_some());
    known.then(|| MetricTable::new(records).build_with(&Column::of_bands()))
}

/// The metrics of several models side by side, with a row for human text if it is known.
///
/// Of several models, the value closest to human is in bold: the lowest perplexity and KL
/// divergence, the highest MS-Jaccard, otherwise the smallest distance. Values are printed as in
/// the paper, multiplied by 100 except for PPL, KLD and Uniq.
#[derive(Clone, Copy, Debug)]
pub struct MetricTable<'a> {
    records: &'a [ResultRecord],
    paper: &'a [ResultRecord],
    headings: Option<&'a [&'a str]>,
    human: &'a str,
}

impl<'a> MetricTable<'a> {
    /// All metrics of these models.
    pub fn new(records: &'a [ResultRecord]) -> Self {
        Self { records, paper: &[], headings: None, human: "Human" }
    }

    /// Adds a quiet row below each model: the record in `paper` with the same name.
    #[must_use]
    pub fn beside(self, paper: &'a [ResultRecord]) -> Self {
        Self { paper, ..self }
    }

    /// Keeps the columns with these headings, such as `KLD` and `MSJ2`.
    #[must_use]
    pub fn only(self, headings: &'a [&'a str]) -> Self {
        Self { headings: Some(headings), ..self }
    }

    /// Sets the name of the row of human text.
    #[must_use]
    pub fn human_as(self, human: &'a str) -> Self {
        Self { human, ..self }
    }

    /// The table.
    pub fn build(self) -> Table {
        let mut columns = Column::of_metrics(self.records);
        if let Some(headings) = self.headings {
            columns.retain(|column| headings.contains(&column.heading().as_str()));
        }
        self.build_with(&columns)
    }

    fn build_with(self, columns: &[Column]) -> Table {
        let headings = columns.iter().map(|column| (column.heading(), Align::Right));
        let name = ("model".to_owned(), Align::Left);
        let mut table = Table::new(std::iter::once(name).chain(headings));
        let (ours, theirs) = (Group::new(self.records, columns), Group::new(self.paper, columns));
        for record in self.records {
            table.row(ours.row(record, &record.name));
            if let Some(paper) = self.paper.iter().find(|paper| paper.name == record.name) {
                table.quiet_row(theirs.row(paper, &in_the_paper(&record.name)));
            }
        }
        if let Some(human) = ours.human {
            table.row(human_row(human, columns, self.human));
        }
        if let Some(human) = theirs.human {
            table.quiet_row(human_row(human, columns, &in_the_paper(self.human)));
        }
        table
    }
}

fn in_the_paper(name: &str) -> String {
    format!("{name}, paper")
}

/// Models that are compared with each other, with the best value of each column.
struct Group<'a> {
    columns: &'a [Column],
    human: Option<&'a HumanRecord>,
    best: Vec<Option<f64>>,
}

impl<'a> Group<'a> {
    fn new(records: &'a [ResultRecord], columns: &'a [Column]) -> Self {
        let human = records.iter().find_map(|record| record.human.as_ref());
        let best = columns.iter().map(|column| best(*column, records, human)).collect();
        Self { columns, human, best }
    }

    fn row(&self, record: &ResultRecord, name: &str) -> impl Iterator<Item = Cell> {
        let cells = self.columns.iter().zip(&self.best).map(|(column, best)| Cell {
            strong: best.is_some() && column.badness(record, self.human) == *best,
            ..column.of_model(record)
        });
        std::iter::once(name.into()).chain(cells)
    }
}

fn human_row(human: &HumanRecord, columns: &[Column], name: &str) -> impl Iterator<Item = Cell> {
    let cells = columns.iter().map(|column| column.of_human(human));
    std::iter::once(name.into()).chain(cells)
}

/// The badness of the best of several models; `None` for a single model, which is not set in bold.
pub(crate) fn best(
    column: Column,
    records: &[ResultRecord],
    human: Option<&HumanRecord>,
) -> Option<f64> {
    let values = records.iter().filter_map(|record| column.badness(record, human));
    values.min_by(f64::total_cmp).filter(|_| records.len() > 1)
}

#[cfg(test)]
mod tests {
    use f2_metrics::Metrics;

    use super::*;

    fn metrics(kld: Option<f64>, bleu: f64, uniq: f64) -> Metrics {
        Metrics { kld, self_bleu: vec![Some(bleu)], uniq: Some(uniq), ..Metrics::default() }
    }

    fn model(name: &str, kld: f64, bleu: f64, uniq: f64) -> ResultRecord {
        ResultRecord {
            name: name.to_owned(),
            metrics: metrics(Some(kld), bleu, uniq),
            human: Some(HumanRecord {
                metrics: metrics(None, 0.952, 15_200.0),
                ..HumanRecord::default()
            }),
            ..ResultRecord::default()
        }
    }

    #[test]
    fn the_value_closest_to_human_stands_out() {
        let tables = metric_tables(&[
            model("MLE", 1.51, 0.934, 8_480.0),
            model("F²-Softmax", 0.62, 0.933, 15_700.0),
        ]);
        let lines = "\
| model | KLD | SB1 | Rep | Uniq |
| --- | --: | --: | --: | --: |
| MLE | 1.51 | **93.4** | – | 8480 |
| F²-Softmax | **0.62** | 93.3 | – | **15700** |
| Human | – | 95.2 | – | 15200 |
";
        assert_eq!(tables[0].to_markdown(), lines);
        assert_eq!(tables.len(), 1);
    }

    #[test]
    fn a_single_model_is_not_praised() {
        let table = &metric_tables(&[model("MLE", 1.51, 0.934, 8_480.0)])[0];
        assert!(!table.to_markdown().contains("**"));
    }

    #[test]
    fn the_paper_stands_beside_each_model_and_has_its_own_best() {
        let ours = [model("MLE", 2.0, 0.9, 10.0), model("F²-Softmax", 1.0, 0.9, 20.0)];
        let paper = crate::PaperSet::Wikitext103.top_k(3);
        let table = MetricTable::new(&ours).beside(&paper).only(&["KLD", "Uniq"]).build();
        let lines = "\
| model | KLD | Uniq |
| --- | --: | --: |
| MLE | 2.00 | 10 |
| MLE, paper | 1.51 | 8480 |
| F²-Softmax | **1.00** | **20** |
| F²-Softmax, paper | **0.62** | **15700** |
| Human | – | 15200 |
| Human, paper | – | 15200 |
";
        assert_eq!(table.to_markdown(), lines);
    }
}
