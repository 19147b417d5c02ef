//! The paper as a plan of stages.
//!
//! A [`Plan`] says what to reproduce: which models, ways of decoding and ablations, at which
//! size. [`stages`] turns it into [`Task`]s, each of which is also a command of `f2` that a user
//! could type. A [`Store`] keeps their results, under a [`Key`] made of all that decides them: the
//! task and the revision of its kind, the text, the device, and the keys of what it reads. So a
//! stage that is done is never done again, one that changed takes all that depend on it along, and
//! an experiment killed anywhere and started again ends in the same tables. [`collect`] gathers the
//! [`Results`](f2_report::Results) a report is made from.

mod collect;
mod corpora;
mod error;
mod estimate;
mod key;
mod perform;
mod plan;
mod stages;
mod store;
pub mod tune;

pub use collect::{collect, corpus, read_run};
pub use corpora::{Corpora, CorpusSource};
pub use error::Error;
pub use estimate::{Estimate, Speed, StepProbe, estimates, training_bytes};
pub use key::Key;
pub use perform::{Conductor, Moment, perform};
pub use plan::{Ablation, Evaluation, Generation, Plan, PlanPreset, Training, Transfer};
pub use stages::{
    ClassesTask, CorpusRole, DeviceFlags, GenerateTask, PaperPart, PerplexityTask, Place,
    PrepareTask, Purpose, ScoreTask, Stage, Stages, Subject, Task, TaskKind, TestTokens,
    TokenizerSource, TrainTask, stages,
};
pub use store::{Done, Store};
