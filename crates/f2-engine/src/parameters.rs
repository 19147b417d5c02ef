//! One flat buffer holds all parameters; a parameter is a named range of it.
//!
//! Gradients and Adam's moments have buffers of the same layout, so the optimiser is one pass, the
//! global norm one reduction and a checkpoint a list of ranges.

use std::ops::Range;

/// Every parameter begins at a multiple of this many elements, one cache line of `f32`. The
/// padding stays zero: its gradients are zero, and weight decay does not change zeros.
const ALIGNMENT: usize = 16;

/// A matrix (or a vector, as one row) somewhere in the flat buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The offset of its first element in the flat buffer.
    pub offset: usize,
    /// Rows; 1 for a vector.
    pub rows: usize,
    /// Elements of a row, which are contiguous.
    pub columns: usize,
}

impl Parameter {
    /// The number of elements.
    pub fn len(self) -> usize {
        self.rows * self.columns
    }

    /// Whether it has no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The range of its elements in the flat buffer.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len()
    }

    /// A range of its rows, such as the token vectors of a class.
    #[must_use]
    pub fn slice(self, rows: Range<usize>) -> Self {
        debug_assert!(rows.end <= self.rows);
        Self { offset: self.offset + rows.start * self.columns, rows: rows.len(), ..self }
    }
}

/// A parameter with its name and shape in checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedParameter {
    /// The name in checkpoints.
    pub name: String,
    /// The shape in checkpoints: one or two dimensions.
    pub shape: Vec<usize>,
    /// Whether weight decay applies to it.
    pub decayed: bool,
    /// Its range of the flat buffer.
    pub parameter: Parameter,
}

/// The layout of the flat buffer: the offset and shape of every parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    parameters: Vec<NamedParameter>,
    len: usize,
}

impl Layout {
    /// An empty layout.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a vector `[columns]` or a matrix `[rows, columns]`.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], decayed: bool) -> Parameter {
        let (rows, columns) = match *shape {
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => panic!("a parameter is a vector or a matrix, not {shape:?}"),
        };
        let parameter = Parameter { offset: self.len, rows, columns };
        self.len += parameter.len().next_multiple_of(ALIGNMENT);
        let shape = shape.to_vec();
        self.parameters.push(NamedParameter { name: name.into(), shape, decayed, parameter });
        parameter
    }

    /// The length of the flat buffer, including padding.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no parameters.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// The number of learned values, without padding.
    pub fn count(&self) -> usize {
        self.parameters.iter().map(|named| named.parameter.len()).sum()
    }

    /// All parameters, in the order of the buffer.
    pub fn parameters(&self) -> &[NamedParameter] {
        &self.parameters
    }

    /// The ranges that weight decay applies to; adjacent ones are merged.
    pub fn decayed(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for named in self.parameters.iter().filter(|named| named.decayed) {
            let Range { start, end } = named.parameter.range();
            let end = end.next_multiple_of(ALIGNMENT);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_aligned_and_do_not_overlap() {
        let mut layout = Layout::new();
        let first = layout.add("first", &[3, 5], true);
        let second = layout.add("second", &[7], false);
        assert_eq!(first.range(), 0..15);
        assert_eq!(second.range(), 16..23);
        assert_eq!(layout.len(), 32);
        assert_eq!(layout.count(), 22);
    }

    #[test]
    fn decayed_neighbours_become_one_range() {
        let mut layout = Layout::new();
        layout.add("a", &[3, 5], true);
        layout.add("b", &[16], true);
        layout.add("c", &[4], false);
        layout.add("d", &[2, 2], true);
        assert_eq!(layout.decayed(), [0..32, 48..64]);
    }

    #[test]
    fn a_slice_is_a_range_of_rows() {
        let mut layout = Layout::new();
        layout.add("before", &[1], false);
        let matrix = layout.add("matrix", &[10, 3], true);
        assert_eq!(matrix.slice(2..5), Parameter { offset: 22, rows: 3, columns: 3 });
    }
}
