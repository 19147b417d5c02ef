//! Token counts in, frequency classes out.
//!
//! F²-Softmax predicts a frequency class first and a token of that class second. The partition of
//! the vocabulary into classes determines how balanced both predictions are: MefMax maximises the
//! *mean efficiency* (the normalised entropy of the classes, plus the mean normalised entropy
//! within them). [`select`] runs MefMax as printed in the paper, as implemented by its authors, or
//! as an exact optimisation, and the two simple rules it is compared with.
//!
//! Tokens are identified by their frequency rank: 0 is the most frequent, and a class is a range
//! of ranks.
//!
//! ```
//! use f2_classes::{Method, RankCounts, select};
//!
//! let counts = RankCounts::new(&[3, 10, 1, 9, 5, 2])?;
//! let selection = select(&counts, Method::Greedy, None)?;
//! assert_eq!(selection.classes().ends(), [1, 3, 6]);
//! assert_eq!(selection.classes().class_of(4), 2);
//! # Ok::<(), f2_classes::ClassesError>(())
//! ```

mod author;
mod classes;
mod counts;
mod efficiency;
mod equal;
mod error;
mod exact;
mod fingerprint;
mod greedy;
mod method;
mod objective;
mod prefix;
mod select;
mod selection;

pub use author::author_score;
pub use classes::FrequencyClasses;
pub use counts::{RankCounts, read_counts};
pub use efficiency::efficiency;
pub use error::ClassesError;
pub use fingerprint::CountsFingerprint;
pub use method::{MOST_CLASSES, Method};
pub use objective::mean_efficiency;
pub use select::select;
pub use selection::{ClassSelection, ClassSummary, Trial};
