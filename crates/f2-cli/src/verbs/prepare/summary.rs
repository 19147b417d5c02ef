//! The summary of a corpus: the dataset table, JSON, and remarks on what is unusual about it.

use f2_corpus::{Fractions, Inputs, Options, SplitSize, Summary, TokenizerChoice};
use f2_report::{Align, Table};

/// Reports what is unusual about a corpus.
pub(super) fn remark_on(summary: &Summary, options: &Options) {
    if let TokenizerChoice::Train { vocabulary_size } = options.tokenizer {
        remark_on_vocabulary(summary.vocabulary_size, vocabulary_size, summary.counts_divided_by);
    }
    if let Inputs::Spread { fractions, .. } = options.inputs
        && let Some(remark) = unequal_splits(summary, fractions)
    {
        remark!("note: {remark}");
    }
}

/// Reports a vocabulary that is smaller than was requested, or was learned from fewer counts.
pub(super) fn remark_on_vocabulary(learned: usize, asked: usize, counts_divided_by: u64) {
    if learned < asked {
        remark!(
            "note: learned {learned} of {asked} tokens: the text has no more pairs that occur twice"
        );
    }
    if counts_divided_by > 1 {
        remark!(
            "note: some pair of bytes occurs more than 2,147,483,647 times, the most that can be \
             counted: the vocabulary was learned from the counts of words divided by \
             {counts_divided_by}, without words that are rarer"
        );
    }
}

/// A remark on splits that hold far more or less of the text than was requested.
fn unequal_splits(summary: &Summary, fractions: Fractions) -> Option<String> {
    let total: u64 = summary.splits.iter().map(|size| size.bytes).sum();
    let asked = [fractions.train, fractions.valid, fractions.test];
    let found = |(size, asked): (&SplitSize, f64)| {
        let share = size.bytes as f64 / total as f64;
        let unequal = share < asked / UNEQUAL || share > asked * UNEQUAL;
        let percent = |share: f64| format!("{:.3}", 100.0 * share).parse().unwrap_or(0.0_f64);
        let (name, share, asked) = (size.split.name(), percent(share), percent(asked));
        (asked > 0.0 && unequal)
            .then(|| format!("{name} holds {share} % of the text where {asked} % were requested"))
    };
    let found: Vec<String> = summary.splits.iter().zip(asked).filter_map(found).collect();
    (!found.is_empty()).then(|| {
        format!(
            "{}: whole documents are spread, and some are long; `--documents` cuts smaller ones",
            found.join(", ")
        )
    })
}

/// A split this many times larger or smaller than requested is reported.
const UNEQUAL: f64 = 2.0;

/// The paper's dataset table.
pub(super) fn dataset_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        ("split", Align::Left),
        ("documents", Align::Right),
        ("words", Align::Right),
        ("tokens", Align::Right),
        ("bytes", Align::Right),
    ]);
    for size in &summary.splits {
        table.row([
            size.split.name().into(),
            grouped(size.documents).into(),
            grouped(size.words).into(),
            grouped(size.tokens).into(),
            grouped(size.bytes).into(),
        ]);
    }
    table
}

pub(super) fn to_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "vocabulary_size": summary.vocabulary_size,
        "counts_divided_by": summary.counts_divided_by,
        "splits": summary.splits,
    })
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}
