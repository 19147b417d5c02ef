//! Dynamic programming over the cuts of a grid.

use super::grid::{CutGrid, WeighedGrid};

/// The ends of the K classes with the highest mean efficiency among the cuts of a grid; `None` if
/// the grid has too few cuts.
///
/// `best[k][e] = max over s of best[k−1][s] + weight(s, e)`, for cuts with enough others before and
/// after them. The cuts are recovered by backtracking, which recomputes each maximum: this keeps
/// the inner loop to one sum and one maximum.
pub(super) fn best_ends(grid: &CutGrid, k: usize) -> Option<Vec<usize>> {
    let last = grid.cuts.len() - 1;
    if k > last {
        return None;
    }
    let weighed = grid.weigh(k);
    let layers = layers(&weighed, k, last);
    let (mut ends, mut end) = (vec![grid.cuts[last]], last);
    for layer in layers.iter().rev() {
        end = came_from(&weighed, layer, end);
        ends.push(grid.cuts[end]);
    }
    ends.reverse();
    Some(ends)
}

/// For 1 … K−1 classes: the best sum of weights by the index of the last class's end.
fn layers(weighed: &WeighedGrid, k: usize, last: usize) -> Vec<Vec<f64>> {
    let mut layers: Vec<Vec<f64>> = Vec::with_capacity(k);
    for classes in 1..k {
        let furthest = last - (k - classes);
        let mut layer = vec![f64::NEG_INFINITY; furthest + 1];
        match layers.last() {
            None => layer[1..].copy_from_slice(&weighed.from(0)[..furthest]),
            Some(before) => {
                for start in classes - 1..furthest {
                    raise(&mut layer[start + 1..], before[start], weighed.from(start));
                }
            }
        }
        layers.push(layer);
    }
    layers
}

/// Raises each entry to `before` plus its weight, if that is larger.
#[inline]
fn raise(layer: &mut [f64], before: f64, weights: &[f64]) {
    for (best, &weight) in layer.iter_mut().zip(weights) {
        let sum = before + weight;
        *best = if sum > *best { sum } else { *best };
    }
}

/// The index of the cut from which the best path leads to `end`.
fn came_from(weighed: &WeighedGrid, layer: &[f64], end: usize) -> usize {
    let mut best = (f64::NEG_INFINITY, 0);
    for (start, &before) in layer.iter().enumerate().take(end) {
        let sum = before + weighed.from(start)[end - start - 1];
        if sum > best.0 {
            best = (sum, start);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankCounts;
    use crate::objective::Objective;

    /// Every way to cut `vocabulary` ranks into `k` classes.
    fn partitions(vocabulary: usize, k: usize) -> Vec<Vec<usize>> {
        if k == 1 {
            return vec![vec![vocabulary]];
        }
        let shorter = |end| partitions(end, k - 1).into_iter();
        let longer = |mut ends: Vec<usize>| {
            ends.push(vocabulary);
            ends
        };
        (k - 1..vocabulary).flat_map(|end| shorter(end).map(longer)).collect()
    }

    #[test]
    fn no_partition_is_better() {
        for counts in [&[40, 17, 9, 9, 5, 3, 1, 1, 0][..], &[7; 6], &[100, 1, 1, 1, 1]] {
            let objective = Objective::new(&RankCounts::new(counts).unwrap());
            let grid = CutGrid::new(&objective, (0..=counts.len()).collect());
            for k in 1..=counts.len() {
                let found = objective.value(&best_ends(&grid, k).unwrap());
                let all = partitions(counts.len(), k);
                let best = all.iter().map(|ends| objective.value(ends)).fold(0.0, f64::max);
                assert!((found - best).abs() < 1e-12, "{counts:?} {k}: {found} {best}");
            }
        }
    }
}
