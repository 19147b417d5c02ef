use crate::record::{BandShares, HumanRecord, IntervalRecord, ResultRecord};

/// What a column takes from a record, if it is there.
type Of<Record, Value> = Box<dyn Fn(&Record) -> Option<Value>>;

/// A column: what it shows of a model and of human text, and what makes a value good.
pub(crate) struct Column {
    pub(crate) heading: String,
    /// How a value is written; the second number is half the width of its interval.
    show: fn(f64, Option<f64>) -> String,
    better: Better,
    pub(crate) of_model: Of<ResultRecord, f64>,
    pub(crate) of_human: Of<HumanRecord, f64>,
    interval: Of<IntervalRecord, [f64; 2]>,
    /// Written after a model's value.
    pub(crate) note: Of<ResultRecord, String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
    CloserToHuman,
}

impl Column {
    fn new(
        heading: impl Into<String>,
        show: fn(f64, Option<f64>) -> String,
        better: Better,
    ) -> Self {
        Self {
            heading: heading.into(),
            show,
            better,
            of_model: Box::new(|_| None),
            of_human: Box::new(|_| None),
            interval: Box::new(|_| None),
            note: Box::new(|_| None),
        }
    }

    /// What is good, in two or three words.
    pub(crate) fn aim(&self) -> &'static str {
        match self.better {
            Better::Lower => "lower is closer",
            Better::Higher => "higher is closer",
            Better::CloserToHuman => "closest to human",
        }
    }

    /// A number that is smaller the better a model's value is.
    pub(crate) fn badness(
        &self,
        record: &ResultRecord,
        human: Option<&HumanRecord>,
    ) -> Option<f64> {
        let value = (self.of_model)(record)?;
        Some(match self.better {
            Better::Lower => value,
            Better::Higher => -value,
            Better::CloserToHuman => (value - (self.of_human)(human?)?).abs(),
        })
    }

    pub(crate) fn cell(&self, value: Option<f64>, intervals: Option<&IntervalRecord>) -> String {
        let interval = intervals.and_then(|intervals| (self.interval)(intervals));
        let half = interval.map(|[low, high]| (high - low) / 2.0);
        value.map_or_else(|| "–".to_owned(), |value| (self.show)(value, half))
    }
}

/// PPL and KLD where they are known, MS-Jaccard, Self-BLEU and Distinct by order, Rep and Uniq.
pub(crate) fn metric_columns(records: &[ResultRecord]) -> Vec<Column> {
    let mut columns = Vec::new();
    if records.iter().any(|record| record.ppl.is_some()) {
        columns.push(Column {
            of_model: Box::new(|record| record.ppl),
            ..Column::new("PPL", one_digit, Better::Lower)
        });
    }
    let compared = records.iter().any(|record| !record.ms_jaccard.is_empty());
    if compared || records.iter().any(|record| record.kld.is_some()) {
        columns.push(Column {
            of_model: Box::new(|record| record.kld),
            interval: Box::new(|intervals| intervals.kld),
            ..Column::new("KLD", two_digits, Better::Lower)
        });
    }
    columns.extend(ordered_columns(records));
    columns.push(Column {
        of_model: Box::new(|record| record.rep),
        of_human: Box::new(|human| human.rep),
        interval: Box::new(|intervals| intervals.rep),
        ..Column::new("Rep", two_digit_percent, Better::CloserToHuman)
    });
    columns.push(Column {
        of_model: Box::new(|record| record.uniq.map(|uniq| uniq as f64)),
        of_human: Box::new(|human| human.uniq.map(|uniq| uniq as f64)),
        interval: Box::new(|intervals| intervals.uniq),
        ..Column::new("Uniq", whole, Better::CloserToHuman)
    });
    columns
}

/// MS-Jaccard, Self-BLEU and Distinct, order by order.
fn ordered_columns(records: &[ResultRecord]) -> Vec<Column> {
    let orders = |list: fn(&ResultRecord) -> &Vec<Option<f64>>| {
        0..records.iter().map(|record| list(record).len()).max().unwrap_or(0)
    };
    let at = |list: &[Option<f64>], n: usize| list.get(n).copied().flatten();
    let interval = |list: &[Option<[f64; 2]>], n: usize| list.get(n).copied().flatten();
    let jaccard = orders(|record| &record.ms_jaccard).map(|n| Column {
        of_model: Box::new(move |record| at(&record.ms_jaccard, n)),
        interval: Box::new(move |intervals| interval(&intervals.ms_jaccard, n)),
        ..Column::new(format!("MSJ{}", n + 1), percent, Better::Higher)
    });
    let bleu = orders(|record| &record.self_bleu).map(|n| Column {
        of_model: Box::new(move |record| at(&record.self_bleu, n)),
        of_human: Box::new(move |human| at(&human.self_bleu, n)),
        interval: Box::new(move |intervals| interval(&intervals.self_bleu, n)),
        ..Column::new(format!("SB{}", n + 1), percent, Better::CloserToHuman)
    });
    let distinct = orders(|record| &record.distinct).map(|n| Column {
        of_model: Box::new(move |record| at(&record.distinct, n)),
        of_human: Box::new(move |human| at(&human.distinct, n)),
        interval: Box::new(move |intervals| interval(&intervals.distinct, n)),
        ..Column::new(format!("D{}", n + 1), percent, Better::CloserToHuman)
    });
    jaccard.chain(bleu).chain(distinct).collect()
}

/// The heading of the last band, by the paper's abbreviation too.
pub(crate) const VERY_RARE: &str = "very rare (VR)";

/// Shares of the four bands, each with its difference to human.
pub(crate) fn band_columns() -> Vec<Column> {
    let share = |bands: Option<BandShares>, band: usize| bands.map(|bands| bands.shares()[band]);
    let relative = |record: &ResultRecord, band: usize| record.bands?.relative_to_human?[band];
    let column = |band: usize, heading: &str, name: &'static str| Column {
        of_model: Box::new(move |record| share(record.bands, band)),
        of_human: Box::new(move |human| share(human.bands, band)),
        interval: Box::new(move |intervals| intervals.bands.get(name).copied()),
        note: Box::new(move |record| Some(format!(" ({:+.0}%)", 100.0 * relative(record, band)?))),
        ..Column::new(heading, percent, Better::CloserToHuman)
    };
    let headings = ["frequent", "medium", "rare", VERY_RARE];
    (0..4)
        .zip(headings.into_iter().zip(f2_metrics::BAND_NAMES))
        .map(|(band, (heading, name))| column(band, heading, name))
        .collect()
}

fn percent(value: f64, half: Option<f64>) -> String {
    one_digit(100.0 * value, half.map(|half| 100.0 * half))
}

fn two_digit_percent(value: f64, half: Option<f64>) -> String {
    two_digits(100.0 * value, half.map(|half| 100.0 * half))
}

fn one_digit(value: f64, half: Option<f64>) -> String {
    format!("{value:.1}") + &half.map_or_else(String::new, |half| format!(" ±{half:.1}"))
}

fn two_digits(value: f64, half: Option<f64>) -> String {
    format!("{value:.2}") + &half.map_or_else(String::new, |half| format!(" ±{half:.2}"))
}

fn whole(value: f64, half: Option<f64>) -> String {
    format!("{value:.0}") + &half.map_or_else(String::new, |half| format!(" ±{half:.0}"))
}
