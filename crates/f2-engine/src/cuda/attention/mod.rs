//! Causal attention: on the tensor cores if heads have 64 columns of bf16, otherwise row by row.

mod cache;

use super::linear::ColumnSums;
use super::memory::Buffer;
use super::runtime::{Address, Grid, Kernel, kernels};
use super::{Cuda, Precision};
use crate::{Attention, AttentionHeads, Error, Sequences};
use cache::Cache;

pub(super) use cache::Spans;

/// The head width that the tensor core kernels support.
const TENSOR_WIDTH: usize = 64;
/// Queries per block of these kernels, and queries or keys per block in the backward pass.
const QUERIES: usize = 128;
const BACKWARD_ROWS: usize = 64;
/// Bytes of 64 rows of a head.
const TILE_BYTES: usize = 64 * TENSOR_WIDTH * 2;
/// Rows per block of the other kernels, one per warp.
const WARPS: usize = 4;

/// Positions, length and heads; scale; inputs; outputs.
type OnTensorCores = (usize, usize, usize, f32, Address, Address, Address);
type QueriesOnTensorCores =
    (usize, usize, usize, f32, Address, Address, Address, Address, Address, Address, Address);
type KeysOnTensorCores = (usize, usize, usize, f32, Address, Address, Address, Address, Address);
/// Positions, length, heads and their width; scale; inputs; output.
type BackwardRows = (usize, usize, usize, usize, f32, Address, Address, Address, Address, Address);

kernels! {
    ATTENTION_ANY: (usize, usize, usize, usize, f32, Address, Address, Address) = attention_any;
    ATTENTION_DELTAS: (usize, usize, usize, Address, Address, Address) = attention_deltas;
    ATTENTION_ANY_BACKWARD_QUERIES: BackwardRows = attention_any_backward_queries;
    ATTENTION_ANY_BACKWARD_KEYS: BackwardRows = attention_any_backward_keys;
    ATTENTION_64: OnTensorCores = attention_64;
    ATTENTION_64_HOPPER: OnTensorCores = attention_64_hopper;
    ATTENTION_64_BACKWARD_QUERIES: QueriesOnTensorCores = attention_64_backward_queries;
    ATTENTION_64_BACKWARD_QUERIES_HOPPER: QueriesOnTensorCores = attention_64_backward_queries_hopper;
    ATTENTION_64_BACKWARD_KEYS: KeysOnTensorCores = attention_64_backward_keys;
    ATTENTION_64_BACKWARD_KEYS_HOPPER: KeysOnTensorCores = attention_64_backward_keys_hopper;
    STORE_IN_CACHE: (usize, usize, usize, usize, Address, Address, Address, Address, Address) = store_in_cache;
    ATTEND_TO_CACHE: (usize, usize, usize, usize, f32, Address, Address, Address, Address, Address, Address) = attend_to_cache;
    COPY_SEQUENCES: (usize, usize, usize, Address, Address, Address) = copy_sequences;
}

impl<P: Precision> Attention for Cuda<P> {
    type Cache = Cache<P::Element>;

    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: AttentionHeads,
    ) -> Result<Cache<P::Element>, Error> {
        Cache::new(&self.stream, layers, sequences, capacity, heads)
    }

    fn attention(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Buffer<P::Element>,
        out: &mut Buffer<P::Element>,
        log_sums: &mut Buffer<f32>,
    ) {
        let Sequences { count, length } = sequences;
        let (positions, scale) = (sequences.positions(), scale(heads));
        let (qkv, out, log_sums) = (qkv.at(0), out.at(0), log_sums.at(0));
        if on_tensor_cores::<P>(heads) {
            let kernels = self.tensor_kernels();
            let (kernel, shared) = kernels.forward;
            let grid = Grid::blocks(count * heads.count, kernels.forward_threads)
                .by(length.div_ceil(QUERIES))
                .sharing(shared);
            let arguments = (positions, length, heads.count, scale, qkv, out, log_sums);
            // SAFETY: the operation's buffers have these sizes.
            unsafe { self.launch(kernel, grid, arguments) };
        } else {
            let arguments =
                (positions, length, heads.count, heads.width, scale, qkv, out, log_sums);
            // SAFETY: the operation's buffers have these sizes.
            unsafe { self.launch(ATTENTION_ANY, by_rows(positions, heads, 2), arguments) };
        }
    }

    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        qkv: &Buffer<P::Element>,
        out: &Buffer<P::Element>,
        log_sums: &Buffer<f32>,
        d_out: &Buffer<P::Element>,
        d_qkv: &mut Buffer<P::Element>,
    ) {
        let positions = sequences.positions();
        if on_tensor_cores::<P>(heads) {
            let from = Backward { qkv, out, log_sums, d_out };
            return self.backward_on_tensor_cores(sequences, heads, &from, d_qkv);
        }
        let bytes = positions * heads.count * size_of::<f32>();
        let Some(deltas) = self.scratch(bytes) else { return };
        let AttentionHeads { count, width } = heads;
        let (out, d_out) = (out.at(0), d_out.at(0));
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                ATTENTION_DELTAS,
                by_rows(positions, heads, 0),
                (positions, count, width, out, d_out, deltas),
            );
        }
        let rows_of_floats =
            [(ATTENTION_ANY_BACKWARD_QUERIES, 3), (ATTENTION_ANY_BACKWARD_KEYS, 4)];
        for (kernel, rows) in rows_of_floats {
            // SAFETY: the operation's buffers have these sizes.
            unsafe {
                self.launch(
                    kernel,
                    by_rows(positions, heads, rows),
                    (
                        positions,
                        sequences.length,
                        count,
                        width,
                        scale(heads),
                        qkv.at(0),
                        log_sums.at(0),
                        deltas,
                        d_out,
                        d_qkv.at(0),
                    ),
                );
            }
        }
    }

    fn attention_cached(
        &self,
        layer: usize,
        spans: &Spans,
        qkv: &Buffer<P::Element>,
        cache: &mut Cache<P::Element>,
        out: &mut Buffer<P::Element>,
    ) {
        let (rows, heads, capacity) = (spans.rows(), cache.heads, cache.capacity);
        let AttentionHeads { count, width } = heads;
        let (sequences, places) = (spans.sequences(), spans.places());
        let (keys, values) = (cache.start(layer, 0), cache.start(layer, 1));
        let qkv = qkv.at(0);
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                STORE_IN_CACHE,
                Grid::blocks(rows, 128),
                (rows, count, width, capacity, sequences, places, qkv, keys, values),
            );
        }
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                ATTEND_TO_CACHE,
                by_rows(rows, heads, 2),
                (
                    rows,
                    count,
                    width,
                    capacity,
                    scale(heads),
                    sequences,
                    places,
                    qkv,
                    keys,
                    values,
                    out.at(0),
                ),
            );
        }
    }

    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Cache<P::Element>) {
        assert!(parents.len() <= cache.sequences, "a cache of {} sequences", cache.sequences);
        cache.parents.write_all(parents);
        let AttentionHeads { count, width } = cache.heads;
        let (head_len, used) = (cache.capacity * width, length * width);
        let grid = |sequences: usize| Grid::blocks(sequences, 256).by(count);
        for index in 0..2 * cache.layers {
            let (place, copy) = (cache.start(index / 2, index % 2), cache.part.at(0));
            let (none, parents_at) = (0_u64, cache.parents.at(0));
            // SAFETY: the operation's buffers have these sizes.
            unsafe {
                self.launch(
                    COPY_SEQUENCES,
                    grid(cache.sequences),
                    (count, head_len, used, none, place, copy),
                );
            }
            // SAFETY: the operation's buffers have these sizes.
            unsafe {
                self.launch(
                    COPY_SEQUENCES,
                    grid(parents.len()),
                    (count, head_len, used, parents_at, copy, place),
                );
            }
        }
    }
}

/// The tensor core kernels, each with the dynamic shared memory of a block in bytes.
struct TensorKernels {
    forward: (Kernel<OnTensorCores>, usize),
    forward_threads: u32,
    queries: (Kernel<QueriesOnTensorCores>, usize),
    keys: (Kernel<KeysOnTensorCores>, usize),
}

/// For any GPU. Zero bytes: the kernel declares its shared memory statically.
const ANY: TensorKernels = TensorKernels {
    forward: (ATTENTION_64, 0),
    forward_threads: 128,
    queries: (ATTENTION_64_BACKWARD_QUERIES, 0),
    keys: (ATTENTION_64_BACKWARD_KEYS, 6 * TILE_BYTES),
};

/// For compute capability 9.0. A block has its own tiles, those of two or three steps, and for keys
/// the statistics of three steps.
const HOPPER: TensorKernels = TensorKernels {
    forward: (ATTENTION_64_HOPPER, 8 * TILE_BYTES),
    forward_threads: 256,
    queries: (ATTENTION_64_BACKWARD_QUERIES_HOPPER, 7 * TILE_BYTES),
    keys: (ATTENTION_64_BACKWARD_KEYS_HOPPER, 8 * TILE_BYTES + 3 * 2 * 64 * size_of::<f32>()),
};

/// The inputs of a backward pass.
struct Backward<'a, E> {
    qkv: &'a Buffer<E>,
    out: &'a Buffer<E>,
    log_sums: &'a Buffer<f32>,
    d_out: &'a Buffer<E>,
}

/// The factor by which scores are multiplied.
fn scale(heads: AttentionHeads) -> f32 {
    1.0 / (heads.width as f32).sqrt()
}

/// One warp per row and head, each with `shared` rows of floats in shared memory.
fn by_rows(rows: usize, heads: AttentionHeads, shared: usize) -> Grid {
    Grid::blocks(rows.div_ceil(WARPS), 32 * WARPS as u32)
        .by(heads.count)
        .sharing(WARPS * shared * heads.width * size_of::<f32>())
}

impl<P: Precision> Cuda<P> {
    /// The queries' kernel runs first: it writes the statistics that the keys' kernel reads.
    fn backward_on_tensor_cores(
        &self,
        sequences: Sequences,
        heads: AttentionHeads,
        from: &Backward<'_, P::Element>,
        d_qkv: &Buffer<P::Element>,
    ) {
        let Sequences { count, length } = sequences;
        let tiles = length.div_ceil(BACKWARD_ROWS);
        let grid = Grid::blocks(count * heads.count, 128).by(tiles);
        let (positions, scale) = (sequences.positions(), scale(heads));
        let (blocks, columns) = (count * tiles, 3 * heads.total_width());
        let floats = 2 * positions * heads.count;
        let bytes = (floats + blocks * columns) * size_of::<f32>();
        let Some(statistics) = self.scratch(bytes) else { return };
        let sums = statistics + (floats * size_of::<f32>()) as u64;
        let (qkv, out, d_out) = (from.qkv.at(0), from.out.at(0), from.d_out.at(0));
        let (log_sums, d_qkv) = (from.log_sums.at(0), d_qkv.at(0));
        let (TensorKernels { queries, keys, .. }, heads) = (self.tensor_kernels(), heads.count);
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                queries.0,
                grid.sharing(queries.1),
                (
                    positions, length, heads, scale, qkv, out, log_sums, d_out, statistics, d_qkv,
                    sums,
                ),
            );
        }
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                keys.0,
                grid.sharing(keys.1),
                (positions, length, heads, scale, qkv, d_out, statistics, d_qkv, sums),
            );
        }
        self.leave_sums(ColumnSums { of: d_qkv, rows: positions, columns, blocks, partial: sums });
    }

    fn tensor_kernels(&self) -> TensorKernels {
        if self.kernels.hopper { HOPPER } else { ANY }
    }
}

fn on_tensor_cores<P: Precision>(heads: AttentionHeads) -> bool {
    P::NAME == "bf16" && heads.width == TENSOR_WIDTH
}
