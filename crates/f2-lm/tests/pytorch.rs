//! The decoder beside PyTorch: same weights, same batches. `oracle/decoder.py` froze the values,
//! computed in double precision; ours are `f32`.

mod frozen;

use f2_lm::config::{ObjectiveName, OptimiserConfig};
use frozen::{assert_gradients, batch, json, trainer};

const LOSS_TOLERANCE: f64 = 1e-3;

fn check_gradients(objective: ObjectiveName, micro: usize) {
    let mut trainer = trainer(|config| {
        config.objective.name = objective;
        config.batch.micro = micro;
    });
    let (windows, text) = batch(0);
    trainer.accumulate(&windows, &text, 0).unwrap();
    assert_gradients(&trainer, "decoder.safetensors", objective.as_str());
}

fn check_ten_steps(objective: ObjectiveName) {
    let about = json("decoder.json");
    let mut trainer = trainer(|config| config.objective.name = objective);
    let optimiser: OptimiserConfig = serde_json::from_value(about["optimiser"].clone()).unwrap();
    for (step, expected) in
        about["losses"][objective.as_str()].as_array().unwrap().iter().enumerate()
    {
        let (windows, text) = batch(step);
        let update = optimiser.update(step as u64 + 1, 1.0);
        let report = trainer.step(&windows, &text, step as u64, update, false).unwrap();
        let (found, expected) = (f64::from(report.loss), expected.as_f64().unwrap());
        let off = (found / expected - 1.0).abs();
        // The first loss has no update behind it and must be far closer.
        let tolerance = if step == 0 { LOSS_TOLERANCE * 1e-2 } else { LOSS_TOLERANCE };
        assert!(off < tolerance, "step {step}: {found} instead of {expected}");
    }
}

#[test]
fn gradients_of_maximum_likelihood() {
    check_gradients(ObjectiveName::Mle, 0);
}

#[test]
fn gradients_of_f2() {
    check_gradients(ObjectiveName::F2, 0);
}

#[test]
fn gradients_add_up_over_micro_batches() {
    check_gradients(ObjectiveName::Mle, 1);
    check_gradients(ObjectiveName::F2, 1);
}

#[test]
fn ten_steps_of_maximum_likelihood() {
    check_ten_steps(ObjectiveName::Mle);
}

#[test]
fn ten_steps_of_f2() {
    check_ten_steps(ObjectiveName::F2);
}
