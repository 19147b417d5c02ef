//! Beam search compared with greedy decoding, a single group, and exhaustive search.

use f2_engine::prelude::*;
use f2_lm::decode::{BeamSearch, Continuation, Request, Strategy};
use f2_lm::model::{Feed, Incremental};

use super::{Model, Opinionated as _, bits, prompts, request};

#[test]
fn a_beam_of_one_is_greedy() {
    let prompts = prompts();
    for model in [Model::plain(), Model::f2()] {
        for joint in [false, true] {
            for end in [None, Some(8), Some(40)] {
                let beam = BeamSearch { width: 1, ..BeamSearch::default() };
                let beam = Strategy { beam: Some(beam), ..Strategy::default() };
                let [greedy, beam] = [Strategy::greedy(), beam]
                    .map(|strategy| if joint { strategy.joint() } else { strategy });
                let greedy = model.texts(&Request { end, ..request(&prompts, &greedy) });
                let beam = model.texts(&Request { end, ..request(&prompts, &beam) });
                assert!(greedy.iter().map(bits).eq(beam.iter().map(bits)));
            }
        }
    }
}

#[test]
fn one_diverse_group_is_beam_search_and_more_differ() {
    let prompts = prompts();
    let model = Model::f2();
    let beams = |groups, diversity| {
        let beam = BeamSearch { width: 4, groups, diversity, ..BeamSearch::default() };
        let strategy = Strategy { beam: Some(beam), ..Strategy::default() };
        model.texts(&Request { samples: 4, ..request(&prompts, &strategy) })
    };
    assert_eq!(beams(1, 0.0), beams(1, 3.0));
    let firsts = |texts: Vec<Continuation>| {
        let firsts = texts.chunks(4).map(|texts| {
            let mut ids: Vec<u32> = texts.iter().map(|text| text.tokens[0].id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.len()
        });
        firsts.collect::<Vec<usize>>()
    };
    // A penalty no probability outweighs: four groups begin with four different tokens.
    assert_eq!(firsts(beams(4, 1e6)), [4; 7]);
    assert!(firsts(beams(1, 0.0)).iter().sum::<usize>() < 28);
}

/// A beam as wide as the vocabulary holds every first token, and so finds the best texts of two
/// tokens in the order that scoring all of them gives.
#[test]
fn a_beam_as_wide_as_the_vocabulary_is_exhaustive() {
    let vocabulary = 25;
    for ends in [&[][..], &[25][..], &[1, 4, 25]] {
        let model = Model::new(vocabulary, ends, 1);
        let beam = BeamSearch { width: vocabulary, ..BeamSearch::default() };
        let strategy = Strategy { beam: Some(beam), ..Strategy::default() };
        let prompts = vec![vec![3, 1]];
        let mut all: Vec<(f64, [u32; 2])> = Vec::new();
        for (first, one) in (0..).zip(log_probabilities(&model, &[3, 1])) {
            for (second, two) in (0..).zip(log_probabilities(&model, &[3, 1, first])) {
                all.push((one + two, [first, second]));
            }
        }
        all.sort_by(|left, right| right.0.total_cmp(&left.0));
        let samples = vocabulary;
        let request = Request { samples, new_tokens: 2, ..request(&prompts, &strategy) };
        let found = model.texts(&request);
        assert_eq!((found.len(), all.len()), (samples, vocabulary * vocabulary));
        for (found, (score, ids)) in found.iter().zip(&all) {
            assert_eq!(found.ids(), ids, "{ends:?}");
            assert!((found.log_probability() - score).abs() < 1e-4, "{ends:?}");
        }
    }
}

/// The log-probability of every token after a prompt.
fn log_probabilities(model: &Model, prompt: &[u32]) -> Vec<f64> {
    let Model { device, decoder, weights } = model;
    let mut memory = Incremental::new(model, 1, prompt.len()).unwrap();
    let feed = Feed { sequence: 0, cached: 0, tokens: prompt };
    memory.advance(model, &[feed]).unwrap();
    let mut logits = device.floats(decoder.shape.vocabulary).unwrap();
    device.log_posterior(1, &decoder.head, weights, memory.hidden(), &mut logits);
    logits.iter().map(|log| f64::from(*log)).collect()
}
