//! The training loop: steps, evaluations and checkpoints until the run's limit.

mod initial;
mod plan;
mod reporter;
mod session;
mod settings;
mod source;
mod start;
mod text;
mod trainer;

pub use initial::InitialModel;
pub use plan::Plan;
pub use session::{Ending, Session};
pub use settings::{Base, GivenSettings, GivenValue};
pub use source::{Classes, Source};
pub use start::{NewRun, PreparedRun, ResumedRun};
pub use text::{Text, check_run, check_text};
pub use trainer::{StepReport, Trainer};
