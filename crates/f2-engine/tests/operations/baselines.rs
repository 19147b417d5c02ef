//! The plain softmax of the baselines: unlikelihood of a certain model, and weights that depend on
//! predictions.

use f2_engine::prelude::*;
use f2_engine::{Head, IGNORED, Labels, Layout, Penalties, Weighting};

use super::{Bench, assert_close, random, widen};

/// A candidate of which the model is almost certain: 1 - p is 3e-11. Computed as a difference in
/// `f32` it would be zero, as would the gradient.
#[test]
fn unlikelihood_where_the_model_is_certain() {
    let logits = [26.0, 1.0, 0.5, -1.0];
    let mut layout = Layout::new();
    let head = Head::plain(layout.add("tokens", &[4, 4], true));
    let mut bench = Bench::new(&layout);
    let identity: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
    bench.cpu.write_weights(&identity, head.tokens, &mut bench.weights);
    let mut targets = bench.cpu.targets(1, &head).unwrap();
    let penalties = Some(Penalties {
        candidates: &[0],
        ranges: std::slice::from_ref(&(0..1)),
        weight: 1.0,
        floor: 1e-20,
    });
    let labels = Labels { penalties, ..Labels::uniform(&[IGNORED], 1.0) };
    bench.cpu.load_targets(&head, &labels, &mut targets);
    let [mut losses, mut only_losses, mut d_hidden] =
        [2, 2, 4].map(|len| bench.cpu.floats(len).unwrap());
    let hidden = bench.upload(&logits);
    bench.cpu.loss(&head, &bench.weights, &mut targets, &hidden, &mut only_losses);
    let gradients = &mut bench.gradients;
    bench.cpu.loss_backward(
        &head,
        &bench.weights,
        &mut targets,
        &hidden,
        &mut losses,
        &mut d_hidden,
        gradients,
    );
    let others: Vec<f64> = logits[1..].iter().map(|logit: &f64| logit.exp()).collect();
    let (others_sum, sure) = (others.iter().sum::<f64>(), 26.0_f64.exp());
    let expected = [0.0, (1.0 + sure / others_sum).ln()];
    assert_close(&losses, &expected, 1e-5);
    assert_close(&only_losses, &expected, 1e-5);
    let share = sure / (sure + others_sum);
    let pulled = others.iter().map(|other| -share * other / others_sum);
    let gradient: Vec<f64> = std::iter::once(share).chain(pulled).collect();
    assert_close(&d_hidden, &gradient, 1e-5);
}

/// Weights set after the predictions give the same loss as weights loaded with the targets, up to
/// the order in which chunks are summed; and logits are reused only once.
#[test]
fn predictions_may_decide_the_weights() {
    let (positions, width, vocabulary) = (700, 3, 9001);
    let mut layout = Layout::new();
    let head = Head::plain(layout.add("tokens", &[vocabulary, width], true));
    let ids: Vec<u32> = (0..positions)
        .map(|i| if i % 50 == 7 { IGNORED } else { (i * 131 % vocabulary) as u32 })
        .collect();
    let weights: Vec<f32> = (0..positions).map(|i| (i % 7) as f32).collect();
    let hidden = random(positions * width, 1);
    let run = |predict: bool, again: bool| {
        let mut bench = Bench::new(&layout);
        let mut targets = bench.cpu.targets(positions, &head).unwrap();
        let mut states = bench.upload(&hidden);
        if predict {
            let mut predictions = bench.cpu.indices(positions).unwrap();
            bench.cpu.load_targets(&head, &Labels::uniform(&ids, 1.0), &mut targets);
            bench.cpu.predictions(&head, &bench.weights, &mut targets, &states, &mut predictions);
            bench.cpu.reweigh_targets(&weights, &mut targets);
        } else {
            let labels =
                Labels { weights: Weighting::Each(&weights), ..Labels::uniform(&ids, 1.0) };
            bench.cpu.load_targets(&head, &labels, &mut targets);
        }
        let mut losses = bench.cpu.floats(2 * positions).unwrap();
        if again {
            bench.cpu.loss(&head, &bench.weights, &mut targets, &states, &mut losses);
            states = bench.upload(&random(positions * width, 2));
        }
        let mut d_hidden = bench.cpu.activations(positions * width).unwrap();
        bench.cpu.loss_backward(
            &head,
            &bench.weights,
            &mut targets,
            &states,
            &mut losses,
            &mut d_hidden,
            &mut bench.gradients,
        );
        (losses.to_vec(), d_hidden.to_vec(), bench.gradient(head.tokens))
    };
    for again in [false, true] {
        let (before, after) = (run(false, again), run(true, again));
        assert_eq!((before.0, before.1), (after.0, after.1));
        assert_close(&after.2, &widen(&before.2), 1e-5);
    }
}
