//! How close generated text is to human text: scores of lists of token ids.
//!
//! The seven metrics of *F²-Softmax* (Choi et al., EMNLP 2020), each exact, linear in the
//! number of tokens, and spread over all cores: perplexity, KL divergence of unigrams,
//! MS-Jaccard, Self-BLEU, Distinct, Repetition and Uniq. Also frequency bands, bootstrap
//! intervals and the pairwise comparison of models.
//!
//! A text is anything that gives a slice of `u32` token ids; a set of texts is a slice of those.
//! [`corpus_bleu`], [`chrf`] and [`rouge`] take strings, and compare each text with its own
//! reference. Every score is a fraction, a count or a number of nats, never a percentage.
//!
//! ```
//! use f2_metrics::{Convention, distinct, kl_divergence, self_bleu};
//!
//! let human = [vec![1, 2, 3, 4, 5, 6], vec![1, 2, 3, 7, 8, 9]];
//! let model = [vec![1, 2, 1, 2, 1, 2], vec![1, 2, 3, 4, 1, 2]];
//!
//! let [sb1, sb2] = self_bleu(&model, 2, Convention::Paper)?[..] else { unreachable!() };
//! assert!((sb1 - 2.0 / 3.0).abs() < 1e-12 && sb2 < sb1);
//! assert_eq!(distinct(&model, 1, Convention::Paper)?, [0.5]);
//! assert!(kl_divergence(&human, &model, Convention::Paper)? > 0.0);
//! # Ok::<(), f2_metrics::Error>(())
//! ```
//!
//! [`evaluate`] computes all of them at once, on one shared n-gram index, with bootstrap
//! intervals on request.

mod bands;
mod bleu;
mod bootstrap;
mod convention;
mod distinct;
mod error;
mod evaluate;
mod further;
mod halves;
mod human_scale;
mod intern;
mod kld;
mod matched;
mod measure;
mod metrics;
mod ms_jaccard;
mod ngrams;
pub mod pairwise;
mod perplexity;
mod random;
mod reference_bleu;
mod repetition;
mod self_bleu;
mod uniq;
mod wilson;

pub use bands::{BAND_NAMES, BandShares, Bands};
pub use bleu::{BleuParts, Smoothing};
pub use bootstrap::{Bootstrap, Interval};
pub use convention::Convention;
pub use distinct::distinct;
pub use error::Error;
pub use evaluate::{Evaluation, Settings, evaluate, evaluate_watched};
pub use further::*;
pub use halves::Halves;
pub use human_scale::{DISTANCE_METRICS, HumanScale, distance, distance_over};
pub use kld::kl_divergence;
pub use matched::{Rouge, chrf, corpus_bleu, rouge};
pub use measure::{Better, Measure, Need};
pub use metrics::{Metric, Metrics, Value};
pub use ms_jaccard::ms_jaccard;
pub use perplexity::perplexity;
pub use reference_bleu::{bleu, bleu_parts};
pub use repetition::{ends_in_loop, repetition};
pub use self_bleu::{self_bleu, self_bleu_parts};
pub use uniq::uniq;
pub use wilson::wilson;
