//! The paper as a plan of stages.
//!
//! A [`Plan`] says what to reproduce: which models, ways of decoding and ablations, at which
//! size. [`stages`] turns it into commands of `f2`, each of which a user could type. A [`Store`]
//! keeps what they make, under a key made of all that decides it: the command, the text, and the
//! keys of what it reads. So a stage that is done is never done again, one that changed takes all
//! that depend on it along, and an experiment killed anywhere and started again ends in the same
//! tables. [`collect`] gathers the [`Results`](f2_report::Results) a report is made from.

mod collect;
mod error;
mod estimate;
mod key;
mod perform;
mod plan;
mod source;
mod stages;
mod store;

pub use collect::{collect, corpus, read_run};
pub use error::Error;
pub use estimate::{Estimate, estimates};
pub use key::Key;
pub use perform::{Conductor, Moment, perform};
pub use plan::{Ablation, Evaluation, Generation, Model, Plan, PlanPreset, Training, Transfer};
pub use source::{TextSource, Texts};
pub use stages::{CorpusRole, Part, Purpose, Stage, Stages, Subject, TestTokens, Word, stages};
pub use store::{Done, Store};
