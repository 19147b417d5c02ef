//! Whole texts: what a continuation may depend on, and what decoding methods have in common.

mod beams;
mod refusals;
#[path = "../workshop/mod.rs"]
mod workshop;

use std::cell::Cell;

use f2_engine::prelude::*;
use f2_engine::{Cpu, Sequences};
use f2_lm::Error;
use f2_lm::decode::{
    BeamSearch, ClassDraw, Continuation, ContrastiveSearch, Dry, Event, Factorisation, Generated,
    Generator, Mirostat, Request, SmallClass, Strategy, Truncations, Xtc,
};
use f2_lm::model::{Batch, Feed, Incremental, Recordings, Workspace};
use proptest::prelude::*;

const VOCABULARY: usize = 61;

type Model = f2_lm::model::Model<Cpu>;

/// Models with peaked distributions: ten times the usual initial weights.
trait Opinionated: Sized {
    fn new(vocabulary: usize, class_ends: &[u32], threads: usize) -> Self;

    fn plain() -> Self {
        Self::new(VOCABULARY, &[], 2)
    }

    fn f2() -> Self {
        Self::new(VOCABULARY, &[1, 4, 20, VOCABULARY as u32], 2)
    }

    fn generate(&self, request: &Request<'_>) -> Result<Generated, Error>;

    fn texts(&self, request: &Request<'_>) -> Vec<Continuation> {
        self.generate(request).unwrap().texts
    }
}

impl Opinionated for Model {
    fn new(vocabulary: usize, class_ends: &[u32], threads: usize) -> Self {
        let device = Cpu::new(threads).unwrap();
        let decoder = workshop::decoder(vocabulary, class_ends.to_vec());
        let mut model = Self::initialised(device, decoder.clone(), 9).unwrap();
        for named in decoder.layout.parameters().iter().filter(|named| named.shape.len() == 2) {
            let mut values = model.values(named.parameter).unwrap();
            values.iter_mut().for_each(|value| *value *= 10.0);
            model.set_values(named.parameter, &values);
        }
        model
    }

    fn generate(&self, request: &Request<'_>) -> Result<Generated, Error> {
        Generator { model: self }.generate(request, &mut |_| {}, &|| false)
    }
}

fn prompts() -> Vec<Vec<u32>> {
    (0..7_u32).map(|prompt| (0..=prompt * 2).map(|i| (i * 13 + prompt) % 61).collect()).collect()
}

fn request<'a>(prompts: &'a [Vec<u32>], strategy: &'a Strategy) -> Request<'a> {
    Request {
        prompts,
        samples: 1,
        new_tokens: 12,
        strategy,
        seed: 5,
        end: None,
        stops: None,
        earlier: &[],
        batch: Some(4),
    }
}

fn truncated(truncations: Truncations) -> Strategy {
    Strategy { truncations, ..Strategy::default() }
}

fn deterministic(strategy: Strategy) -> Strategy {
    Strategy { deterministic: true, ..strategy }
}

/// Top-k with a k that grows with the class.
fn grown(k: usize, top_k_growth: f64) -> Strategy {
    let draw = ClassDraw { top_k_growth, ..ClassDraw::default() };
    Strategy { factorisation: Factorisation::Decoupled(draw), ..Strategy::top_k(k) }
}

/// Strategies of every kind.
fn strategies() -> Vec<Strategy> {
    let all = Truncations::default();
    let fill = ClassDraw { top_p: 0.9, small: SmallClass::Fill, ..ClassDraw::default() };
    let beam = |groups| Strategy {
        beam: Some(BeamSearch { width: 4, groups, ..BeamSearch::default() }),
        ..Strategy::default()
    };
    let dry = Dry { breakers: vec![7, 40], ..Dry::default() };
    let contrastive =
        Strategy { contrastive_search: Some(ContrastiveSearch::default()), ..Strategy::default() };
    vec![
        Strategy::greedy(),
        Strategy::greedy().joint(),
        Strategy::default(),
        Strategy::top_k(3),
        Strategy { factorisation: Factorisation::Decoupled(fill), ..Strategy::top_k(5) },
        grown(2, 0.4),
        deterministic(grown(1, 0.7)),
        Strategy { temperature: 0.9, ..truncated(all.with_top_p(0.8)) }.joint(),
        truncated(all.with_typical(0.8).with_min_p(0.05)),
        truncated(all.with_top_n_sigma(1.2)),
        truncated(all.with_epsilon_cutoff(0.01).with_eta_cutoff(0.02)),
        Strategy {
            beam: Some(BeamSearch { iterations: 3, ..BeamSearch::default() }),
            ..Strategy::default()
        },
        Strategy { mirostat: Some(Mirostat { tau: 2.0, eta: 0.4 }), ..Strategy::default() },
        Strategy { dry: Some(dry.clone()), xtc: Some(Xtc::default()), ..Strategy::default() },
        Strategy { dry: Some(dry.clone()), ..Strategy::greedy() }.joint(),
        Strategy { dry: Some(dry), ..beam(1) },
        contrastive.clone(),
        Strategy { repetition_penalty: 1.2, ..contrastive }.joint(),
        Strategy { repetition_penalty: 1.4, block_ngrams: 2, ..Strategy::top_k(8) },
        deterministic(Strategy::top_k(3)),
        deterministic(Strategy { temperature: 1.5, ..Strategy::default() }.joint()),
        beam(1),
        beam(2),
        beam(4).joint(),
    ]
}

/// A token with the bits of its log-probabilities.
type Bits = (u32, u32, Option<(u32, u32)>);

fn bits(text: &Continuation) -> Vec<Bits> {
    let token = |token: &f2_lm::decode::Token| {
        let class = token.class.map(|(class, log)| (class, log.to_bits()));
        (token.id, token.log_probability.to_bits(), class)
    };
    text.tokens.iter().map(token).collect()
}

/// The same bits, so also the same text and log-probabilities within any tolerance.
#[test]
fn a_text_does_not_depend_on_its_batch() {
    let prompts = prompts();
    for ends in [&[][..], &[1, 4, 20, VOCABULARY as u32]] {
        let (model, alone) = (Model::new(VOCABULARY, ends, 2), Model::new(VOCABULARY, ends, 1));
        for strategy in strategies() {
            let request = Request { samples: 2, ..request(&prompts, &strategy) };
            let texts = model.texts(&request);
            assert_eq!(texts.len(), prompts.len() * 2);
            for batch in [None, Some(1), Some(3), Some(100)] {
                let again = model.texts(&Request { batch, ..request.clone() });
                assert!(texts.iter().map(bits).eq(again.iter().map(bits)), "{strategy:?}");
            }
            let backwards: Vec<Vec<u32>> = prompts.iter().rev().cloned().collect();
            let again = alone.texts(&Request { prompts: &backwards, ..request.clone() });
            for text in &texts {
                let other = prompts.len() - 1 - text.prompt;
                let same = &again[other * 2 + text.sample];
                assert_eq!(bits(text), bits(same), "{strategy:?}");
            }
        }
    }
}

/// With and without the cache, logits are the same to the last digits of `f32`.
#[test]
fn the_cache_changes_nothing() {
    for model in [Model::plain(), Model::f2()] {
        let Model { device, decoder, weights } = &model;
        let ids: Vec<u32> = (0..30).map(|i| (i * 17 + 3) % VOCABULARY as u32).collect();
        let mut workspace = Workspace::new(&model, 30).unwrap();
        let sequences = Sequences { count: 1, length: 30 };
        let batch = Batch { sequences, inputs: &ids, dropout: None };
        workspace.forward(&model, batch, &mut Recordings::default());
        let mut whole = device.floats(30 * VOCABULARY).unwrap();
        device.logits(30, decoder.head.tokens, weights, workspace.hidden(), &mut whole);
        let mut memory = Incremental::new(&model, 2, 30).unwrap();
        let mut logits = device.floats(VOCABULARY).unwrap();
        let mut cached = 0;
        for length in [7, 1, 1, 5, 1, 15] {
            let tokens = &ids[cached..cached + length];
            let feed = Feed { sequence: 1, cached, tokens };
            memory.advance(&model, &[feed]).unwrap();
            cached += length;
            device.logits(1, decoder.head.tokens, weights, memory.hidden(), &mut logits);
            for (found, expected) in
                logits.iter().zip(&whole[(cached - 1) * VOCABULARY..][..VOCABULARY])
            {
                assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0));
            }
        }
    }
}

/// A prompt that is fed in several passes ends in the same state.
#[test]
fn long_prompts_are_cut_without_a_trace() {
    let model = Model::plain();
    let Model { device, decoder, .. } = &model;
    let width = decoder.shape.model.width;
    let ids: Vec<u32> = (0..45).map(|i| (i * 29 + 1) % VOCABULARY as u32).collect();
    let state = |feeds: &[Feed<'_>], row: usize| {
        let mut memory = Incremental::new(&model, 16, 45).unwrap();
        memory.advance(&model, feeds).unwrap();
        let mut states = vec![0.0; feeds.len() * width];
        device.read_activations(memory.hidden(), &mut states).unwrap();
        states[row * width..][..width].to_vec()
    };
    let feed = |sequence| Feed { sequence, cached: 0, tokens: &ids };
    // 720 rows: the sixth prompt straddles two passes.
    let many: Vec<Feed<'_>> = (0..16).map(feed).collect();
    let alone = state(&[feed(0)], 0);
    for row in [0, 5, 15] {
        assert_eq!(state(&many, row), alone);
    }
}

/// The k does not grow with an exponent of 0, nor among classes of equal size.
#[test]
fn a_k_that_does_not_grow_is_one_k_for_all_classes() {
    let prompts = prompts();
    let even = Model::new(60, &[20, 40, 60], 2);
    for (model, growth) in [(Model::f2(), 0.0), (even, 0.8)] {
        for k in [1, 3, 8] {
            let texts = |strategy: &Strategy| -> Vec<_> {
                let texts = model.texts(&request(&prompts, strategy));
                texts.iter().map(bits).collect()
            };
            assert_eq!(texts(&grown(k, growth)), texts(&Strategy::top_k(k)));
        }
    }
    let texts = |strategy| Model::f2().texts(&request(&prompts, &strategy));
    let ids = |texts: Vec<Continuation>| texts.iter().map(Continuation::ids).collect::<Vec<_>>();
    assert_ne!(ids(texts(grown(3, 0.8))), ids(texts(Strategy::top_k(3))));
}

/// Except for the class vector, all parameters are those of the plain model.
#[test]
fn one_class_is_the_plain_model() {
    let prompts = prompts();
    let (plain, one) = (Model::plain(), Model::new(VOCABULARY, &[VOCABULARY as u32], 2));
    for strategy in strategies().into_iter().map(Strategy::joint) {
        let ids = |model: &Model| -> Vec<Vec<u32>> {
            model.texts(&request(&prompts, &strategy)).iter().map(Continuation::ids).collect()
        };
        assert_eq!(ids(&plain), ids(&one), "{strategy:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocked_ngrams_do_not_come_twice(n in 1_usize..4, seed: u64, beam: bool, joint: bool) {
        let model = Model::f2();
        let prompts = prompts();
        let mut strategy = Strategy { block_ngrams: n, ..Strategy::default() };
        strategy.beam = beam.then(BeamSearch::default);
        let strategy = if joint { strategy.joint() } else { strategy };
        for text in model.texts(&Request { seed, ..request(&prompts, &strategy) }) {
            let whole = [&prompts[text.prompt][..], &text.ids()].concat();
            let mut ngrams: Vec<&[u32]> = whole.windows(n).collect();
            let prompt = &prompts[text.prompt];
            // The prompt may repeat itself; the continuation may not.
            let repeats_in_prompt = prompt.windows(n).count() - distinct(prompt.windows(n).collect());
            let count = ngrams.len();
            ngrams.sort_unstable();
            prop_assert_eq!(count - distinct(ngrams), repeats_in_prompt);
        }
    }
}

fn distinct(mut ngrams: Vec<&[u32]>) -> usize {
    ngrams.sort_unstable();
    ngrams.dedup();
    ngrams.len()
}

#[test]
fn a_vocabulary_that_is_used_up_repeats() {
    let model = Model::new(5, &[1, 5], 1);
    let prompts = vec![vec![0]];
    let strategy = Strategy { block_ngrams: 1, ..Strategy::default() };
    let text = &model.texts(&request(&prompts, &strategy))[0];
    let first: Vec<u32> = text.ids()[..4].to_vec();
    assert_eq!(distinct(first.chunks(1).collect()), 4);
    assert_eq!(text.tokens.len(), 12);
}

#[test]
fn a_text_longer_than_the_model_sees_goes_on() {
    let model = Model::f2();
    let positions = model.decoder.shape.positions as u32;
    let prompts = vec![(0..positions + 9).map(|i| i % 61).collect(), vec![2]];
    let strategy = Strategy::top_k(5);
    let texts = model.texts(&Request { new_tokens: 120, ..request(&prompts, &strategy) });
    assert!(texts.iter().all(|text| text.tokens.len() == 120));
    let alone =
        model.texts(&Request { new_tokens: 120, batch: Some(1), ..request(&prompts, &strategy) });
    assert!(texts.iter().map(bits).eq(alone.iter().map(bits)));
}

#[test]
fn an_end_token_ends_a_text_and_the_next_begins() {
    let model = Model::plain();
    let prompts = prompts();
    let strategy = Strategy::default();
    let full = model.texts(&request(&prompts, &strategy));
    let end = full[0].tokens[4].id;
    let ended = model.texts(&Request { end: Some(end), ..request(&prompts, &strategy) });
    for (full, ended) in full.iter().zip(&ended) {
        let expected: Vec<u32> = full.ids().into_iter().take_while(|id| *id != end).collect();
        assert_eq!(ended.ids(), expected);
    }
    assert!(ended[0].tokens.len() <= 4);
}

#[test]
fn stopping_leaves_what_is_finished() {
    let model = Model::plain();
    let prompts = prompts();
    let strategy = Strategy::default();
    let request = Request { batch: Some(2), ..request(&prompts, &strategy) };
    let whole = model.texts(&request);
    let (finished, tokens) = (Cell::new(0), Cell::new(0));
    let mut observer = |event: Event<'_>| match event {
        Event::Finished(_) => finished.set(finished.get() + 1),
        Event::Token { .. } => tokens.set(tokens.get() + 1),
        Event::Ready | Event::Step { .. } => {}
    };
    let generator = Generator { model: &model };
    let stop = || finished.get() == 4;
    let stopped = generator.generate(&request, &mut observer, &stop).unwrap();
    assert!(!stopped.complete);
    assert_eq!(stopped.texts, whole[..4]);
    assert_eq!(tokens.get(), 4 * 12);
}

/// In both factorisations the target is for class and token together, provided that drawing the
/// class alone does not exceed it.
#[test]
fn mirostat_keeps_the_surprise_of_a_text() {
    let model = Model::f2();
    let prompts = prompts();
    for tau in [3.9, 4.3] {
        for joint in [false, true] {
            let mirostat = Some(Mirostat { tau, eta: 0.2 });
            let strategy = Strategy { mirostat, ..Strategy::default() };
            let strategy = if joint { strategy.joint() } else { strategy };
            let texts = model.texts(&Request { new_tokens: 200, ..request(&prompts, &strategy) });
            let tokens: usize = texts.iter().map(|text| text.tokens.len()).sum();
            let nats: f64 = texts.iter().map(Continuation::log_probability).sum();
            let bits = -nats / std::f64::consts::LN_2 / tokens as f64;
            assert!((bits - tau).abs() < 0.1, "{bits} bits a token instead of {tau}");
        }
    }
}

#[test]
fn seeds_and_samples_differ() {
    let model = Model::f2();
    let prompts = prompts();
    let strategy = Strategy::default();
    let request = Request { samples: 3, ..request(&prompts, &strategy) };
    let texts = model.texts(&request);
    assert_ne!(texts[0].ids(), texts[1].ids());
    let other = model.texts(&Request { seed: 6, ..request.clone() });
    assert_ne!(texts[0].ids(), other[0].ids());
    // A prompt that occurs twice gets further samples.
    let twice = vec![prompts[3].clone(), prompts[3].clone()];
    let two = model.texts(&Request { prompts: &twice, samples: 1, ..request.clone() });
    assert_eq!(two[0].ids(), texts[9].ids());
    assert_eq!(two[1].ids(), texts[10].ids());
}

/// The seed has no effect, and a prompt that occurs again gets the same texts; its samples differ.
#[test]
fn a_prompt_decides_its_deterministic_texts() {
    let prompts = prompts();
    for model in [Model::plain(), Model::f2()] {
        let strategy = deterministic(Strategy::top_k(5));
        let request = Request { samples: 2, ..request(&prompts, &strategy) };
        let texts = model.texts(&request);
        assert_ne!(texts[0].ids(), texts[1].ids());
        let again = model.texts(&Request { seed: 6, ..request.clone() });
        assert!(texts.iter().map(bits).eq(again.iter().map(bits)));
        let twice = vec![prompts[3].clone(); 2];
        let later = Request { prompts: &twice, earlier: &prompts, ..request.clone() };
        let later = model.texts(&later);
        assert!(later.iter().map(Continuation::ids).eq([6, 7, 6, 7].map(|text| texts[text].ids())));
    }
}
