//! The paper as a plan of stages.
//!
//! A [`Plan`] specifies what to reproduce: the models, decodings and ablations, and their size.
//! [`stages`] turns it into [`Task`]s, each of which is also a command of `f2`. A [`Store`] keeps
//! their results under a [`Key`] that covers everything they depend on: the task and the revision
//! of its kind, the text, the device, and the keys of the stages it reads. A completed stage is
//! therefore never repeated, a change invalidates all stages that depend on it, and an experiment
//! that is killed at any point and started again produces the same tables. [`collect`] collects the
//! [`Results`](f2_report::Results) for a report.

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
