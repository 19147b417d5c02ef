//! The measured speed of products: the peak, and the shapes of training and generation.

use std::time::Instant;

use super::{Matrix, Operands, Products, Write, resident_flops};
use crate::cpu::Cpu;
use crate::cpu::threads::Shared;
use crate::{Device, Error, Memory};

/// The speeds of several products, with the peak measured at the same time.
#[derive(Clone, Debug)]
pub struct ProductSpeeds {
    /// Operations per second of a block that stays in registers and the L1 cache.
    pub peak: f64,
    /// The name of each shape, and its operations per second.
    pub shapes: Vec<(&'static str, f64)>,
}

/// A product's dimensions `[m, n, k]` and the layout of its operands.
struct Shape {
    name: &'static str,
    dims: [usize; 3],
    kind: Kind,
}

enum Kind {
    /// `x · Wᵀ`: a linear layer.
    Layer,
    /// `dyᵀ · x`: a weight's gradient.
    Gradient,
    /// One product for each head, `query · keyᵀ`, with the heads divided among the threads.
    Heads(usize),
}

const SHAPES: [Shape; 5] = [
    Shape { name: "large", dims: [2048, 1024, 1024], kind: Kind::Layer },
    Shape { name: "weight gradient", dims: [1024, 256, 2048], kind: Kind::Gradient },
    Shape { name: "tall", dims: [8192, 64, 512], kind: Kind::Layer },
    Shape { name: "few rows", dims: [16, 2048, 512], kind: Kind::Layer },
    Shape { name: "attention", dims: [256, 256, 64], kind: Kind::Heads(32) },
];

impl Cpu {
    /// Measures products of the shapes that training and generation have.
    pub fn product_speeds(&self) -> Result<ProductSpeeds, Error> {
        let mut shapes = Vec::new();
        for shape in &SHAPES {
            shapes.push((shape.name, shape.speed(self)?));
        }
        Ok(ProductSpeeds { peak: self.measured_peak(), shapes })
    }
}

impl Products<'_> {
    /// Floating-point operations per second of tiles whose operands stay in the L1 cache, on all
    /// threads at once: an upper bound for matrix products. The best of some short rounds.
    pub(in crate::cpu) fn measured_peak(self) -> f64 {
        const ROUNDS: usize = 40;
        const REPETITIONS: usize = 1000;
        let Self { threads, precision } = self;
        let round = || {
            let start = Instant::now();
            let flops = resident_flops(precision, 1);
            threads.each(threads.count(), |_| {
                resident_flops(precision, REPETITIONS);
            });
            let total = flops * (REPETITIONS * threads.count()) as f64;
            total / start.elapsed().as_secs_f64()
        };
        (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
    }
}

impl Shape {
    /// Operations per second in the fastest of many runs.
    fn speed(&self, cpu: &Cpu) -> Result<f64, Error> {
        let [m, n, k] = self.dims;
        let count = if let Kind::Heads(count) = self.kind { count } else { 1 };
        let mut operands = (cpu.floats(count * m * k)?, cpu.floats(count * n * k)?);
        operands.0.fill(0.5);
        operands.1.fill(0.25);
        let mut out = cpu.floats(count * m * n)?;
        let (mut best, start) = (f64::INFINITY, Instant::now());
        while start.elapsed().as_secs_f64() < 0.3 {
            let begun = Instant::now();
            self.multiply(cpu.products(), &operands.0, &operands.1, &mut out);
            best = best.min(begun.elapsed().as_secs_f64());
        }
        Ok(2.0 * (count * m * n * k) as f64 / best)
    }

    fn multiply(&self, products: Products<'_>, lhs: &[f32], rhs: &[f32], out: &mut [f32]) {
        let dims @ [m, n, k] = self.dims;
        match self.kind {
            Kind::Layer => {
                let (lhs, rhs) = (Matrix::rows(lhs, k), Matrix::rows(rhs, k).transposed());
                products.product(dims, lhs, rhs, out, Write::Overwrite);
            }
            Kind::Gradient => {
                let (lhs, rhs) = (Matrix::rows(lhs, m).transposed(), Matrix::rows(rhs, n));
                products.product(dims, lhs, rhs, out, Write::Add);
            }
            Kind::Heads(count) => {
                let out = Shared::new(out);
                products.threads.each(count, |head| {
                    let lhs = Matrix::rows(&lhs[head * m * k..], k);
                    let rhs = Matrix::rows(&rhs[head * n * k..], k).transposed();
                    let (precision, start) = (products.precision, head * m * n);
                    let operands = Operands { dims, lhs, rhs, write: Write::Overwrite };
                    // SAFETY: every head writes to its own part of the output.
                    unsafe { out.product(precision, start, operands, n) };
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_a_speed() {
        let speeds = Cpu::new(1).unwrap().product_speeds().unwrap();
        assert_eq!(speeds.shapes.len(), SHAPES.len());
        assert!(speeds.shapes.iter().all(|(_, speed)| *speed > 0.0));
    }
}
