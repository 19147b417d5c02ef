//! The softmax over the classes of an F² head, for every position.

use super::row::RowTarget;
use super::targets::Targets;
use crate::cpu::product::{Matrix, Products, Write};
use crate::cpu::threads::Threads;
use crate::{Classes, IGNORED};

/// Rows processed by one task.
const BLOCK: usize = 64;

/// `hidden · Uᵀ` for all positions, into the workspace.
pub(super) fn logits(
    products: Products<'_>,
    classes: &Classes,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
) {
    let (count, width) = (classes.vectors.rows, classes.vectors.columns);
    let matrix = Matrix::rows(&weights[classes.vectors.range()], width).transposed();
    let dims = [targets.ids.len(), count, width];
    let logits = &mut targets.workspace.class_logits;
    let hidden = Matrix::rows(hidden, width);
    products.product(dims, hidden, matrix, logits, Write::Overwrite);
}

/// Calls `row` with every position's target class and class logits, and stores the loss it returns.
/// An ignored position has no target column.
pub(super) fn each_row(
    threads: &Threads,
    classes: &Classes,
    targets: &mut Targets,
    losses: &mut [f32],
    row: impl Fn(RowTarget<'_>, &mut [f32]) -> f32 + Sync,
) {
    let count = classes.count();
    let (ids, weights) = (&targets.ids, &targets.weights);
    let logits = &mut targets.workspace.class_logits[..ids.len() * count];
    threads.zip_chunks([(logits, BLOCK * count), (losses, BLOCK)], |index, [logits, losses]| {
        let rows = logits.chunks_mut(count).zip(losses);
        for (position, (logits, loss)) in (index * BLOCK..).zip(rows) {
            let id = ids[position];
            let target = RowTarget {
                column: (id != IGNORED).then(|| classes.class_of(id)),
                weight: weights[position],
                candidates: &[],
                penalty: 0.0,
                floor: 0.0,
            };
            *loss = row(target, logits);
        }
    });
}

/// `d_hidden = d_logits · U`, `d_U += d_logitsᵀ · hidden`.
pub(super) fn propagate(
    products: Products<'_>,
    classes: &Classes,
    weights: &[f32],
    targets: &Targets,
    hidden: &[f32],
    d_hidden: &mut [f32],
    gradients: &mut [f32],
) {
    let (count, width) = (classes.vectors.rows, classes.vectors.columns);
    let rows = targets.ids.len();
    let d_logits = Matrix::rows(&targets.workspace.class_logits, count);
    let matrix = Matrix::rows(&weights[classes.vectors.range()], width);
    let dims = [rows, width, count];
    products.product(dims, d_logits, matrix, d_hidden, Write::Overwrite);
    let d_vectors = &mut gradients[classes.vectors.range()];
    let (d_logits, hidden) = (d_logits.transposed(), Matrix::rows(hidden, width));
    let dims = [count, width, rows];
    products.product(dims, d_logits, hidden, d_vectors, Write::Add);
}
