//! Direct implementations of the definitions: `f64`, one loop per sum.

/// Layer norm of every row: `(x - mean) / √(variance + ε) · gain + bias`.
pub(crate) fn norm(x: &[f64], gain: &[f64], bias: &[f64]) -> Vec<f64> {
    let width = gain.len();
    let mut normed = Vec::new();
    for row in x.chunks(width) {
        let mean = row.iter().sum::<f64>() / width as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        for (i, x) in row.iter().enumerate() {
            normed.push((x - mean) / (variance + 1e-5).sqrt() * gain[i] + bias[i]);
        }
    }
    normed
}

/// `x · weightᵀ + bias`.
pub(crate) fn linear(x: &[f64], weight: &[f64], bias: &[f64], inputs: usize) -> Vec<f64> {
    let mut y = Vec::new();
    for row in x.chunks(inputs) {
        for (weight, bias) in weight.chunks(inputs).zip(bias) {
            y.push(bias + dot(row, weight));
        }
    }
    y
}

pub(crate) fn gelu(x: f64) -> f64 {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
    0.5 * x * (1.0 + u.tanh())
}

/// Causal attention over `[count · length, 3 · heads · width]`.
pub(crate) fn attention(
    qkv: &[f64],
    count: usize,
    length: usize,
    heads: usize,
    width: usize,
) -> Vec<f64> {
    let total = heads * width;
    let part = |position: usize, part: usize, head: usize| {
        &qkv[position * 3 * total + part * total + head * width..][..width]
    };
    let mut out = vec![0.0; count * length * total];
    for first in (0..count * length).step_by(length) {
        for head in 0..heads {
            for query in first..first + length {
                let score = |key: usize| {
                    dot(part(query, 0, head), part(key, 1, head)) / (width as f64).sqrt()
                };
                let scores: Vec<f64> = (first..=query).map(score).collect();
                for (key, log_p) in (first..=query).zip(log_softmax(&scores)) {
                    for i in 0..width {
                        out[query * total + head * width + i] +=
                            log_p.exp() * part(key, 2, head)[i];
                    }
                }
            }
        }
    }
    out
}

pub(crate) fn log_softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    x.iter().map(|x| x - largest - sum.ln()).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The gradient of `f` at `x`, by central differences.
pub(crate) fn slope(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let mut moved = x.to_vec();
    (0..x.len())
        .map(|i| {
            let mut at = |step: f64| {
                moved[i] = x[i] + step;
                let value = f(&moved);
                moved[i] = x[i];
                value
            };
            (at(STEP) - at(-STEP)) / (2.0 * STEP)
        })
        .collect()
}
