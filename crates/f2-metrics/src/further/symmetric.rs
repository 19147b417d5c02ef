//! Eigenvalues and eigenvectors of symmetric matrices, in f64.
//!
//! A matrix is reduced to tridiagonal form by Householder reflections. These are applied in panels,
//! so that most of the work passes over the matrix once per panel (Dongarra et al., 1989). The
//! eigenvalues of the tridiagonal matrix are found by QL steps with implicit shifts. Sums have a
//! fixed order: the result does not depend on the number of threads.

use rayon::prelude::*;

/// Reflections computed before the rest of the matrix is updated.
const PANEL: usize = 32;
/// Blocks of rows that are processed in parallel.
const BLOCKS: usize = 16;
/// The limit of QL steps per eigenvalue; about two are usual.
const MOST_STEPS: usize = 60;

/// A symmetric matrix by rows; only the lower triangle is read.
#[derive(Clone, Debug)]
pub(crate) struct Symmetric {
    size: usize,
    rows: Vec<f64>,
}

/// A reflection 1 − τ v vᵀ of the first `v.len()` coordinates.
struct Reflection {
    scale: f64,
    vector: Vec<f64>,
}

/// The tridiagonal matrix: its diagonal, its off-diagonal, and the reflections that produced it.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// The off-diagonal.
    beside: Vec<f64>,
    reflections: Vec<Reflection>,
}

/// Eigenvalues, the largest first, each with its vector.
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Vec<Vec<f64>>,
}

impl Symmetric {
    /// From the concatenated rows.
    pub(crate) fn new(size: usize, rows: Vec<f64>) -> Self {
        assert_eq!(rows.len(), size * size, "a square matrix");
        Self { size, rows }
    }

    /// The eigenvalues, in no particular order.
    pub(crate) fn eigenvalues(self) -> Vec<f64> {
        let mut reduced = self.reduce();
        ql(&mut reduced.diagonal, &mut reduced.beside, &mut |_, _, _| {});
        reduced.diagonal
    }

    /// The eigenvalues, the largest first, and the eigenvectors of the first `keep(values)` of
    /// them.
    pub(crate) fn eigen(self, keep: impl FnOnce(&[f64]) -> usize) -> Eigen {
        let size = self.size;
        let mut reduced = self.reduce();
        // Row i is the eigenvector of the tridiagonal matrix for its i-th eigenvalue.
        let mut rows: Vec<Vec<f64>> = (0..size)
            .map(|row| (0..size).map(|column| f64::from(u8::from(row == column))).collect())
            .collect();
        ql(&mut reduced.diagonal, &mut reduced.beside, &mut |at, cosine, sine| {
            let (upper, lower) = rows.split_at_mut(at + 1);
            for (one, other) in upper[at].iter_mut().zip(&mut lower[0]) {
                let turned = sine * *one + cosine * *other;
                *one = cosine * *one - sine * *other;
                *other = turned;
            }
        });
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|one, other| reduced.diagonal[*other].total_cmp(&reduced.diagonal[*one]));
        let values: Vec<f64> = order.iter().map(|&at| reduced.diagonal[at]).collect();
        let kept = &order[..keep(&values).min(size)];
        let vectors = kept.par_iter().map(|&at| reduced.turn_back(rows[at].clone())).collect();
        Eigen { values, vectors }
    }

    /// Reduces the matrix to tridiagonal form, from the last row up.
    fn reduce(mut self) -> Tridiagonal {
        let n = self.size;
        let mut reduced = Tridiagonal {
            diagonal: vec![0.0; n],
            beside: vec![0.0; n.saturating_sub(1)],
            reflections: Vec::with_capacity(n),
        };
        let mut left = n;
        while left > 0 {
            let panel = PANEL.min(left);
            let mut pairs: Vec<[Vec<f64>; 2]> = Vec::with_capacity(panel);
            for row in (left - panel..left).rev() {
                self.reduce_row(row, &mut pairs, &mut reduced);
            }
            left -= panel;
            self.update(left, &pairs);
        }
        reduced
    }

    /// Reduces one row; `pairs` are this panel's updates that are not yet applied to the matrix.
    fn reduce_row(
        &mut self,
        row: usize,
        pairs: &mut Vec<[Vec<f64>; 2]>,
        reduced: &mut Tridiagonal,
    ) {
        let n = self.size;
        let line = &mut self.rows[row * n..][..=row];
        for [v, w] in pairs.iter() {
            let (at_v, at_w) = (v[row], w[row]);
            for ((entry, v), w) in line.iter_mut().zip(v).zip(w) {
                *entry -= at_v * w + at_w * v;
            }
        }
        reduced.diagonal[row] = line[row];
        if row == 0 {
            return;
        }
        let (reflection, beside) = reflect(&line[..row]);
        reduced.beside[row - 1] = beside;
        let Reflection { scale, vector } = &reflection;
        let mut product = self.times(vector);
        for [v, w] in pairs.iter() {
            let (with_v, with_w) = (dot(&v[..row], vector), dot(&w[..row], vector));
            for ((entry, v), w) in product.iter_mut().zip(v).zip(w) {
                *entry -= v * with_w + w * with_v;
            }
        }
        product.iter_mut().for_each(|entry| *entry *= scale);
        let half = scale / 2.0 * dot(&product, vector);
        product.iter_mut().zip(vector).for_each(|(entry, v)| *entry -= half * v);
        pairs.push([vector.clone(), product]);
        reduced.reflections.push(reflection);
    }

    /// The leading square submatrix times a vector.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let (n, length) = (self.size, vector.len());
        let of_block = |block: usize| {
            let mut part = vec![0.0; length];
            for row in border(block, length)..border(block + 1, length) {
                let line = &self.rows[row * n..][..row];
                let own = dot_and_add(line, vector, vector[row], &mut part);
                part[row] += own + self.rows[row * n + row] * vector[row];
            }
            part
        };
        let parts: Vec<Vec<f64>> = (0..BLOCKS).into_par_iter().map(of_block).collect();
        let mut sum = vec![0.0; length];
        for part in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sum
    }

    /// Subtracts the rank-2 updates of a panel's pairs from the leading square submatrix.
    fn update(&mut self, length: usize, pairs: &[[Vec<f64>; 2]]) {
        let n = self.size;
        let mut rest = &mut self.rows[..length * n];
        let mut blocks = Vec::with_capacity(BLOCKS);
        for block in 0..BLOCKS {
            let (start, end) = (border(block, length), border(block + 1, length));
            let (lines, after) = rest.split_at_mut((end - start) * n);
            blocks.push((start, lines));
            rest = after;
        }
        blocks.into_par_iter().for_each(|(start, lines)| {
            for (row, line) in (start..).zip(lines.chunks_mut(n)) {
                for two in pairs.chunks(2) {
                    subtract(&mut line[..=row], row, two);
                }
            }
        });
    }
}

impl Tridiagonal {
    /// Transforms an eigenvector of the tridiagonal matrix into one of the original matrix.
    fn turn_back(&self, mut vector: Vec<f64>) -> Vec<f64> {
        for Reflection { scale, vector: v } in self.reflections.iter().rev() {
            let along = scale * dot(&vector[..v.len()], v);
            vector.iter_mut().zip(v).for_each(|(entry, v)| *entry -= along * v);
        }
        vector
    }
}

/// The first row of a block: all blocks of the triangle have about the same number of entries.
fn border(block: usize, rows: usize) -> usize {
    let share = (block as f64 / BLOCKS as f64).sqrt();
    if block == BLOCKS { rows } else { (share * rows as f64) as usize }
}

/// The reflection that maps a vector onto its last coordinate axis, and the resulting coordinate.
fn reflect(line: &[f64]) -> (Reflection, f64) {
    let last = line.len() - 1;
    let largest = line.iter().fold(0.0_f64, |most, entry| most.max(entry.abs()));
    let mut vector = line.to_vec();
    if line[..last].iter().all(|entry| *entry == 0.0) {
        vector[..last].fill(0.0);
        vector[last] = 1.0;
        return (Reflection { scale: 0.0, vector }, line[last]);
    }
    // Divided by the largest entry first, so that no square overflows or underflows to 0.
    let norm = largest * line.iter().map(|entry| (entry / largest).powi(2)).sum::<f64>().sqrt();
    let beside = if line[last] > 0.0 { -norm } else { norm };
    let pivot = line[last] - beside;
    vector.iter_mut().for_each(|entry| *entry /= pivot);
    vector[last] = 1.0;
    (Reflection { scale: -pivot / beside, vector }, beside)
}

/// Subtracts the rank-2 updates of one or two pairs from a row.
fn subtract(line: &mut [f64], row: usize, pairs: &[[Vec<f64>; 2]]) {
    if let [[v1, w1], [v2, w2]] = pairs {
        let at = [v1[row], w1[row], v2[row], w2[row]];
        let length = line.len();
        let columns = v1[..length].iter().zip(&w1[..length]).zip(&v2[..length]).zip(&w2[..length]);
        for (entry, (((v1, w1), v2), w2)) in line.iter_mut().zip(columns) {
            *entry -= at[0] * w1 + at[1] * v1 + at[2] * w2 + at[3] * v2;
        }
        return;
    }
    for [v, w] in pairs {
        let (at_v, at_w) = (v[row], w[row]);
        for ((entry, v), w) in line.iter_mut().zip(v).zip(w) {
            *entry -= at_v * w + at_w * v;
        }
    }
}

/// Independent partial sums, so that the loop vectorises.
const LANES: usize = 8;

/// The dot product of two vectors, summed in lanes.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (ones, ones_rest) = one.as_chunks::<LANES>();
    let (others, others_rest) = other[..one.len()].as_chunks::<LANES>();
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest: f64 = ones_rest.iter().zip(others_rest).map(|(one, other)| one * other).sum();
    sums.iter().sum::<f64>() + rest
}

/// The dot product of a row with a vector, while the row times `factor` is added to `sums`: one
/// read of the row serves both the lower and the upper triangle.
fn dot_and_add(line: &[f64], vector: &[f64], factor: f64, sums: &mut [f64]) -> f64 {
    let length = line.len();
    let mut products = [0.0; LANES];
    let (lines, lines_rest) = line.as_chunks::<LANES>();
    let (vectors, vectors_rest) = vector[..length].as_chunks::<LANES>();
    let (into, into_rest) = sums[..length].as_chunks_mut::<LANES>();
    for ((line, vector), into) in lines.iter().zip(vectors).zip(into) {
        for lane in 0..LANES {
            products[lane] += line[lane] * vector[lane];
            into[lane] += factor * line[lane];
        }
    }
    let mut product: f64 = products.iter().sum();
    for ((line, vector), into) in lines_rest.iter().zip(vectors_rest).zip(into_rest) {
        product += line * vector;
        *into += factor * line;
    }
    product
}

/// Diagonalises a tridiagonal matrix. Calls `turn` for each rotation of the coordinates `at` and
/// `at + 1`, with its cosine and sine.
fn ql(diagonal: &mut [f64], beside: &mut [f64], turn: &mut impl FnMut(usize, f64, f64)) {
    for first in 0..diagonal.len() {
        for _ in 0..MOST_STEPS {
            let is_small = |at: usize| {
                beside[at].abs() <= f64::EPSILON * (diagonal[at].abs() + diagonal[at + 1].abs())
            };
            let last = (first..beside.len()).find(|&at| is_small(at)).unwrap_or(beside.len());
            if last == first {
                break;
            }
            step(diagonal, beside, first, last, turn);
        }
    }
}

/// One QL step with Wilkinson's shift on the block from `first` to `last`.
fn step(
    diagonal: &mut [f64],
    beside: &mut [f64],
    first: usize,
    last: usize,
    turn: &mut impl FnMut(usize, f64, f64),
) {
    let half = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    let radius = half.hypot(1.0).copysign(half);
    let shift = diagonal[first] - beside[first] / (half + radius);
    let (mut sine, mut cosine, mut moved) = (1.0, 1.0, 0.0);
    let mut ahead = diagonal[last] - shift;
    for at in (first..last).rev() {
        let (far, near) = (sine * beside[at], cosine * beside[at]);
        let length = far.hypot(ahead);
        if at + 1 < last {
            beside[at + 1] = length;
        }
        if length == 0.0 {
            // The block decouples here.
            diagonal[at + 1] -= moved;
            return;
        }
        (sine, cosine) = (far / length, ahead / length);
        let corner = diagonal[at + 1] - moved;
        let mixed = (diagonal[at] - corner) * sine + 2.0 * cosine * near;
        moved = sine * mixed;
        diagonal[at + 1] = corner + moved;
        ahead = cosine * mixed - near;
        turn(at, cosine, sine);
    }
    diagonal[first] -= moved;
    beside[first] = ahead;
}
