//! A column of a table of metrics: its heading, its cells, and how values are ranked.

use f2_metrics::{Better, Interval, Measure, Need};

use crate::record::{HumanRecord, ResultRecord};
use crate::table::Cell;

/// A column of a table of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column(pub(crate) Measure);

/// The headings of the bands; the last with the paper's abbreviation.
const BAND_HEADINGS: [&str; 4] = ["frequent", "medium", "rare", "very rare (VR)"];

impl Column {
    /// The metrics of some models: those that need a model or references if they are known, the
    /// others always.
    pub(crate) fn of_metrics(records: &[ResultRecord]) -> Vec<Self> {
        let metrics = || records.iter().map(|record| &record.metrics);
        let compared = metrics().any(|each| each.kld.is_some() || !each.ms_jaccard.is_empty());
        let scored = metrics().any(|each| each.ppl.is_some());
        let shown = |measure: &Measure| match measure {
            Measure::Metric(metric, _) => match metric.needs() {
                Some(Need::Likelihood) => scored,
                Some(Need::References) => compared,
                _ => true,
            },
            Measure::Band(_) | Measure::Further(..) => true,
        };
        let all = Measure::of_metrics(&metrics().collect::<Vec<_>>());
        all.into_iter().filter(shown).map(Self).collect()
    }

    /// The shares of the four bands, each with its relative difference to human.
    pub(crate) fn of_bands() -> Vec<Self> {
        Measure::BANDS.map(Self).to_vec()
    }

    /// The further metrics of some models, if any were requested.
    pub(crate) fn of_further(records: &[ResultRecord]) -> Vec<Self> {
        let metrics: Vec<_> = records.iter().map(|record| &record.metrics).collect();
        Measure::of_further(&metrics).into_iter().map(Self).collect()
    }

    pub(crate) fn heading(self) -> String {
        match self.0 {
            Measure::Metric(metric, order) if metric.has_orders() => {
                format!("{}{order}", metric.abbreviation())
            }
            Measure::Metric(metric, _) => metric.abbreviation().to_owned(),
            Measure::Band(band) => BAND_HEADINGS[band].to_owned(),
            Measure::Further(metric, order) => metric.heading(order),
        }
    }

    /// The direction of better values, in two or three words.
    pub(crate) fn aim(self) -> &'static str {
        match self.0.better() {
            Better::Lower => "lower is closer",
            Better::Higher => "higher is closer",
            Better::CloserToHuman => "closest to human",
        }
    }

    /// A number that is smaller the better a model's value is.
    pub(crate) fn badness(self, record: &ResultRecord, human: Option<&HumanRecord>) -> Option<f64> {
        let human = human.and_then(|human| human.metrics.get(self.0));
        self.0.badness(record.metrics.get(self.0), human)
    }

    /// A model's cell.
    pub(crate) fn of_model(self, record: &ResultRecord) -> Cell {
        let (value, interval) = (record.metrics.get(self.0), record.interval(self.0));
        let relative = self.relative(record);
        let note = relative.as_ref().map_or_else(String::new, |relative| format!(" ({relative}%)"));
        let numbers = self.numbers(value, interval).into_iter();
        let relative = relative.map(|relative| ("relative to human in %", relative));
        Cell::from(self.cell(value, interval) + &note).with_numbers(numbers.chain(relative))
    }

    /// The cell of human text.
    pub(crate) fn of_human(self, human: &HumanRecord) -> Cell {
        let (value, interval) = (human.metrics.get(self.0), human.interval(self.0));
        Cell::from(self.cell(value, interval)).with_numbers(self.numbers(value, interval))
    }

    /// A value and the ends of its interval, for machine-readable formats.
    pub(crate) fn numbers(
        self,
        value: Option<f64>,
        interval: Option<Interval>,
    ) -> Vec<(&'static str, String)> {
        let Some(value) = value else { return Vec::new() };
        let mut numbers = vec![("", self.number(value))];
        if let Some(Interval { low, high }) = interval {
            numbers.extend([("low", self.number(low)), ("high", self.number(high))]);
        }
        numbers
    }

    /// A value as the paper prints it, with half the width of its interval; if it is 0, with the
    /// upper end of the interval.
    pub(crate) fn cell(self, value: Option<f64>, interval: Option<Interval>) -> String {
        let Some(value) = value else { return "–".to_owned() };
        let spread = interval.map_or_else(String::new, |Interval { low, high }| {
            // At the lower end of its range, the true value can only be larger.
            if value == 0.0 && low == 0.0 && high > 0.0 {
                format!(" ≤{}", self.number(high))
            } else {
                format!(" ±{}", self.number((high - low) / 2.0))
            }
        });
        self.number(value) + &spread
    }

    /// A value, or a difference of values, as the paper prints it.
    pub(crate) fn number(self, value: f64) -> String {
        let (factor, decimals) = match self.0 {
            Measure::Metric(metric, _) => metric.printed(),
            Measure::Band(_) => (100.0, 1),
            Measure::Further(metric, _) => metric.printed(),
        };
        format!("{:.decimals$}", factor * value)
    }

    /// (model − human) / human of a band's share, in percent.
    fn relative(self, record: &ResultRecord) -> Option<String> {
        let Measure::Band(band) = self.0 else { return None };
        let relative = record.metrics.bands?.relative_to_human?[band]?;
        Some(format!("{:+.0}", 100.0 * relative))
    }
}
