//! F²-Softmax: a softmax over classes for every position, and one within the target's class.

use super::chunks::{self as head, Gradients, Vectors};
use super::row::RowTarget;
use super::targets::Targets;
use crate::cpu::product::{Matrix, Products, Write};
use crate::cpu::threads::Threads;
use crate::{F2Head, IGNORED};

/// Rows one task works on.
const BLOCK: usize = 64;

fn members<'a>(head: &F2Head, class: usize, weights: &'a [f32]) -> Vectors<'a> {
    let members = head.members(class);
    let first = members.start;
    let slice = head.tokens.slice(members);
    Vectors { rows: &weights[slice.range()], width: slice.columns, first }
}

pub(super) fn loss(
    products: Products<'_>,
    head: &F2Head,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
    losses: &mut [f32],
) {
    class_logits(products, head, weights, targets, hidden);
    let (class_losses, token_losses) = halves(targets, losses);
    class_rows(products.threads, head, targets, class_losses, |target, logits| {
        target.loss(logits)[0]
    });
    for class in 0..targets.classes() {
        let vectors = members(head, class, weights);
        head::loss(products, class, vectors, targets, hidden, |position, [token, _]| {
            token_losses[position] = token;
        });
    }
}

pub(super) fn loss_backward(
    products: Products<'_>,
    head: &F2Head,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
    losses: &mut [f32],
    d_hidden: &mut [f32],
    gradients: &mut [f32],
) {
    class_logits(products, head, weights, targets, hidden);
    let (class_losses, token_losses) = halves(targets, losses);
    class_rows(products.threads, head, targets, class_losses, |target, logits| {
        target.loss_backward(logits)[0]
    });
    propagate_classes(products, head, weights, targets, hidden, d_hidden, gradients);
    for class in 0..targets.classes() {
        let vectors = members(head, class, weights);
        let d_vectors = &mut gradients[head.tokens.slice(head.members(class)).range()];
        let mut into = Gradients { d_hidden, write: Write::Add, d_vectors };
        head::loss_backward(
            products,
            class,
            vectors,
            targets,
            hidden,
            &mut into,
            |position, parts| {
                token_losses[position] = parts[0];
            },
        );
    }
}

fn halves<'a>(targets: &Targets, losses: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
    let positions = targets.ids.len();
    let losses = &mut losses[..2 * positions];
    losses.fill(0.0);
    losses.split_at_mut(positions)
}

/// `hidden · Uᵀ` for all positions, into the workspace.
fn class_logits(
    products: Products<'_>,
    head: &F2Head,
    weights: &[f32],
    targets: &mut Targets,
    hidden: &[f32],
) {
    let (classes, width) = (head.classes.rows, head.classes.columns);
    let matrix = Matrix::rows(&weights[head.classes.range()], width).transposed();
    let dims = [targets.ids.len(), classes, width];
    let logits = &mut targets.workspace.class_logits;
    let hidden = Matrix::rows(hidden, width);
    products.product(dims, hidden, matrix, logits, Write::Overwrite);
}

/// Runs `row` on every position's class logits; ignored ones count nothing.
fn class_rows(
    threads: &Threads,
    head: &F2Head,
    targets: &mut Targets,
    losses: &mut [f32],
    row: impl Fn(RowTarget<'_>, &mut [f32]) -> f32 + Sync,
) {
    let classes = head.classes.rows;
    let (ids, weights) = (&targets.ids, &targets.weights);
    let logits = &mut targets.workspace.class_logits[..ids.len() * classes];
    threads.zip_chunks([(logits, BLOCK * classes), (losses, BLOCK)], |index, [logits, losses]| {
        let rows = logits.chunks_mut(classes).zip(losses);
        for (position, (logits, loss)) in (index * BLOCK..).zip(rows) {
            let id = ids[position];
            let target = RowTarget {
                column: (id != IGNORED).then(|| head.class_of(id)),
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
fn propagate_classes(
    products: Products<'_>,
    head: &F2Head,
    weights: &[f32],
    targets: &Targets,
    hidden: &[f32],
    d_hidden: &mut [f32],
    gradients: &mut [f32],
) {
    let (classes, width) = (head.classes.rows, head.classes.columns);
    let rows = targets.ids.len();
    let d_logits = Matrix::rows(&targets.workspace.class_logits, classes);
    let matrix = Matrix::rows(&weights[head.classes.range()], width);
    let dims = [rows, width, classes];
    products.product(dims, d_logits, matrix, d_hidden, Write::Overwrite);
    let d_classes = &mut gradients[head.classes.range()];
    let (d_logits, hidden) = (d_logits.transposed(), Matrix::rows(hidden, width));
    let dims = [classes, width, rows];
    products.product(dims, d_logits, hidden, d_classes, Write::Add);
}
