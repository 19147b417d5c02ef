//! Compares tokens drawn by the GPU with draws from the same logits in `f64`.

use f2_engine::prelude::*;
use f2_engine::{
    Bf16, ClassSampling, Classes, Cuda, Drawn, F32, Head, Layout, Philox, Precision, Sampling,
    TokenSampling, cuda_is_present,
};

use super::Bench;

const ROWS: usize = 100;
const WIDTH: usize = 32;
const ENDS: [u32; 5] = [2, 40, 300, 301, 3000];

/// The settings under test.
fn settings() -> Vec<Sampling> {
    let class = |temperature, top_k, top_p| Some(ClassSampling { temperature, top_k, top_p });
    let all = TokenSampling::all;
    let mut settings = vec![
        (None, all(1.0)),
        (None, all(0.0)),
        (None, TokenSampling { top_k: Some(40), min_p: Some(0.05), ..all(0.7) }),
        (class(1.0, None, 1.0), TokenSampling { top_k: Some(3), ..all(1.0) }),
        (class(0.0, None, 1.0), TokenSampling { top_k: Some(5), ..all(0.0) }),
        (class(1.3, Some(3), 0.9), TokenSampling { min_p: Some(0.01), ..all(1.0) }),
        (class(1.0, None, 0.5), TokenSampling { top_k: Some(1), ..all(2.0) }),
    ];
    let rules = [
        TokenSampling { top_n_sigma: Some(1.5), ..all(2.0) },
        TokenSampling { typical: Some(0.5), ..all(1.2) },
        TokenSampling { top_p: Some(0.6), ..all(0.8) },
        TokenSampling { epsilon_cutoff: Some(0.003), ..all(1.0) },
        TokenSampling { eta_cutoff: Some(0.01), ..all(1.1) },
        TokenSampling { top_k: Some(100), top_n_sigma: Some(2.5), top_p: Some(0.9), ..all(1.0) },
        TokenSampling { top_k: Some(25), ..all(3.0) },
        TokenSampling { top_k: Some(800), ..all(3.0) },
        TokenSampling { typical: Some(0.9), top_p: Some(0.7), min_p: Some(0.3), ..all(1.5) },
        TokenSampling { typical: Some(0.2), epsilon_cutoff: Some(0.2), ..all(1.0) },
        TokenSampling { min_p: Some(1e-3), epsilon_cutoff: Some(2e-4), ..all(1.0) },
        TokenSampling { top_p: Some(0.95), eta_cutoff: Some(0.02), ..all(1.0) },
    ];
    for token in rules {
        settings.extend([(None, token), (class(1.0, None, 1.0), token)]);
    }
    settings.into_iter().map(|(class, token)| Sampling { class, token }).collect()
}

/// Probabilities, zero for what has been dropped.
struct Kept(Vec<f64>);

impl Kept {
    /// Those with at least the logarithm `least`, at a temperature.
    fn from_logs(logs: &[f64], least: f64, temperature: f64) -> Self {
        let largest = largest(logs);
        let weight = |log: f64| ((log - largest) / temperature).exp();
        let weights = logs.iter().map(|&log| if log >= least { weight(log) } else { 0.0 });
        Self(weights.collect()).only(|_| true)
    }

    /// The entries that `keeps` accepts, normalised.
    fn only(self, keeps: impl Fn(usize) -> bool) -> Self {
        let keep = |(entry, q)| if keeps(entry) { q } else { 0.0 };
        let weights: Vec<f64> = self.0.into_iter().enumerate().map(keep).collect();
        let sum: f64 = weights.iter().sum();
        Self(weights.into_iter().map(|weight| weight / sum).collect())
    }

    /// The entries from the least to the greatest rank, with the mass before and up to each.
    fn ranked(&self, rank: impl Fn(f64) -> f64) -> Vec<(usize, f64, f64)> {
        let mut order: Vec<usize> =
            (0..self.0.len()).filter(|&entry| self.0[entry] > 0.0).collect();
        order.sort_by(|one, other| rank(self.0[*one]).total_cmp(&rank(self.0[*other])));
        let mut mass = 0.0;
        let with_masses = |entry: usize| {
            let before = mass;
            mass += self.0[entry];
            (entry, before, mass)
        };
        order.into_iter().map(with_masses).collect()
    }

    /// The fewest entries that reach the mass `p`, those of the least rank first.
    fn until(self, p: f64, rank: impl Fn(f64) -> f64) -> Self {
        let mut keeps = vec![false; self.0.len()];
        for (entry, ..) in self.ranked(rank).into_iter().filter(|(_, before, _)| *before < p) {
            keeps[entry] = true;
        }
        self.only(|entry| keeps[entry])
    }

    /// The entries of at least a probability, and the most likely.
    fn from(self, cutoff: f64) -> Self {
        let cutoff = cutoff.min(largest(&self.0));
        let keeps: Vec<bool> = self.0.iter().map(|q| *q >= cutoff).collect();
        self.only(|entry| keeps[entry])
    }

    fn entropy(&self) -> f64 {
        self.0.iter().filter(|q| **q > 0.0).map(|q| -q * q.ln()).sum()
    }

    /// The entry drawn by a uniform number, by inversion.
    fn draw(&self, uniform: f64) -> usize {
        let mut rest = uniform;
        let mut last = 0;
        for (entry, q) in self.0.iter().enumerate().filter(|(_, q)| **q > 0.0) {
            last = entry;
            if rest < *q {
                break;
            }
            rest -= q;
        }
        last
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn kth_largest(values: &[f64], k: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(|left, right| right.total_cmp(left));
    sorted[(k - 1).min(values.len() - 1)]
}

fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

fn first_largest(logs: &[f64]) -> usize {
    logs.iter().position(|log| *log == largest(logs)).unwrap()
}

fn draw_class(sampling: ClassSampling, logs: &[f64], uniform: f64) -> usize {
    let ClassSampling { temperature, top_k, top_p } = sampling;
    if temperature == 0.0 {
        return first_largest(logs);
    }
    let least = top_k.map_or(f64::NEG_INFINITY, |k| kth_largest(logs, k));
    let classes = Kept::from_logs(logs, least, temperature);
    let ranked = classes.ranked(|q| -q).into_iter().enumerate();
    let within = ranked.filter(|(rank, (.., mass))| *rank == 0 || *mass <= top_p + 1e-12);
    let kept: Vec<usize> = within.map(|(_, (entry, ..))| entry).collect();
    classes.only(|entry| kept.contains(&entry)).draw(uniform)
}

fn draw_token(sampling: TokenSampling, logs: &[f64], uniform: f64) -> usize {
    let TokenSampling {
        temperature,
        top_n_sigma,
        top_k,
        typical,
        top_p,
        min_p,
        epsilon_cutoff,
        eta_cutoff,
    } = sampling;
    if temperature == 0.0 {
        return first_largest(logs);
    }
    let bounds = [
        top_n_sigma.map(|n| largest(logs) - n * deviation(logs)),
        top_k.map(|k| kth_largest(logs, k)),
    ];
    let least = bounds.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
    let mut tokens = Kept::from_logs(logs, least, temperature);
    if let Some(p) = typical {
        let entropy = tokens.entropy();
        tokens = tokens.until(p, |q| (-q.ln() - entropy).abs());
    }
    if let Some(p) = top_p {
        tokens = tokens.until(p, |q| -q);
    }
    if let Some(p) = min_p {
        let cutoff = p * largest(&tokens.0);
        tokens = tokens.from(cutoff);
    }
    if let Some(epsilon) = epsilon_cutoff {
        tokens = tokens.from(epsilon);
    }
    if let Some(eta) = eta_cutoff {
        let cutoff = eta.min(eta.sqrt() * (-tokens.entropy()).exp());
        tokens = tokens.from(cutoff);
    }
    tokens.draw(uniform)
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
    let (class, id, log) = if let Some(sampled) = sampling.class {
        let class = draw_class(sampled, &classes, uniforms[0]);
        let logs: Vec<f64> = within(class).iter().map(|log| log + classes[class]).collect();
        let token = draw_token(sampling.token, &logs, uniforms[1]);
        (class, start(class) + token, logs[token])
    } else {
        let logs: Vec<f64> = (0..ENDS.len())
            .flat_map(|class| within(class).into_iter().map(move |log| (class, log)))
            .map(|(class, log)| log + classes[class])
            .collect();
        let id = draw_token(sampling.token, &logs, uniforms[0]);
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
        assert!(gpu.can_draw(&head));
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
        assert!(wrong <= 1, "{sampling:?}: {wrong} of {ROWS} differ");
    }
    plain_draws_are_those_of_all_tokens(&bench, &Head::plain(tokens), &hidden, &by_token);
    of_equal_tokens_the_first_are_kept(&bench, &Head::plain(tokens));
}

fn plain_draws_are_those_of_all_tokens<P: Precision>(
    bench: &Bench<Cuda<P>>,
    head: &Head,
    hidden: &<Cuda<P> as f2_engine::Memory>::Activations,
    by_token: &[f32],
) {
    let mut logits = bench.floats(ROWS * head.tokens.rows);
    let mut draws = bench.device.draws(ROWS).unwrap().expect("a GPU draws");
    let uniform = |row: usize| row as f64 / ROWS as f64;
    let uniforms: Vec<[f64; 2]> = (0..ROWS).map(|row| [uniform(row); 2]).collect();
    for sampling in settings().into_iter().filter(|sampling| sampling.class.is_none()) {
        let drawn = bench
            .device
            .draw(head, &sampling, &bench.weights, hidden, &uniforms, &mut logits, &mut draws)
            .unwrap();
        let mut wrong = 0;
        for (row, logits) in by_token.chunks(head.tokens.rows).enumerate() {
            let logs = log_softmax(logits);
            let id = draw_token(sampling.token, &logs, uniform(row));
            if drawn[row].id != Some(id as u32) {
                wrong += 1;
                continue;
            }
            assert_eq!(drawn[row].class, None);
            assert!((f64::from(drawn[row].log_probability) - logs[id]).abs() < 1e-4);
        }
        println!("plain, {sampling:?}: {wrong} of {ROWS} differ");
        assert!(wrong <= 1, "plain, {sampling:?}: {wrong} of {ROWS} differ");
    }
}

/// Of tokens that all have the same probability a mass of 0.1001 keeps the first 301 of 3000.
fn of_equal_tokens_the_first_are_kept<P: Precision>(bench: &Bench<Cuda<P>>, head: &Head) {
    let hidden = bench.upload(&[0.0; WIDTH]);
    let mut logits = bench.floats(head.tokens.rows);
    let mut draws = bench.device.draws(1).unwrap().expect("a GPU draws");
    let all = TokenSampling::all(1.0);
    let top_p = TokenSampling { top_p: Some(0.1001), ..all };
    let typical = TokenSampling { typical: Some(0.1001), ..all };
    for token in [top_p, typical] {
        let sampling = Sampling { class: None, token };
        let uniforms = [[0.9999; 2]];
        let drawn = bench
            .device
            .draw(head, &sampling, &bench.weights, &hidden, &uniforms, &mut logits, &mut draws)
            .unwrap();
        assert_eq!(drawn[0].id, Some(300), "{sampling:?}");
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
