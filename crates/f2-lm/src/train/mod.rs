//! The training loop: steps, evaluations and checkpoints until the run's limit.

mod memory;
mod plan;
mod session;
mod source;
mod trainer;

pub use memory::available_memory;
pub use plan::Plan;
pub use session::{Ending, Session, Text, check_run, check_text};
pub use source::{Classes, Source};
pub use trainer::{StepReport, Trainer};
