//! The training loop: steps, evaluations and checkpoints until the run's limit.

mod corpus;
mod cost;
mod initial;
mod parallel;
mod reporter;
mod session;
mod settings;
mod splits;
mod start;
mod trainer;

pub use corpus::{Classes, TrainingCorpus};
pub use cost::RunCost;
pub use initial::InitialModel;
pub use parallel::{Ranks, Shards, settle_shards};
pub use session::{Ending, Session};
pub use settings::{Base, GivenSettings, GivenValue};
pub use splits::{Splits, check_run, check_splits};
pub use start::{NewRun, PreparedRun, ResumedRun};
pub use trainer::{StepReport, Trainer};
