//! The metrics beyond the paper's seven: their list, and a file for each.
//!
//! To add a metric, add its file with a line here, an entry of [`Further`] in
//! `list.rs`, and its statistic in `evaluate.rs`.

mod automaton;
mod coherence;
mod compression;
mod entropy;
mod evaluate;
mod list;
mod mattr;
mod mauve;
mod novelty;
mod rep_l;
mod rep_n;
mod self_repetition;
mod seq_rep;
mod statistic;
mod symmetric;
mod values;
mod vendi;
mod zipf;

pub use coherence::coherence;
pub use compression::compression_ratio;
pub use entropy::ngram_entropy;
pub use evaluate::{FurtherSettings, FurtherTexts};
pub use list::Further;
pub use mattr::{MATTR_WINDOW, mattr};
pub use mauve::{Features, Frontier, MauveSettings, frontier, mauve, mauve_counts};
pub use novelty::{NOVELTY_ORDERS, TrainingTokens, longest_match, novelty, training_matches};
pub use rep_l::{REP_WINDOWS, rep_l};
pub use rep_n::rep_n;
pub use self_repetition::{SELF_REPETITION_ORDER, self_repetition};
pub use seq_rep::{SEQ_REP_ORDER, seq_rep};
pub use values::FurtherMetrics;
pub use vendi::{VENDI_ORDERS, VENDI_TEXTS, vendi_score};
pub use zipf::{ZIPF_RANKS, zipf_coefficient};
