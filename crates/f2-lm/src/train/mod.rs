//! The training loop: steps, evaluations and checkpoints until the run's limit.

mod memory;
mod plan;
mod session;
mod trainer;

pub use memory::available_memory;
pub use plan::Plan;
pub use session::{Ending, Session, Text};
pub use trainer::{StepReport, Trainer};
