//! Projection of normalised points onto their principal components.

use rayon::prelude::*;

use super::Features;
use crate::further::symmetric::Symmetric;

/// Scales points to norm 1 and projects them onto as many principal components as explain this
/// share of the variance.
pub(super) fn reduce(width: usize, rows: &[f32], share: f64) -> Features {
    let points = centred(width, rows);
    let count = points.len();
    let keep = |values: &[f64]| {
        let total: f64 = values.iter().map(|value| value.max(0.0)).sum();
        let mut sum = 0.0;
        let enough = values.iter().position(|value| {
            sum += value.max(0.0);
            sum >= share * total
        });
        enough.unwrap_or(0) + 1
    };
    // The smaller of the covariance and the Gram matrix, which have the same non-zero eigenvalues.
    let by_column: Vec<Vec<f64>> = if width <= count {
        let columns: Vec<Vec<f64>> =
            (0..width).map(|at| points.iter().map(|point| point[at]).collect()).collect();
        let components = products(&columns).eigen(keep).vectors;
        components
            .par_iter()
            .map(|component| points.iter().map(|point| product(point, component)).collect())
            .collect()
    } else {
        let eigen = products(&points).eigen(keep);
        let scaled = eigen.vectors.into_iter().zip(&eigen.values).map(|(mut vector, value)| {
            vector.iter_mut().for_each(|entry| *entry *= value.max(0.0).sqrt());
            vector
        });
        scaled.collect()
    };
    let row = |at: usize| by_column.iter().map(move |column| column[at] as f32);
    Features { width: by_column.len(), rows: (0..count).flat_map(row).collect() }
}

/// Points scaled to norm 1, minus their mean.
fn centred(width: usize, rows: &[f32]) -> Vec<Vec<f64>> {
    let unit = |point: &[f32]| -> Vec<f64> {
        let norm = point.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let norm = if norm > 0.0 { norm } else { 1.0 };
        point.iter().map(|x| f64::from(*x) / norm).collect()
    };
    let mut points: Vec<Vec<f64>> = rows.chunks_exact(width).map(unit).collect();
    let mut mean = vec![0.0; width];
    for point in &points {
        mean.iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
    }
    mean.iter_mut().for_each(|sum| *sum /= points.len() as f64);
    for point in &mut points {
        point.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
    }
    points
}

/// The matrix of the dot products of all pairs of vectors, its lower triangle.
fn products(vectors: &[Vec<f64>]) -> Symmetric {
    let size = vectors.len();
    let mut rows = vec![0.0; size * size];
    rows.par_chunks_mut(size).enumerate().for_each(|(at, row)| {
        let pairs = row[..=at].iter_mut().zip(vectors);
        pairs.for_each(|(entry, other)| *entry = product(&vectors[at], other));
    });
    Symmetric::new(size, rows)
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    crate::further::symmetric::dot(one, other)
}
