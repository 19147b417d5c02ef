//! The tokens of every training step: a pure function of the seed and the step, so that a resumed
//! run continues without replaying earlier steps.

mod documents;
#[cfg(test)]
pub(crate) mod documents_for_tests;
mod pairs;
mod permutation;
mod renamed;
mod training;

pub use documents::DocumentRows;
pub use pairs::{Pair, SeparatedTokens, Shortened};
pub use permutation::Permutation;
pub use renamed::RenamedTokens;
pub use training::{TokenSource, TrainingBatches, TrainingWindows};
