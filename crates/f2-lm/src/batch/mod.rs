//! Which tokens a step sees: a pure function of the seed and the step, so that a resumed run
//! seeks at once.

mod permutation;
mod windows;

pub use permutation::Permutation;
pub use windows::{EvaluationWindows, TokenSource, TrainingWindows};
