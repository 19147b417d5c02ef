//! The training loop: steps, evaluations and checkpoints until the run's limit.

mod initial;
mod plan;
mod reporter;
mod session;
mod source;
mod text;
mod trainer;

pub use initial::InitialModel;
pub use plan::Plan;
pub use session::{Ending, Session};
pub use source::{Classes, Source};
pub use text::{Text, check_run, check_text};
pub use trainer::{StepReport, Trainer};
