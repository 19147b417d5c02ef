//! Compares every operation with its naive `f64` definition, forward and backward, for shapes that
//! are not round numbers. Backward passes are compared with central differences of the definition.

mod attention;
mod baselines;
mod bf16;
mod embedding;
mod exchange;
mod generation;
mod golden;
mod heads;
mod instruction_sets;
mod linear;
mod machine_code;
mod norm;
mod optimiser;
mod reference;
mod threads;

use f2_engine::prelude::*;
use f2_engine::{Cpu, Layout, Moment, Parameter, Philox};

/// A device, parameters with random values, and their gradients.
struct Bench {
    cpu: Cpu,
    weights: <Cpu as f2_engine::Memory>::Weights,
    gradients: <Cpu as f2_engine::Memory>::Floats,
    clock: Moment,
}

impl Bench {
    fn new(layout: &Layout) -> Self {
        let cpu = Cpu::new(2).unwrap();
        let mut weights = cpu.weights(layout.len()).unwrap();
        for (index, named) in layout.parameters().iter().enumerate() {
            let values = random(named.parameter.len(), 100 + index as u32);
            cpu.write_weights(&narrow(&values), named.parameter, &mut weights);
        }
        let gradients = cpu.floats(layout.len()).unwrap();
        let clock = Moment { seed: 5, step: 3, first_position: 0 };
        Self { cpu, weights, gradients, clock }
    }

    fn weight(&self, parameter: Parameter) -> Vec<f64> {
        let mut values = vec![0.0; parameter.len()];
        self.cpu.read_weights(&self.weights, parameter, &mut values).unwrap();
        widen(&values)
    }

    fn gradient(&self, parameter: Parameter) -> Vec<f32> {
        let mut values = vec![0.0; parameter.len()];
        self.cpu.read_floats(&self.gradients, parameter.offset, &mut values).unwrap();
        values
    }

    fn upload(&self, values: &[f64]) -> <Cpu as f2_engine::Memory>::Activations {
        let mut buffer = self.cpu.activations(values.len()).unwrap();
        self.cpu.write_activations(&narrow(values), &mut buffer);
        buffer
    }
}

/// `len` draws from the standard normal distribution, rounded to `f32`.
fn random(len: usize, place: u32) -> Vec<f64> {
    let mut stream = Philox::new(1, [place, 0, 0]);
    (0..len).map(|_| f64::from(stream.normal() as f32)).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// With a tolerance relative to the largest expected value, since rounding errors of a sum depend
/// on its largest terms.
fn assert_close(actual: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    let scale = expected.iter().fold(1e-3_f64, |largest, x| largest.max(x.abs()));
    for (i, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(actual) - expected).abs();
        assert!(error <= tolerance * scale, "element {i}: {actual} instead of {expected}");
    }
}
