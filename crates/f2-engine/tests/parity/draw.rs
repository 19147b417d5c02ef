//! Compares tokens drawn by the GPU with draws from the same logits in `f64`.

use f2_engine::prelude::*;
use f2_engine::{
    Bf16, ClassSampling, Classes, Cuda, Drawn, F32, Head, Layout, Philox, Precision, Sampling,
    TokenSampling, cuda_is_present,
};

use super::Bench;

const ROWS: usize = 300;
const WIDTH: usize = 32;
const ENDS: [u32; 5] = [2, 40, 300, 301, 3000];

/// The settings under test.
fn settings() -> Vec<Sampling> {
    let class = |temperature, top_k, top_p| Some(ClassSampling { temperature, top_k, top_p });
    let token = |temperature, top_k, min_p| TokenSampling { temperature, top_k, min_p };
    let all = [
        (None, token(1.0, None, None)),
        (None, token(0.0, None, None)),
        (None, token(0.7, Some(40), Some(0.05))),
        (class(1.0, None, 1.0), token(1.0, Some(3), None)),
        (class(0.0, None, 1.0), token(0.0, Some(5), None)),
        (class(1.3, Some(3), 0.9), token(1.0, None, Some(0.01))),
        (class(1.0, None, 0.5), token(2.0, Some(1), None)),
    ];
    all.map(|(class, token)| Sampling { class, token }).to_vec()
}

/// A distribution with its truncations.
struct Truncated {
    temperature: f64,
    top_k: Option<usize>,
    min_p: f64,
    top_p: f64,
}

impl Truncated {
    /// The entry drawn by a uniform number, by inversion.
    fn draw(&self, logs: &[f64], uniform: f64) -> usize {
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.temperature == 0.0 {
            return logs.iter().position(|log| *log == largest).unwrap();
        }
        let mut sorted = logs.to_vec();
        sorted.sort_by(|left, right| right.total_cmp(left));
        let threshold =
            self.top_k.map_or(f64::NEG_INFINITY, |k| sorted[(k - 1).min(logs.len() - 1)]);
        let weight = |log: f64| ((log - largest) / self.temperature).exp();
        let keeps = |log: f64| log >= threshold && weight(log) >= self.min_p;
        let mut weights: Vec<f64> =
            logs.iter().map(|&log| if keeps(log) { weight(log) } else { 0.0 }).collect();
        if self.top_p < 1.0 {
            let sum: f64 = weights.iter().sum();
            let mut order: Vec<usize> = (0..weights.len()).collect();
            order.sort_by(|left, right| weights[*right].total_cmp(&weights[*left]));
            let mut mass = 0.0;
            for (rank, entry) in order.into_iter().enumerate() {
                mass += weights[entry] / sum;
                if rank > 0 && mass > self.top_p {
                    weights[entry] = 0.0;
                }
            }
        }
        let mut rest = uniform * weights.iter().sum::<f64>();
        let likely = |(_, weight): &(usize, &f64)| **weight > 0.0;
        let mut last = 0;
        for (entry, weight) in weights.iter().enumerate().filter(likely) {
            last = entry;
            if rest < *weight {
                break;
            }
            rest -= weight;
        }
        last
    }
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    logits.iter().map(|logit| logit - largest - sum.ln()).collect()
}

/// The expected draw of one row: token, log-probability, class and its log-probability.
fn expected(
    by_class: &[f32],
    logits: &[f32],
    sampling: Sampling,
    uniforms: [f64; 2],
) -> (u32, f64, u32, f64) {
    let classes = log_softmax(by_class);
    let start = |class: usize| class.checked_sub(1).map_or(0, |before| ENDS[before] as usize);
    let within = |class: usize| log_softmax(&logits[start(class)..ENDS[class] as usize]);
    let TokenSampling { temperature, top_k, min_p } = sampling.token;
    let tokens = Truncated { temperature, top_k, min_p: min_p.unwrap_or(0.0), top_p: 1.0 };
    let (class, id, log) = if let Some(ClassSampling { temperature, top_k, top_p }) = sampling.class
    {
        let class = Truncated { temperature, top_k, min_p: 0.0, top_p }.draw(&classes, uniforms[0]);
        let logs: Vec<f64> = within(class).iter().map(|log| log + classes[class]).collect();
        let token = tokens.draw(&logs, uniforms[1]);
        (class, start(class) + token, logs[token])
    } else {
        let logs: Vec<f64> = (0..ENDS.len())
            .flat_map(|class| within(class).into_iter().map(move |log| (class, log)))
            .map(|(class, log)| log + classes[class])
            .collect();
        let id = tokens.draw(&logs, uniforms[0]);
        (ENDS.iter().position(|end| id < *end as usize).unwrap(), id, logs[id])
    };
    (id as u32, log, class as u32, classes[class])
}

fn check<P: Precision>() {
    let mut layout = Layout::new();
    let classes = layout.add("classes", &[ENDS.len(), WIDTH], true);
    let tokens = layout.add("tokens", &[ENDS[4] as usize, WIDTH], true);
    let head = Head { tokens, classes: Some(Classes { vectors: classes, ends: ENDS.to_vec() }) };
    let bench = Bench::new(Cuda::<P>::new(0).unwrap(), &layout);
    let (gpu, weights) = (&bench.device, &bench.weights);
    // Logits with a standard deviation of about two: neither flat nor certain.
    let hidden: Vec<f32> = super::random(ROWS * WIDTH, 9).iter().map(|x| 0.25 * x).collect();
    let hidden = bench.upload(&hidden);
    let mut logits = bench.floats(ROWS * ENDS[4] as usize);
    gpu.logits(ROWS, tokens, weights, &hidden, &mut logits);
    let by_token = bench.read_floats(&logits, ROWS * tokens.rows);
    gpu.logits(ROWS, classes, weights, &hidden, &mut logits);
    let by_class = bench.read_floats(&logits, ROWS * ENDS.len());
    let mut draws = gpu.draws(ROWS).unwrap().expect("a GPU draws");
    let mut random = Philox::new(4, [0; 3]);
    let uniforms: Vec<[f64; 2]> = (0..ROWS).map(|_| [random.uniform(), random.uniform()]).collect();
    for sampling in settings() {
        assert!(gpu.can_draw(&head, &sampling));
        let drawn = gpu
            .draw(&head, &sampling, weights, &hidden, &uniforms, &mut logits, &mut draws)
            .unwrap();
        let mut wrong = 0;
        for (row, drawn) in drawn.iter().enumerate() {
            let rows =
                (&by_class[row * ENDS.len()..][..ENDS.len()], &by_token[row * tokens.rows..]);
            let (id, log, class, class_log) =
                expected(rows.0, &rows.1[..tokens.rows], sampling, uniforms[row]);
            let Drawn { log_probability, class: drawn_class, .. } = *drawn;
            if drawn.id != Some(id) {
                wrong += 1;
                continue;
            }
            let (drawn_class, drawn_class_log) = drawn_class.unwrap();
            assert_eq!(drawn_class, class, "{sampling:?} row {row}");
            assert!((f64::from(drawn_class_log) - class_log).abs() < 1e-4);
            assert!((f64::from(log_probability) - log).abs() < 1e-4, "{sampling:?} row {row}");
        }
        // With rounded sums, a number at the boundary of two tokens may select either.
        println!("{sampling:?}: {wrong} of {ROWS} differ");
        assert!(wrong <= 2, "{sampling:?}: {wrong} of {ROWS} differ");
    }
    plain_draws_are_those_of_one_class(&bench, &Head::plain(tokens), &hidden, &by_token);
}

/// The most likely token of the plain softmax, with its probability.
fn plain_draws_are_those_of_one_class<P: Precision>(
    bench: &Bench<Cuda<P>>,
    head: &Head,
    hidden: &<Cuda<P> as f2_engine::Memory>::Activations,
    by_token: &[f32],
) {
    let mut logits = bench.floats(ROWS * head.tokens.rows);
    let mut draws = bench.device.draws(ROWS).unwrap().expect("a GPU draws");
    let token = TokenSampling { temperature: 0.0, top_k: None, min_p: None };
    let sampling = Sampling { class: None, token };
    let drawn = bench
        .device
        .draw(head, &sampling, &bench.weights, hidden, &[[0.9; 2]; ROWS], &mut logits, &mut draws)
        .unwrap();
    for (drawn, logits) in drawn.iter().zip(by_token.chunks(head.tokens.rows)) {
        let logs = log_softmax(logits);
        let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let id = logs.iter().position(|log| *log == best).unwrap();
        assert_eq!((drawn.id, drawn.class), (Some(id as u32), None));
        assert!((f64::from(drawn.log_probability) - best).abs() < 1e-4);
    }
}

#[test]
fn draws_follow_their_distribution() {
    if let Err(reason) = cuda_is_present() {
        eprintln!("skipped: {reason}");
        return;
    }
    check::<F32>();
    check::<Bf16>();
}
