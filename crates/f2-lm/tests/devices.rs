//! Work shared by several devices gives the same results as one device.

mod workshop;

use std::sync::atomic::{AtomicUsize, Ordering};

use f2_engine::Cpu;
use f2_lm::decode::{BeamSearch, Event, Generated, Request, Strategy, generate_on};
use f2_lm::model::Model;
use f2_lm::perplexity::{Contexts, Likelihood, ScoredWindows, SlidingWindows, score_on};
use f2_lm::{Devices, Error};

const VOCABULARY: usize = 61;

fn load(device: Cpu) -> Result<Model<Cpu>, Error> {
    let classes = vec![1, 4, 20, VOCABULARY as u32];
    Model::initialised(device, workshop::decoder(VOCABULARY, classes), 9)
}

fn open(_: usize) -> Result<Cpu, Error> {
    Ok(Cpu::new(1)?)
}

/// The texts of a request, and the number of tokens that steps reported.
fn generate(devices: &Devices<'_, Cpu>, request: &Request<'_>) -> (Generated, usize) {
    let (mut tokens, mut ready, mut finished) = (0, 0, 0);
    let mut observer = |event: Event<'_>| match event {
        Event::Ready => ready += 1,
        Event::Step { tokens: more } => tokens += more,
        Event::Finished(_) => finished += 1,
        Event::Token { .. } => {}
    };
    let generated = generate_on(devices, &load, request, &mut observer, &|| false).unwrap();
    assert_eq!((ready, finished), (1, generated.texts.len()));
    (generated, tokens)
}

#[test]
fn texts_of_several_devices_are_those_of_one() {
    let prompts: Vec<Vec<u32>> = (0..9_u32)
        .map(|prompt| (0..=prompt).map(|i| (i * 13 + prompt / 2) % 61).collect())
        .collect();
    let beam = BeamSearch { width: 4, groups: 1, ..BeamSearch::default() };
    let beam = Strategy { beam: Some(beam), ..Strategy::default() };
    let deterministic = Strategy { deterministic: true, ..Strategy::top_k(3) };
    let (drawn, greedy) = (Strategy::top_k(3), Strategy::greedy());
    for (strategy, samples) in [(drawn, 3), (greedy, 1), (deterministic, 2), (beam, 2)] {
        for batch in [None, Some(1), Some(4), Some(8)] {
            let request = Request {
                prompts: &prompts,
                samples,
                new_tokens: 7,
                strategy: &strategy,
                seed: 5,
                end: Some(3),
                stops: None,
                earlier: &[],
                batch,
            };
            let expected = generate(&Devices::one(&open), &request);
            assert!(expected.0.complete && expected.0.texts.len() == 9 * samples);
            for count in [1, 2, 3] {
                let written = generate(&Devices::new(count, &open), &request);
                assert_eq!(written, expected, "{count} devices, batch {batch:?}");
            }
        }
    }
}

#[test]
fn a_stopped_request_has_the_texts_that_were_finished() {
    let prompts = vec![vec![1, 2]; 12];
    let strategy = Strategy::greedy();
    let request = Request {
        prompts: &prompts,
        samples: 1,
        new_tokens: 5,
        strategy: &strategy,
        seed: 1,
        end: None,
        stops: None,
        earlier: &[],
        batch: Some(2),
    };
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) > 16;
    let devices = Devices::new(2, &open);
    let generated = generate_on(&devices, &load, &request, &mut |_| {}, &stop).unwrap();
    assert!(!generated.complete && !generated.texts.is_empty() && generated.texts.len() < 12);
    assert!(generated.texts.iter().all(|text| text.tokens.len() == 5));
}

#[test]
fn the_likelihood_of_several_devices_is_that_of_one() {
    let text: Vec<u32> = (0..9_000_u32).map(|i| i * i % 61).collect();
    let score = |devices: &Devices<'_, Cpu>| -> (Likelihood, u64) {
        let sliding = SlidingWindows::new(Some(16), Some(9), 16).unwrap();
        let windows = ScoredWindows::new(&text, sliding, Contexts::Text, 0).unwrap();
        let mut told = 0;
        let found = score_on(devices, &load, &text, &windows, &mut |more| told += more, &|| false);
        (found.unwrap().unwrap(), told)
    };
    let (expected, told) = score(&Devices::one(&open));
    assert_eq!(told, expected.scored);
    for count in [1, 2, 3] {
        let (found, told) = score(&Devices::new(count, &open));
        assert_eq!(
            (found.nats.to_bits(), found.scored),
            (expected.nats.to_bits(), told),
            "{count}"
        );
    }
    let stopped = ScoredWindows::new(
        &text,
        SlidingWindows::new(Some(16), None, 16).unwrap(),
        Contexts::Text,
        0,
    );
    let devices = Devices::new(2, &open);
    let none = score_on(&devices, &load, &text, &stopped.unwrap(), &mut |_| {}, &|| true);
    assert_eq!(none.unwrap(), None);
}
