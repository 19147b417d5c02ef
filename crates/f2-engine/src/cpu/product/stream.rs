//! A matrix copied into the order in which products of a few rows read it: one stretch of memory
//! from beginning to end, as fast as memory gives it. In place, every tile reads several rows side
//! by side, and half as fast.

use super::kernel::tile_rows;
use crate::cpu::threads::Threads;

/// Tiles one task copies.
const TASK: usize = 64;

/// Columns of a right operand, `[columns / tile, depth, tile]`.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Stream<'a> {
    /// From the tile on that holds the first column.
    pub(super) elements: &'a [f32],
    pub(super) depth: usize,
    /// Columns of that tile before the first.
    pub(super) skipped: usize,
}

impl<'a> Stream<'a> {
    /// Floats of a copy.
    pub(in crate::cpu) fn len(columns: usize, depth: usize) -> usize {
        columns.next_multiple_of(tile_rows()) * depth
    }

    /// What [`copy`](Self::copy) made, from column `first` on.
    pub(in crate::cpu) fn new(elements: &'a [f32], depth: usize, first: usize) -> Self {
        let skipped = first % tile_rows();
        Self { elements: &elements[(first - skipped) * depth..], depth, skipped }
    }

    pub(super) fn fits(&self, columns: usize) -> bool {
        Self::len(self.skipped + columns, self.depth) <= self.elements.len()
    }

    /// Copies columns that lie one after the other, `depth` elements each, into `to`, which is zero.
    pub(in crate::cpu) fn copy(threads: &Threads, columns: &[f32], depth: usize, to: &mut [f32]) {
        let tile = tile_rows();
        let part = TASK * tile * depth;
        threads.zip_chunks([(to, part)], |index, [to]| {
            let columns = columns[index * part..].chunks(tile * depth);
            for (columns, to) in columns.zip(to.chunks_mut(tile * depth)) {
                for (place, column) in columns.chunks(depth).enumerate() {
                    for (element, to) in column.iter().zip(to.chunks_mut(tile)) {
                        to[place] = *element;
                    }
                }
            }
        });
    }
}
