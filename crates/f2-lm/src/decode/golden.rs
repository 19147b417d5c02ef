//! Decoding compared with the oracle's distributions: directly if a distribution can be read off,
//! by chi-squared tests with fixed seeds if tokens are drawn.

mod later;

use f2_engine::prelude::*;
use f2_engine::{Cpu, Philox};
use serde::Deserialize;

use super::candidates::{Candidates, Run};
use super::class_draw::strict_nucleus;
use super::sampler::{Wanted, choose};
use super::scores::Scores;
use super::{
    ClassDraw, Distribution, Factorisation, SmallClass, Strategy, Truncations, fill_order,
};
use super::{min_p, top_k, top_p, typical};
use crate::config::ModelConfig;
use crate::model::{Decoder, Model, ModelShape};

/// The engine works in `f32`.
const TOLERANCE: f64 = 1e-5;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    class_nucleus: Vec<ClassNucleus>,
}

#[derive(Deserialize)]
struct Case {
    ends: Vec<u32>,
    h: Vec<f32>,
    #[serde(rename = "U")]
    class_vectors: Vec<Vec<f32>>,
    #[serde(rename = "O")]
    token_vectors: Vec<Vec<f32>>,
    p1: Vec<f64>,
    p2: Vec<f64>,
    greedy_decoupled: u32,
    greedy_full: u32,
    full_posterior: Vec<f64>,
    #[serde(rename = "class_law_0_9")]
    class_distribution_0_9: Vec<f64>,
    topk: Vec<TopK>,
}

#[derive(Deserialize)]
struct TopK {
    k: usize,
    full: Expected,
    decoupled_marginal_class_p1: Vec<f64>,
    decoupled_marginal_class_p0_9: Vec<f64>,
    by_class: Vec<ByClass>,
}

#[derive(Deserialize)]
struct ByClass {
    order: Vec<u32>,
    clamp: Expected,
    fill: Expected,
}

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    probs: Vec<f64>,
}

#[derive(Deserialize)]
struct ClassNucleus {
    p1: Vec<f64>,
    p: f64,
    #[serde(rename = "law")]
    distribution: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../tests/fixtures/decoding.json")).unwrap()
}

/// A decoder with the case's head; the layers below do not matter.
struct Bench(Model<Cpu>);

impl Bench {
    fn new(case: &Case) -> Self {
        let width = case.h.len();
        let model =
            ModelConfig { layers: 1, width, heads: 1, feed_forward: 1, ..ModelConfig::default() };
        let (vocabulary, class_ends) = (case.token_vectors.len(), case.ends.clone());
        let decoder = Decoder::new(ModelShape { model, positions: 2, vocabulary, class_ends });
        let head = decoder.head.clone();
        let classes = head.classes.expect("the case has classes");
        let mut model = Model::zeros(Cpu::new(1).unwrap(), decoder).unwrap();
        model.set_values(classes.vectors, &case.class_vectors.concat());
        model.set_values(head.tokens, &case.token_vectors.concat());
        Self(model)
    }

    /// The tokens of `count` draws from one hidden state.
    fn draw(&self, case: &Case, strategy: &Strategy, count: usize) -> Vec<u32> {
        let device = &self.0.device;
        let mut scores = Scores::new(&self.0, count).unwrap();
        let mut hidden = device.activations(count * case.h.len()).unwrap();
        device.write_activations(&case.h.repeat(count), &mut hidden);
        let wanted = |place| Wanted {
            history: &[],
            random: Philox::new(1, [place, 0, 0]),
            limit: None,
            amateur: None,
            diffusion: None,
        };
        let mut wanted: Vec<Wanted<'_>> = (0..count as u32).map(wanted).collect();
        let tokens = choose(&mut scores, strategy, &hidden, &mut wanted).unwrap();
        for token in &tokens {
            let expected = case.full_posterior[token.id as usize].ln();
            assert!((f64::from(token.log_probability) - expected).abs() < TOLERANCE);
            let (class, log) = token.class.unwrap();
            assert!((f64::from(log) - case.p1[class as usize].ln()).abs() < TOLERANCE);
        }
        tokens.iter().map(|token| token.id).collect()
    }
}

fn logs(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|probability| probability.ln() as f32).collect()
}

fn assert_distribution(distribution: &Distribution, tokens: &[u32], probabilities: &[f64]) {
    let ids: Vec<u32> = distribution.entries().iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, tokens);
    for ((_, found), expected) in distribution.entries().iter().zip(probabilities) {
        assert!((found - expected).abs() < TOLERANCE, "{found} is not {expected}");
    }
}

/// `expected` covers all tokens, zeros included.
fn assert_dense(distribution: &Distribution, expected: &[f64]) {
    let ids: Vec<u32> = (0..).zip(expected).filter(|(_, q)| **q > 0.0).map(|(id, _)| id).collect();
    let kept: Vec<f64> = expected.iter().copied().filter(|q| *q > 0.0).collect();
    assert_distribution(distribution, &ids, &kept);
}

fn decoupled(k: usize, draw: ClassDraw) -> Strategy {
    Strategy { factorisation: Factorisation::Decoupled(draw), ..Strategy::top_k(k) }
}

/// The distribution of a token in the classes of `order`, as far as they are needed.
fn token_distribution(case: &Case, order: &[u32], strategy: &Strategy) -> Distribution {
    let mut rows: Vec<(usize, u32, Vec<f32>)> = order
        .iter()
        .map(|class| {
            let class = *class as usize;
            let start = class.checked_sub(1).map_or(0, |before| case.ends[before]);
            (class, start, logs(&case.p2[start as usize..case.ends[class] as usize]))
        })
        .collect();
    rows.sort_by_key(|(class, ..)| *class);
    let runs = rows.iter_mut().map(|(class, first, logs)| Run {
        first: *first,
        class: case.p1[*class].ln() as f32,
        logs,
    });
    Candidates::new(runs.collect(), strategy, &[], &[]).distribution(strategy, None)
}

#[test]
fn greedy_takes_the_best_token_of_the_best_class() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        assert_eq!(bench.draw(&case, &Strategy::greedy(), 1), [case.greedy_decoupled]);
        assert_eq!(bench.draw(&case, &Strategy::greedy().joint(), 1), [case.greedy_full]);
    }
}

#[test]
fn the_posterior_is_class_times_token() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        let mut scores = Scores::new(&bench.0, 1).unwrap();
        let mut hidden = bench.0.device.activations(case.h.len()).unwrap();
        bench.0.device.write_activations(&case.h, &mut hidden);
        let close = |found: &[f32], expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            let pairs = found.iter().zip(expected);
            assert!(pairs.into_iter().all(|(f, e)| (f64::from(*f).exp() - e).abs() < TOLERANCE));
        };
        close(scores.posterior(1, &hidden).unwrap(), &case.full_posterior);
        close(&scores.classes(1, &hidden).unwrap(), &case.p1);
        let mut start = 0;
        for (class, end) in case.ends.iter().enumerate() {
            let end = *end as usize;
            close(scores.members(&[(class, vec![0])], &hidden).unwrap(), &case.p2[start..end]);
            start = end;
        }
    }
}

#[test]
fn the_class_nucleus_drops_the_class_that_crosses() {
    let golden = golden();
    for ClassNucleus { p1, p, distribution } in &golden.class_nucleus {
        // Not through `f32`: some of these masses meet p exactly.
        let weights = (0..).zip(p1.iter().copied());
        let found = strict_nucleus(Distribution::from_weights(weights), *p);
        assert_dense(&found, distribution);
    }
    for case in &golden.cases {
        let draw = ClassDraw { top_p: 0.9, ..ClassDraw::default() };
        assert_dense(&draw.distribution(&logs(&case.p1)), &case.class_distribution_0_9);
    }
}

#[test]
fn small_classes_are_clamped_or_filled() {
    for case in golden().cases {
        for TopK { k, full, by_class, .. } in &case.topk {
            let posterior = (0..).zip(case.full_posterior.iter().copied());
            assert_distribution(
                &top_k(Distribution::from_weights(posterior), *k),
                &full.tokens,
                &full.probs,
            );
            let strategy = Strategy::top_k(*k);
            for ByClass { order, clamp, fill } in by_class {
                let distribution = token_distribution(&case, &order[..1], &strategy);
                assert_distribution(&distribution, &clamp.tokens, &clamp.probs);
                let mut needed = 0;
                let size = |class: u32| {
                    let before = class.checked_sub(1).map_or(0, |b| case.ends[b as usize]);
                    (case.ends[class as usize] - before) as usize
                };
                let taken = order.iter().take_while(|class| {
                    let short = needed < *k;
                    needed += size(**class);
                    short
                });
                let distribution =
                    token_distribution(&case, &taken.copied().collect::<Vec<u32>>(), &strategy);
                assert_distribution(&distribution, &fill.tokens, &fill.probs);
            }
        }
    }
}

/// A chi-squared test that correct draws fail once in ten thousand times; with fixed seeds it
/// either always passes or always fails.
fn assert_drawn_from(drawn: &[u32], expected: &[f64]) {
    let mut counts = vec![0_u32; expected.len()];
    drawn.iter().for_each(|id| counts[*id as usize] += 1);
    let mut statistic = 0.0;
    for (count, probability) in counts.iter().zip(expected) {
        let mean = probability * drawn.len() as f64;
        if mean == 0.0 {
            assert_eq!(*count, 0, "an impossible token was drawn");
        } else {
            statistic += (f64::from(*count) - mean).powi(2) / mean;
        }
    }
    let freedom = expected.iter().filter(|p| **p > 0.0).count() as f64 - 1.0;
    if freedom == 0.0 {
        return;
    }
    // Wilson and Hilferty's approximation of the quantile at 1 − 10⁻⁴; the normal quantile is
    // 3.719.
    let spread = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - spread + 3.719 * spread.sqrt()).powi(3);
    assert!(statistic < limit, "chi-squared {statistic} reaches {limit}: {counts:?}");
}

const DRAWS: usize = 4_000;

#[test]
fn decoupled_draws_follow_the_oracles_marginals() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        for top_k in &case.topk {
            for (top_p, expected) in [
                (1.0, &top_k.decoupled_marginal_class_p1),
                (0.9, &top_k.decoupled_marginal_class_p0_9),
            ] {
                let draw = ClassDraw { top_p, ..ClassDraw::default() };
                let k = top_k.k.min(12);
                let drawn = bench.draw(&case, &decoupled(k, draw), DRAWS);
                assert_drawn_from(&drawn, expected);
            }
        }
    }
}

/// The given k, its growth and the k of each class, worked out by hand for the classes of 1, 2, 4
/// and 5 tokens and of 2, 3 and 7.
fn grown(case: &Case) -> Vec<(usize, f64, Vec<usize>)> {
    match case.ends[..] {
        // 1, √2, √4 and √5; the sizes; 2 and 2 · √2 = 2.8, 2 · √4, 2 · √5 = 4.5.
        [1, 3, 7, 12] => {
            vec![(1, 0.5, vec![1, 1, 2, 2]), (1, 1.0, vec![1, 2, 4, 5]), (2, 0.5, vec![2, 3, 4, 4])]
        }
        // √(3 / 2) = 1.2 and √(7 / 2) = 1.9; the sizes; 3 · 3 / 2 = 4.5 and 3 · 7 / 2 = 10.5.
        [2, 5, 12] => {
            vec![(1, 0.5, vec![1, 1, 2]), (2, 1.0, vec![2, 3, 7]), (3, 1.0, vec![3, 5, 11])]
        }
        _ => unreachable!("the oracle has these two"),
    }
}

#[test]
fn a_class_may_have_a_k_of_its_own() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        for (k, top_k_growth, ks) in grown(&case) {
            let draw = ClassDraw { top_k_growth, ..ClassDraw::default() };
            let mut expected = vec![0.0; 12];
            for (class, k) in (0..).zip(ks) {
                let kept = token_distribution(&case, &[class], &Strategy::top_k(k));
                for (id, probability) in kept.entries() {
                    expected[*id as usize] = case.p1[class as usize] * probability;
                }
            }
            assert_drawn_from(&bench.draw(&case, &decoupled(k, draw), DRAWS), &expected);
        }
    }
}

#[test]
fn joint_draws_follow_the_posterior_as_it_was_cut() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        let distribution =
            || Distribution::from_weights((0..).zip(case.full_posterior.iter().copied()));
        let flat = |temperature: f64| {
            let flattened = case.full_posterior.iter().map(|q| q.powf(1.0 / temperature));
            Distribution::from_weights((0..).zip(flattened))
        };
        let base = Strategy::default().joint();
        let none = Truncations::default();
        let truncated = |truncations| Strategy { truncations, ..base.clone() };
        let cases = [
            (base.clone(), distribution()),
            (truncated(none.with_top_k(3)), top_k(distribution(), 3)),
            (truncated(none.with_top_p(0.7)), top_p(distribution(), 0.7)),
            (truncated(none.with_min_p(0.2)), min_p(distribution(), 0.2)),
            (truncated(none.with_typical(0.6)), typical(distribution(), 0.6)),
            (Strategy { temperature: 2.5, ..base.clone() }, flat(2.5)),
            (
                Strategy { temperature: 0.5, ..truncated(none.with_top_k(4).with_top_p(0.9)) },
                top_p(top_k(flat(0.5), 4), 0.9),
            ),
        ];
        for (strategy, distribution) in cases {
            let expected: Vec<f64> = (0..12).map(|id| distribution.probability(id)).collect();
            assert_drawn_from(&bench.draw(&case, &strategy, DRAWS), &expected);
        }
    }
}

/// The marginal of filling, summed over every order in which classes can be drawn.
fn filled(
    case: &Case,
    k: usize,
    distribution: &Distribution,
    order: &[u32],
    chance: f64,
    sum: &mut [f64],
) {
    let classes = case.ends.len() as u32;
    let size = |class: &u32| {
        let before = class.checked_sub(1).map_or(0, |before| case.ends[before as usize]);
        (case.ends[*class as usize] - before) as usize
    };
    let available: usize = order.iter().map(size).sum();
    if !order.is_empty() && (available >= k || order.len() == classes as usize) {
        for (id, probability) in token_distribution(case, order, &Strategy::top_k(k)).entries() {
            sum[*id as usize] += chance * probability;
        }
        return;
    }
    let floor = if order.is_empty() { 0.0 } else { 1e-6 };
    let left: Vec<u32> = (0..classes).filter(|class| !order.contains(class)).collect();
    let total: f64 = left.iter().map(|class| distribution.probability(*class) + floor).sum();
    for class in left {
        let share = (distribution.probability(class) + floor) / total;
        if share > 0.0 {
            filled(case, k, distribution, &[order, &[class]].concat(), chance * share, sum);
        }
    }
}

#[test]
fn filled_draws_follow_every_order_of_classes() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        for (k, top_p) in [(3, 1.0), (5, 1.0), (5, 0.9)] {
            let draw = ClassDraw { top_p, small: SmallClass::Fill, ..ClassDraw::default() };
            let distribution = draw.distribution(&logs(&case.p1));
            let mut expected = vec![0.0; 12];
            filled(&case, k, &distribution, &[], 1.0, &mut expected);
            // Orders that need a class outside the nucleus come once in a million draws.
            let reachable: Vec<f64> =
                expected.iter().map(|q| if *q < 1e-4 { 0.0 } else { *q }).collect();
            assert_drawn_from(&bench.draw(&case, &decoupled(k, draw), DRAWS), &reachable);
        }
    }
}

#[test]
fn filling_goes_up_to_the_k_of_the_class_that_was_drawn() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        for (k, top_k_growth, ks) in grown(&case) {
            let draw = ClassDraw { small: SmallClass::Fill, top_k_growth, ..ClassDraw::default() };
            let distribution = draw.distribution(&logs(&case.p1));
            let mut expected = vec![0.0; 12];
            for (class, k) in (0..).zip(ks) {
                let chance = distribution.probability(class);
                filled(&case, k, &distribution, &[class], chance, &mut expected);
            }
            assert_drawn_from(&bench.draw(&case, &decoupled(k, draw), DRAWS), &expected);
        }
    }
}

#[test]
fn classes_have_a_temperature_and_a_k_of_their_own() {
    for case in golden().cases {
        let bench = Bench::new(&case);
        let draw = ClassDraw { temperature: 3.0, top_k: Some(2), ..ClassDraw::default() };
        let flattened = (0..).zip(case.p1.iter().map(|q| q.powf(1.0 / 3.0)));
        let distribution = top_k(Distribution::from_weights(flattened), 2);
        let class_of = |id: u32| case.ends.iter().filter(|end| **end <= id).count() as u32;
        let tokens = (0..).zip(&case.p2);
        let expected: Vec<f64> =
            tokens.map(|(id, p2)| distribution.probability(class_of(id)) * p2).collect();
        let strategy =
            Strategy { factorisation: Factorisation::Decoupled(draw), ..Strategy::default() };
        assert_drawn_from(&bench.draw(&case, &strategy, DRAWS), &expected);
    }
}

#[test]
fn filling_takes_no_class_twice_and_stops_at_k() {
    let distribution = Distribution::from_weights([(0, 0.7), (2, 0.3)]);
    for place in 0..200 {
        let mut random = Philox::new(4, [place, 0, 0]);
        let order = fill_order(&distribution, 0, &[1, 2, 4, 5], 5, &mut random);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), order.len());
        let sizes: Vec<usize> = order.iter().map(|class| [1, 2, 4, 5][*class as usize]).collect();
        assert!(
            sizes.iter().sum::<usize>() >= 5 && sizes[..sizes.len() - 1].iter().sum::<usize>() < 5
        );
    }
}
