//! The partition of the vocabulary into frequency classes.

use std::ops::Range;
use std::path::Path;

use crate::{ClassSelection, ClassesError};

/// A partition of the frequency ranks into ranges: the classes of F²-Softmax, most frequent first.
///
/// ```
/// let classes = f2_classes::FrequencyClasses::new(vec![1, 4, 10])?;
/// assert_eq!(classes.len(), 3);
/// assert_eq!(classes.range(1), 1..4);
/// assert_eq!(classes.class_of(3), 1);
/// # Ok::<(), f2_classes::ClassesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyClasses {
    ends: Vec<usize>,
}

impl FrequencyClasses {
    /// Classes from their ends: the rank after the last one of each, finally the vocabulary's size.
    pub fn new(ends: Vec<usize>) -> Result<Self, ClassesError> {
        let increasing = ends.windows(2).all(|pair| pair[0] < pair[1]);
        match ends.first() {
            Some(&first) if first > 0 && increasing => Ok(Self { ends }),
            _ => Err(ClassesError::NotAPartition { ends }),
        }
    }

    /// Reads the classes of a `classes.json`; [`ClassSelection::load`] reads everything.
    pub fn load(path: &Path) -> Result<Self, ClassesError> {
        Ok(ClassSelection::load(path)?.into_classes())
    }

    /// The rank after the last one of each class.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// How many classes there are: the paper's K, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is always a class")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of tokens in all classes.
    pub fn vocabulary(&self) -> usize {
        self.ends[self.ends.len() - 1]
    }

    /// The class that holds a rank.
    ///
    /// # Panics
    /// If the rank is not below [`vocabulary`](Self::vocabulary).
    pub fn class_of(&self, rank: usize) -> usize {
        assert!(rank < self.vocabulary(), "rank {rank} of a vocabulary of {}", self.vocabulary());
        self.ends.partition_point(|&end| end <= rank)
    }

    /// The ranks of a class.
    ///
    /// # Panics
    /// If the class is not below [`len`](Self::len).
    pub fn range(&self, class: usize) -> Range<usize> {
        let start = if class == 0 { 0 } else { self.ends[class - 1] };
        start..self.ends[class]
    }

    /// The ranks of every class, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        (0..self.len()).map(|class| self.range(class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_lies_in_the_range_of_its_class() {
        let classes = FrequencyClasses::new(vec![1, 2, 5, 9]).unwrap();
        for rank in 0..classes.vocabulary() {
            assert!(classes.range(classes.class_of(rank)).contains(&rank), "{rank}");
        }
    }

    #[test]
    fn empty_classes_and_no_classes_are_refused() {
        for ends in [vec![], vec![0, 3], vec![2, 2, 3], vec![3, 2]] {
            assert!(FrequencyClasses::new(ends).is_err());
        }
    }
}
