//! Losses, gradients, predictions and posteriors of both heads.

use std::ops::Range;

use f2_engine::prelude::*;
use f2_engine::{Classes, Head, IGNORED, Labels, Layout, Penalties, Weighting};

use super::reference::{dot, log_softmax, slope};
use super::{Bench, assert_close, random};

const WIDTH: usize = 13;
const VOCABULARY: usize = 29;
const ENDS: [u32; 5] = [1, 3, 4, 11, 29];
const IDS: [u32; 12] = [0, 28, 3, 1, IGNORED, 7, 10, 2, 0, 11, IGNORED, 3];

/// The plain softmax and F² with the same token vectors.
fn bench() -> (Bench, Head, Head) {
    let mut layout = Layout::new();
    let vectors = layout.add("classes", &[ENDS.len(), WIDTH], true);
    let tokens = layout.add("tokens", &[VOCABULARY, WIDTH], true);
    let classes = Classes { vectors, ends: ENDS.to_vec() };
    (Bench::new(&layout), Head::plain(tokens), Head { tokens, classes: Some(classes) })
}

struct Results {
    losses: Vec<f32>,
    d_hidden: Vec<f32>,
}

/// Loss and gradients; checks that the loss without gradients is the same.
fn run(bench: &mut Bench, head: &Head, labels: &Labels<'_>, hidden: &[f64]) -> Results {
    let positions = labels.ids.len();
    let mut targets = bench.cpu.targets(positions, head).unwrap();
    bench.cpu.load_targets(head, labels, &mut targets);
    let [mut losses, mut only_losses] = [(); 2].map(|()| bench.cpu.floats(2 * positions).unwrap());
    let mut d_hidden = bench.upload(&vec![9.0; positions * WIDTH]);
    let hidden = bench.upload(hidden);
    bench.cpu.loss(head, &bench.weights, &mut targets, &hidden, &mut only_losses);
    let gradients = &mut bench.gradients;
    bench.cpu.loss_backward(
        head,
        &bench.weights,
        &mut targets,
        &hidden,
        &mut losses,
        &mut d_hidden,
        gradients,
    );
    assert_close(&only_losses, &super::widen(&losses), 1e-5);
    Results { losses: losses.to_vec(), d_hidden: d_hidden.to_vec() }
}

/// Weighted likelihood and penalties of all positions, as defined in `docs/method.md`.
fn softmax_value(
    hidden: &[f64],
    tokens: &[f64],
    weights: &[f32],
    penalties: Option<&Penalties<'_>>,
) -> [Vec<f64>; 2] {
    let (mut likelihoods, mut unlikelihoods) = (Vec::new(), Vec::new());
    for (position, hidden) in hidden.chunks(WIDTH).enumerate() {
        let logits: Vec<f64> = tokens.chunks(WIDTH).map(|vector| dot(hidden, vector)).collect();
        let log_p = log_softmax(&logits);
        let id = IDS[position];
        let weight = f64::from(weights[position]);
        likelihoods.push(if id == IGNORED { 0.0 } else { -weight * log_p[id as usize] });
        let mut penalty = 0.0;
        if let Some(penalties) = penalties {
            let range = penalties.ranges[position].clone();
            for &candidate in &penalties.candidates[range.start as usize..range.end as usize] {
                if candidate != id {
                    let rest = 1.0 - log_p[candidate as usize].exp();
                    penalty -= rest.max(f64::from(penalties.floor)).ln();
                }
            }
            penalty *= f64::from(penalties.weight);
        }
        unlikelihoods.push(penalty);
    }
    [likelihoods, unlikelihoods]
}

fn check_softmax(weights: &[f32], penalties: Option<Penalties<'_>>) {
    let (mut bench, head, _) = bench();
    let hidden = random(IDS.len() * WIDTH, 1);
    let labels = Labels { ids: &IDS, weights: Weighting::Each(weights), penalties };
    let results = run(&mut bench, &head, &labels, &hidden);
    let tokens = bench.weight(head.tokens);
    let value = |hidden: &[f64], tokens: &[f64]| -> f64 {
        softmax_value(hidden, tokens, weights, penalties.as_ref()).concat().iter().sum()
    };
    let expected = softmax_value(&hidden, &tokens, weights, penalties.as_ref()).concat();
    assert_close(&results.losses, &expected, 1e-5);
    assert_close(&results.d_hidden, &slope(&hidden, |hidden| value(hidden, &tokens)), 2e-5);
    let by_tokens = slope(&tokens, |tokens| value(&hidden, tokens));
    assert_close(&bench.gradient(head.tokens), &by_tokens, 2e-5);
}

#[test]
fn plain_softmax_with_weights() {
    let weights: Vec<f32> = (0..IDS.len()).map(|i| 0.2 * i as f32).collect();
    check_softmax(&weights, None);
}

#[test]
fn unlikelihood_of_earlier_targets() {
    let candidates = [0, 28, 3, 1, 7, 10];
    let ranges: Vec<Range<u32>> = (0..IDS.len() as u32).map(|i| 0..i.min(6)).collect();
    let penalties =
        Penalties { candidates: &candidates, ranges: &ranges, weight: 0.7, floor: 1e-5 };
    check_softmax(&[0.5; 12], Some(penalties));
}

#[test]
fn f2_and_its_gradients() {
    let (mut bench, _, head) = bench();
    let hidden = random(IDS.len() * WIDTH, 1);
    let weights: Vec<f32> = (0..IDS.len()).map(|i| 1.5 - 0.1 * i as f32).collect();
    let labels = Labels { ids: &IDS, weights: Weighting::Each(&weights), penalties: None };
    let results = run(&mut bench, &head, &labels, &hidden);
    let list = head.classes.as_ref().unwrap();
    let (classes, tokens) = (bench.weight(list.vectors), bench.weight(head.tokens));
    let parts = |hidden: &[f64], classes: &[f64], tokens: &[f64]| -> [Vec<f64>; 2] {
        let (mut by_class, mut by_token) = (Vec::new(), Vec::new());
        for (position, hidden) in hidden.chunks(WIDTH).enumerate() {
            let logits = |vectors: &[f64]| -> Vec<f64> {
                vectors.chunks(WIDTH).map(|vector| dot(hidden, vector)).collect()
            };
            if IDS[position] == IGNORED {
                by_class.push(0.0);
                by_token.push(0.0);
                continue;
            }
            let class = list.class_of(IDS[position]);
            let members = list.members(class);
            let within = log_softmax(&logits(tokens)[members.clone()]);
            let weight = f64::from(weights[position]);
            by_class.push(-weight * log_softmax(&logits(classes))[class]);
            by_token.push(-weight * within[IDS[position] as usize - members.start]);
        }
        [by_class, by_token]
    };
    let value = |hidden: &[f64], classes: &[f64], tokens: &[f64]| -> f64 {
        parts(hidden, classes, tokens).concat().iter().sum()
    };
    assert_close(&results.losses, &parts(&hidden, &classes, &tokens).concat(), 1e-5);
    let by_hidden = slope(&hidden, |hidden| value(hidden, &classes, &tokens));
    assert_close(&results.d_hidden, &by_hidden, 1e-5);
    let by_classes = slope(&classes, |classes| value(&hidden, classes, &tokens));
    assert_close(&bench.gradient(list.vectors), &by_classes, 1e-5);
    let by_tokens = slope(&tokens, |tokens| value(&hidden, &classes, tokens));
    assert_close(&bench.gradient(head.tokens), &by_tokens, 1e-5);
}

/// F² with one class gives the same bits in every operation of a head.
#[test]
fn one_class_is_the_plain_softmax() {
    let (mut plain, head, f2) = bench();
    let hidden = random(IDS.len() * WIDTH, 1);
    let labels = Labels::uniform(&IDS, 0.1);
    let expected = run(&mut plain, &head, &labels, &hidden);
    let (mut factorised, _, _) = bench();
    let vectors = f2.classes.unwrap().vectors.slice(0..1);
    let classes = Some(Classes { vectors, ends: vec![VOCABULARY as u32] });
    let one = Head { classes, ..head.clone() };
    let actual = run(&mut factorised, &one, &labels, &hidden);
    assert_eq!(actual.d_hidden, expected.d_hidden);
    assert_eq!(actual.losses[IDS.len()..], expected.losses[..IDS.len()]);
    assert!(actual.losses[..IDS.len()].iter().all(|&loss| loss == 0.0));
    assert_eq!(factorised.gradient(one.tokens), plain.gradient(head.tokens));
    assert!(factorised.gradient(vectors).iter().all(|&gradient| gradient == 0.0));
    let [plain, one] = [&head, &one].map(|head| {
        let (posterior, predictions) = posterior_and_predictions(&plain, head, &hidden);
        let bits: Vec<u32> = posterior.iter().map(|log| log.to_bits()).collect();
        (bits, predictions)
    });
    assert_eq!(plain, one);
}

fn posterior_and_predictions(bench: &Bench, head: &Head, hidden: &[f64]) -> (Vec<f32>, Vec<u32>) {
    let mut targets = bench.cpu.targets(IDS.len(), head).unwrap();
    bench.cpu.load_targets(head, &Labels::uniform(&IDS, 1.0), &mut targets);
    let mut predictions = bench.cpu.indices(IDS.len()).unwrap();
    let mut posterior = bench.cpu.floats(IDS.len() * VOCABULARY).unwrap();
    let states = bench.upload(hidden);
    bench.cpu.predictions(head, &bench.weights, &mut targets, &states, &mut predictions);
    bench.cpu.log_posterior(IDS.len(), head, &bench.weights, &states, &mut posterior);
    (posterior.to_vec(), predictions)
}

/// The most likely tokens of the full posterior, by their definition in `f64`.
#[test]
fn predictions_are_the_most_likely_tokens() {
    let (bench, plain, f2) = bench();
    let hidden = random(IDS.len() * WIDTH, 1);
    let tokens = bench.weight(plain.tokens);
    let list = f2.classes.clone().unwrap();
    let classes = bench.weight(list.vectors);
    let logits = |hidden: &[f64], vectors: &[f64]| -> Vec<f64> {
        vectors.chunks(WIDTH).map(|vector| dot(hidden, vector)).collect()
    };
    for head in [&plain, &f2] {
        let (_, predictions) = posterior_and_predictions(&bench, head, &hidden);
        for (position, hidden) in hidden.chunks(WIDTH).enumerate() {
            let mut logs = logits(hidden, &tokens);
            if head.classes.is_some() {
                let by_class = log_softmax(&logits(hidden, &classes));
                for (class, log) in by_class.iter().enumerate() {
                    let members = list.members(class);
                    let within = log_softmax(&logs[members.clone()]);
                    logs[members].copy_from_slice(&within);
                    logs[list.members(class)].iter_mut().for_each(|own| *own += log);
                }
            }
            let best = (0..VOCABULARY).max_by(|&a, &b| logs[a].total_cmp(&logs[b])).unwrap();
            let expected = if IDS[position] == IGNORED { IGNORED } else { best as u32 };
            assert_eq!(predictions[position], expected);
        }
    }
}

/// More positions than fit one chunk of logits: the chunks' gradients must add up.
#[test]
fn many_positions_take_several_chunks() {
    let (positions, width, vocabulary) = (700, 3, 9001);
    let mut layout = Layout::new();
    let head = Head::plain(layout.add("tokens", &[vocabulary, width], true));
    let mut bench = Bench::new(&layout);
    let ids: Vec<u32> = (0..positions).map(|i| (i * 131 % vocabulary) as u32).collect();
    let hidden = random(positions * width, 1);
    let mut targets = bench.cpu.targets(positions, &head).unwrap();
    bench.cpu.load_targets(&head, &Labels::uniform(&ids, 1.0), &mut targets);
    let mut losses = bench.cpu.floats(2 * positions).unwrap();
    let mut d_hidden = bench.cpu.activations(positions * width).unwrap();
    let states = bench.upload(&hidden);
    bench.cpu.loss_backward(
        &head,
        &bench.weights,
        &mut targets,
        &states,
        &mut losses,
        &mut d_hidden,
        &mut bench.gradients,
    );
    let tokens = bench.weight(head.tokens);
    let (mut d_tokens, mut expected) = (vec![0.0; vocabulary * width], Vec::new());
    for (position, hidden) in hidden.chunks(width).enumerate() {
        let logits: Vec<f64> = tokens.chunks(width).map(|vector| dot(hidden, vector)).collect();
        let log_p = log_softmax(&logits);
        expected.push(-log_p[ids[position] as usize]);
        for (id, log_p) in log_p.iter().enumerate() {
            let hit = if id == ids[position] as usize { 1.0 } else { 0.0 };
            for column in 0..width {
                d_tokens[id * width + column] += (log_p.exp() - hit) * hidden[column];
            }
        }
    }
    assert_close(&losses[..positions], &expected, 1e-5);
    assert_close(&bench.gradient(head.tokens), &d_tokens, 1e-5);
}
