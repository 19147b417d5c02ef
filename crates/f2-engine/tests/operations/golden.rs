//! Golden cases of the F² head: losses, posteriors and gradients from an independent program.

use f2_engine::prelude::*;
use f2_engine::{Classes, Head, IGNORED, Labels, Layout};
use serde_json::Value;

use super::{Bench, assert_close, narrow};

/// The tolerance for `f32` values near one, with room for sums of a few dozen terms.
const TOLERANCE: f64 = 1e-5;

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().expect("a number")],
    }
}

#[test]
fn golden_cases_of_the_f2_head() {
    let golden: Value = serde_json::from_str(include_str!("../fixtures/f2_head.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 6);
    for case in cases {
        check(case);
    }
}

fn check(case: &Value) {
    let size = |name: &str| case[name].as_u64().unwrap() as usize;
    let (vocabulary, width, classes, counted) = (size("V"), size("d"), size("K"), size("n"));
    let pad = case["pad"].as_u64();
    let unsigned = |name: &str| -> Vec<u32> {
        case[name].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    let ids: Vec<u32> = unsigned("targets")
        .into_iter()
        .map(|id| if Some(u64::from(id)) == pad { IGNORED } else { id })
        .collect();
    let mut layout = Layout::new();
    let vectors = layout.add("U", &[classes, width], true);
    let head = Head {
        tokens: layout.add("O", &[vocabulary, width], true),
        classes: Some(Classes { vectors, ends: unsigned("ends") }),
    };
    let mut bench = Bench::new(&layout);
    bench.cpu.write_weights(&narrow(&numbers(&case["U"])), vectors, &mut bench.weights);
    bench.cpu.write_weights(&narrow(&numbers(&case["O"])), head.tokens, &mut bench.weights);
    let positions = ids.len();
    let hidden = bench.upload(&numbers(&case["H"]));
    let mut targets = bench.cpu.targets(positions, &head).unwrap();
    let weight = 1.0 / counted as f32;
    bench.cpu.load_targets(&head, &Labels::uniform(&ids, weight), &mut targets);
    let mut losses = bench.cpu.floats(2 * positions).unwrap();
    let mut d_hidden = bench.cpu.activations(positions * width).unwrap();
    bench.cpu.loss_backward(
        &head,
        &bench.weights,
        &mut targets,
        &hidden,
        &mut losses,
        &mut d_hidden,
        &mut bench.gradients,
    );
    let unweighted: Vec<f32> = losses.iter().map(|loss| loss * counted as f32).collect();
    let expected = [numbers(&case["class_nll"]), numbers(&case["token_nll"])].concat();
    assert_close(&unweighted, &expected, TOLERANCE);
    let loss: f32 = losses.iter().sum();
    assert_close(&[loss], &[case["loss"].as_f64().unwrap()], TOLERANCE);
    assert_close(&d_hidden, &numbers(&case["dH"]), TOLERANCE);
    assert_close(&bench.gradient(vectors), &numbers(&case["dU"]), TOLERANCE);
    assert_close(&bench.gradient(head.tokens), &numbers(&case["dO"]), TOLERANCE);

    let mut posterior = bench.cpu.floats(positions * vocabulary).unwrap();
    bench.cpu.log_posterior(positions, &head, &bench.weights, &hidden, &mut posterior);
    assert_close(&posterior, &numbers(&case["log_posterior"]), TOLERANCE);
    let mut log_p1 = bench.cpu.floats(positions * classes).unwrap();
    bench.cpu.logits(positions, vectors, &bench.weights, &hidden, &mut log_p1);
    bench.cpu.log_softmax(positions, classes, &mut log_p1);
    assert_close(&log_p1, &numbers(&case["log_p1"]), TOLERANCE);
}
