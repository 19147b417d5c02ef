//! Compares every operation on the GPU with the CPU, which the test `operations` compares with
//! naive `f64` definitions: same input, same masks, in full precision and in bf16.
//!
//! `cargo test --release --test parity` on a machine with an NVIDIA GPU; skipped elsewhere.

mod attention;
mod draw;
mod embedding;
mod exchange;
mod generation;
mod heads;
mod linear;
mod norm;
mod optimiser;
mod replay;

use f2_engine::{
    Bf16, Cpu, Cuda, Device, F32, Layout, Moment, Parameter, Philox, Precision, cuda_is_present,
};

/// The tolerance in `f32`: sums have another order, and the GPU has its own exponential function.
const FULL: f64 = 5e-5;
/// The tolerance in bf16, which keeps eight bits of operands, products and results.
const ROUNDED: f64 = 1e-2;

/// The named outputs of a run.
type Outcome = Vec<(&'static str, Vec<f32>)>;

/// A test case that can run on any device.
trait Scenario {
    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome;
    fn layout(&self) -> Layout;
}

/// A device, parameters with random values, and their gradients.
struct Bench<D: Device> {
    device: D,
    weights: D::Weights,
    gradients: D::Floats,
    clock: D::Clock,
}

impl<D: Device> Bench<D> {
    fn new(device: D, layout: &Layout) -> Self {
        let mut weights = device.weights(layout.len()).unwrap();
        for (index, named) in layout.parameters().iter().enumerate() {
            let values = random(named.parameter.len(), 100 + index as u32);
            device.write_weights(&values, named.parameter, &mut weights);
        }
        let gradients = device.floats(layout.len()).unwrap();
        let mut clock = device.clock().unwrap();
        device.set_clock(Moment { seed: 5 << 40, step: 3, first_position: 7 }, &mut clock);
        Self { device, weights, gradients, clock }
    }

    /// Random activations.
    fn input(&self, len: usize, place: u32) -> D::Activations {
        self.upload(&random(len, place))
    }

    fn upload(&self, values: &[f32]) -> D::Activations {
        let mut buffer = self.device.activations(values.len()).unwrap();
        self.device.write_activations(values, &mut buffer);
        buffer
    }

    /// Activations to be overwritten. Their initial value reveals elements that are not.
    fn output(&self, len: usize) -> D::Activations {
        self.upload(&vec![77.0; len])
    }

    fn floats(&self, len: usize) -> D::Floats {
        let mut buffer = self.device.floats(len).unwrap();
        self.device.write_floats(&vec![77.0; len], 0, &mut buffer);
        buffer
    }

    fn read(&self, buffer: &D::Activations, len: usize) -> Vec<f32> {
        let mut values = vec![0.0; len];
        self.device.read_activations(buffer, &mut values).unwrap();
        values
    }

    fn read_floats(&self, buffer: &D::Floats, len: usize) -> Vec<f32> {
        let mut values = vec![0.0; len];
        self.device.read_floats(buffer, 0, &mut values).unwrap();
        values
    }

    fn gradient(&self, parameter: Parameter) -> Vec<f32> {
        let mut values = vec![0.0; parameter.len()];
        self.device.read_floats(&self.gradients, parameter.offset, &mut values).unwrap();
        values
    }

    fn weight(&self, parameter: Parameter) -> Vec<f32> {
        let mut values = vec![0.0; parameter.len()];
        self.device.read_weights(&self.weights, parameter, &mut values).unwrap();
        values
    }
}

/// Draws from the standard normal distribution, rounded to bf16.
fn random(len: usize, place: u32) -> Vec<f32> {
    let mut stream = Philox::new(1, [place, 0, 0]);
    exact(&(0..len).map(|_| stream.normal() as f32).collect::<Vec<_>>())
}

/// Rounds to bf16.
fn exact(values: &[f32]) -> Vec<f32> {
    values.iter().map(|&value| Bf16::widen(Bf16::narrow(value))).collect()
}

/// Runs a scenario on the CPU and on the GPU in both precisions.
fn compare(scenario: &impl Scenario) {
    if let Err(reason) = cuda_is_present() {
        eprintln!("skipped: {reason}");
        return;
    }
    let layout = scenario.layout();
    let expected = scenario.run(&mut Bench::new(Cpu::new(0).unwrap(), &layout));
    let full = scenario.run(&mut Bench::new(Cuda::<F32>::new(0).unwrap(), &layout));
    let mut failures = differences("f32", &full, &expected, FULL);
    let rounded = scenario.run(&mut Bench::new(Cuda::<Bf16>::new(0).unwrap(), &layout));
    failures.extend(differences("bf16", &rounded, &expected, ROUNDED));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether the GPU is the one of `emulator/`, which is too slow for the largest cases.
fn is_emulated() -> bool {
    let model = Cuda::<F32>::new(0).and_then(|device| device.model());
    model.is_ok_and(|model| model.starts_with("emulated"))
}

/// The outputs whose error exceeds the tolerance: the norm of the difference to the CPU's, divided
/// by the norm of the latter. Prints all errors.
fn differences(
    precision: &str,
    actual: &Outcome,
    expected: &Outcome,
    tolerance: f64,
) -> Vec<String> {
    let mut failures = Vec::new();
    for ((name, actual), (_, expected)) in actual.iter().zip(expected) {
        assert_eq!(actual.len(), expected.len(), "{name}");
        let square = |x: f64| x * x;
        let difference: f64 = (actual.iter().zip(expected))
            .map(|(&actual, &expected)| square(f64::from(actual) - f64::from(expected)))
            .sum();
        let norm: f64 = expected.iter().map(|&value| square(f64::from(value))).sum();
        // Relative to an RMS of at least 1e-3, since all expected values may be zero.
        let error = (difference / norm.max(1e-6 * expected.len() as f64)).sqrt();
        println!("{precision} {name}: {error:.1e}");
        // Not `error > tolerance`, since NaN must fail.
        if !matches!(error.partial_cmp(&tolerance), Some(std::cmp::Ordering::Less)) {
            failures.push(format!("{precision} {name}: {error:.1e} is above {tolerance:.0e}"));
        }
    }
    failures
}
