//! Parameters as the CPU holds them.

use std::ops::{Deref, DerefMut};

use super::memory::Buffer;
use super::product::{FEW_ROWS, Stream};
use super::threads::Threads;
use crate::{Error, Parameter};

/// All parameters, and where some are only read, copies in the order that a few rows read them in.
#[derive(Debug)]
pub struct Weights {
    values: Buffer,
    settled: Option<Settled>,
}

#[derive(Debug)]
struct Settled {
    /// All copies, one after the other: a large buffer lies on huge pages.
    elements: Buffer,
    /// Of what, by offset, and where each begins.
    matrices: Vec<(Parameter, usize)>,
}

impl Weights {
    pub(super) fn zeroed(len: usize) -> Result<Self, Error> {
        Ok(Self { values: Buffer::zeroed(len)?, settled: None })
    }

    /// Copies these matrices.
    pub(super) fn settle(
        &mut self,
        threads: &Threads,
        matrices: &[Parameter],
    ) -> Result<(), Error> {
        self.settled = None;
        let len = |matrix: &Parameter| Stream::len(matrix.rows, matrix.columns);
        let mut elements = Buffer::zeroed(matrices.iter().map(len).sum())?;
        let mut rest = &mut elements[..];
        let mut places = Vec::with_capacity(matrices.len());
        let mut start = 0;
        for matrix in matrices {
            let (to, after) = std::mem::take(&mut rest).split_at_mut(len(matrix));
            Stream::copy(threads, &self.values[matrix.range()], matrix.columns, to);
            places.push((*matrix, start));
            start += to.len();
            rest = after;
        }
        places.sort_by_key(|(matrix, _)| matrix.offset);
        self.settled = Some(Settled { elements, matrices: places });
        Ok(())
    }

    /// The copy of a matrix, or of the one it is a slice of, where so few rows are multiplied by it
    /// that one is worth reading.
    pub(super) fn stream(&self, rows: usize, matrix: Parameter) -> Option<Stream<'_>> {
        if rows > FEW_ROWS {
            return None;
        }
        let Settled { elements, matrices } = self.settled.as_ref()?;
        let after = matrices.partition_point(|(other, _)| other.offset <= matrix.offset);
        let (whole, start) = matrices[after.checked_sub(1)?];
        let before = matrix.offset - whole.offset;
        let holds = before + matrix.len() <= whole.len() && matrix.columns == whole.columns;
        let elements = &elements[start..start + Stream::len(whole.rows, whole.columns)];
        (holds && before.is_multiple_of(whole.columns))
            .then(|| Stream::new(elements, whole.columns, before / whole.columns))
    }
}

impl Deref for Weights {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values
    }
}

/// Whoever may change the parameters makes the copies stale.
impl DerefMut for Weights {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.settled = None;
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_drops_the_copies() {
        let threads = Threads::new(2).unwrap();
        let mut weights = Weights::zeroed(100).unwrap();
        let matrix = Parameter { offset: 10, rows: 20, columns: 4 };
        assert!(weights.stream(1, matrix).is_none());
        weights.settle(&threads, &[matrix]).unwrap();
        assert!(weights.stream(1, matrix).is_some());
        assert!(weights.stream(1, matrix.slice(7..20)).is_some());
        assert!(weights.stream(FEW_ROWS + 1, matrix).is_none());
        assert!(weights.stream(1, Parameter { rows: 21, ..matrix }).is_none());
        assert!(weights.stream(1, Parameter { offset: 9, ..matrix }).is_none());
        weights[0] = 1.0;
        assert!(weights.stream(1, matrix).is_none());
    }
}
