//! Causal attention: on the tensor cores where heads have 64 columns of bf16, row by row elsewhere.

use super::column_sums::ColumnSums;
use super::launch::{Grid, arguments};
use super::memory::Buffer;
use super::{Cuda, Precision};
use crate::{Heads, Sequences};

/// Columns of a head the tensor cores' kernels are written for.
const TENSOR_WIDTH: usize = 64;
/// Queries, or keys, one of their blocks takes.
const QUERIES: usize = 128;
const BACKWARD_ROWS: usize = 64;
/// Bytes of 64 rows of a head.
const TILE_BYTES: usize = 64 * TENSOR_WIDTH * 2;
/// Rows a block of the other kernels takes, one to a warp.
const WARPS: usize = 4;

/// What a backward pass reads.
pub(super) struct Backward<'a, E> {
    pub(super) qkv: &'a Buffer<E>,
    pub(super) out: &'a Buffer<E>,
    pub(super) log_sums: &'a Buffer<f32>,
    pub(super) d_out: &'a Buffer<E>,
}

/// What scores are multiplied by.
pub(super) fn scale(heads: Heads) -> f32 {
    1.0 / (heads.width as f32).sqrt()
}

/// A warp for every row and head, with room for some rows of floats each.
pub(super) fn by_rows(rows: usize, heads: Heads, room: usize) -> Grid {
    Grid::blocks(rows.div_ceil(WARPS), 32 * WARPS as u32)
        .by(heads.count)
        .sharing(WARPS * room * heads.width * size_of::<f32>())
}

impl<P: Precision> Cuda<P> {
    pub(super) fn attend(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Buffer<P::Element>,
        out: &Buffer<P::Element>,
        log_sums: &Buffer<f32>,
    ) {
        let Sequences { count, length } = sequences;
        let (positions, scale) = (sequences.positions(), scale(heads));
        let (qkv, out, log_sums) = (qkv.at(0), out.at(0), log_sums.at(0));
        if on_tensor_cores::<P>(heads) {
            let grid = Grid::blocks(count * heads.count, 128).by(length.div_ceil(QUERIES));
            let arguments = arguments![positions, length, heads.count, scale, qkv, out, log_sums];
            self.launch("attention_64", grid, arguments);
        } else {
            let arguments =
                arguments![positions, length, heads.count, heads.width, scale, qkv, out, log_sums];
            self.launch("attention_any", by_rows(positions, heads, 2), arguments);
        }
    }

    pub(super) fn attend_backward(
        &self,
        sequences: Sequences,
        heads: Heads,
        from: &Backward<'_, P::Element>,
        d_qkv: &Buffer<P::Element>,
    ) {
        let positions = sequences.positions();
        if on_tensor_cores::<P>(heads) {
            return self.attend_backward_on_tensor_cores(sequences, heads, from, d_qkv);
        }
        let room = positions * heads.count * size_of::<f32>();
        let Some(deltas) = self.scratch(room) else { return };
        let Heads { count, width } = heads;
        let (out, d_out) = (from.out.at(0), from.d_out.at(0));
        self.launch(
            "attention_deltas",
            by_rows(positions, heads, 0),
            arguments![positions, count, width, out, d_out, deltas],
        );
        let rows_of_floats =
            [("attention_any_backward_queries", 3), ("attention_any_backward_keys", 4)];
        for (kernel, room) in rows_of_floats {
            self.launch(
                kernel,
                by_rows(positions, heads, room),
                arguments![
                    positions,
                    sequences.length,
                    count,
                    width,
                    scale(heads),
                    from.qkv.at(0),
                    from.log_sums.at(0),
                    deltas,
                    d_out,
                    d_qkv.at(0),
                ],
            );
        }
    }

    /// The queries' kernel goes first: it leaves what the keys' kernel reads.
    fn attend_backward_on_tensor_cores(
        &self,
        sequences: Sequences,
        heads: Heads,
        from: &Backward<'_, P::Element>,
        d_qkv: &Buffer<P::Element>,
    ) {
        let Sequences { count, length } = sequences;
        let tiles = length.div_ceil(BACKWARD_ROWS);
        let grid = Grid::blocks(count * heads.count, 128).by(tiles);
        let (positions, scale) = (sequences.positions(), scale(heads));
        let (blocks, columns) = (count * tiles, 3 * heads.total_width());
        let floats = positions * heads.count;
        let room = (floats + blocks * columns) * size_of::<f32>();
        let Some(deltas) = self.scratch(room) else { return };
        let sums = deltas + (floats * size_of::<f32>()) as u64;
        let (qkv, out, d_out) = (from.qkv.at(0), from.out.at(0), from.d_out.at(0));
        let (log_sums, d_qkv) = (from.log_sums.at(0), d_qkv.at(0));
        let (kernel, heads) = ("attention_64_backward_queries", heads.count);
        self.launch(
            kernel,
            grid,
            arguments![
                positions, length, heads, scale, qkv, out, log_sums, d_out, deltas, d_qkv, sums,
            ],
        );
        self.launch(
            "attention_64_backward_keys",
            grid.sharing(6 * TILE_BYTES),
            arguments![positions, length, heads, scale, qkv, log_sums, d_out, deltas, d_qkv, sums],
        );
        self.leave_sums(ColumnSums { of: d_qkv, rows: positions, columns, blocks, partial: sums });
    }
}

fn on_tensor_cores<P: Precision>(heads: Heads) -> bool {
    P::NAME == "bf16" && heads.width == TENSOR_WIDTH
}
