//! Runs golden logits through the engine's head: with the identity as output matrix, hidden states
//! are logits, and their gradient is the logits' own.

use f2_engine::prelude::*;
use f2_engine::{Cpu, Head, Labels, Layout, Penalties, Weighting};
use serde_json::Value;

/// The precision of `f32` near one, with some margin for sums over a few dozen terms.
const TOLERANCE: f64 = 1e-5;

/// The logits of some positions, and a head that leaves them unchanged.
pub(super) struct Positions {
    device: Cpu,
    head: Head,
    identity: <Cpu as f2_engine::Memory>::Weights,
    hidden: <Cpu as f2_engine::Memory>::Activations,
    vocabulary: usize,
    count: usize,
}

impl Positions {
    pub(super) fn new(logits: &Value, vocabulary: usize) -> Self {
        let device = Cpu::new(1).unwrap();
        let mut layout = Layout::new();
        let head = Head::plain(layout.add("tokens", &[vocabulary, vocabulary], true));
        let mut identity = device.weights(layout.len()).unwrap();
        let one = |place: usize| f32::from(u8::from(place.is_multiple_of(vocabulary + 1)));
        let ones: Vec<f32> = (0..vocabulary * vocabulary).map(one).collect();
        device.write_weights(&ones, head.tokens, &mut identity);
        let logits: Vec<f32> = numbers(logits).into_iter().map(|logit| logit as f32).collect();
        let mut hidden = device.activations(logits.len()).unwrap();
        device.write_activations(&logits, &mut hidden);
        let count = logits.len() / vocabulary;
        Self { device, head, identity, hidden, vocabulary, count }
    }

    /// The loss, and its gradient with respect to the logits.
    pub(super) fn loss(
        &self,
        ids: &[u32],
        weights: Weighting<'_>,
        penalties: Option<Penalties<'_>>,
    ) -> (f64, Vec<f32>) {
        let mut targets = self.device.targets(self.count, &self.head).unwrap();
        let labels = Labels { ids, weights, penalties };
        self.device.load_targets(&self.head, &labels, &mut targets);
        let mut losses = self.device.floats(2 * self.count).unwrap();
        let mut d_logits = self.device.activations(self.count * self.vocabulary).unwrap();
        let mut d_identity = self.device.floats(self.identity.len()).unwrap();
        self.device.loss_backward(
            &self.head,
            &self.identity,
            &mut targets,
            &self.hidden,
            &mut losses,
            &mut d_logits,
            &mut d_identity,
        );
        (losses.iter().copied().map(f64::from).sum(), d_logits.to_vec())
    }

    pub(super) fn predictions(&self, ids: &[u32]) -> Vec<u32> {
        let mut targets = self.device.targets(self.count, &self.head).unwrap();
        self.device.load_targets(&self.head, &Labels::uniform(ids, 1.0), &mut targets);
        let mut found = self.device.indices(self.count).unwrap();
        let (head, identity) = (&self.head, &self.identity);
        self.device.predictions(head, identity, &mut targets, &self.hidden, &mut found);
        found
    }
}

/// All numbers of nested lists, in order.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().expect("a number")],
    }
}

/// All numbers of nested lists, as ids.
pub(super) fn ids(value: &Value) -> Vec<u32> {
    numbers(value).into_iter().map(|number| number as u32).collect()
}

pub(super) fn assert_close(found: &[f64], expected: &Value) {
    let expected = numbers(expected);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE, "{found} instead of {expected}");
    }
}

pub(super) fn assert_loss((loss, gradient): (f64, Vec<f32>), expected: &Value) {
    assert_close(&[loss], &expected["loss"]);
    let gradient: Vec<f64> = gradient.into_iter().map(f64::from).collect();
    assert_close(&gradient, &expected["grad"]);
}
