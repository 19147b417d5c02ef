//! Whole texts of the searches newer than the paper, compared with those `oracle/decoders.py` finds
//! in double precision without a cache.

mod frozen;

use f2_engine::Cpu;
use f2_lm::config::ModelConfig;
use f2_lm::decode::{
    BeamSearch, Contrast, ContrastiveSearch, Generated, Generator, Request, Strategy,
};
use f2_lm::model::{Decoder, Model, ModelShape};
use safetensors::SafeTensors;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    prompts: Vec<Vec<u32>>,
    new_tokens: usize,
    contrastive_search: Vec<Search>,
    contrastive_decoding: Vec<Decoding>,
    contrastive_beams: Vec<Vec<Vec<u32>>>,
    iterative_beam: Iterative,
}

/// Chooses among all tokens of a plain model, from an F² model's full posterior, or a class first.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Way {
    Plain,
    Joint,
    Decoupled,
}

#[derive(Deserialize)]
struct Search {
    way: Way,
    k: usize,
    alpha: f64,
    texts: Vec<Vec<u32>>,
}

#[derive(Deserialize)]
struct Decoding {
    way: Way,
    alpha: f64,
    temperature: f64,
    texts: Vec<Vec<u32>>,
}

#[derive(Deserialize)]
struct Iterative {
    width: usize,
    iterations: usize,
    /// The texts of each prompt, best first.
    texts: Vec<Vec<Vec<u32>>>,
}

fn golden() -> Golden {
    serde_json::from_slice(&frozen::fixture("decoders.json")).unwrap()
}

impl Golden {
    fn request<'a>(&'a self, strategy: &'a Strategy) -> Request<'a> {
        Request {
            prompts: &self.prompts,
            samples: 1,
            new_tokens: self.new_tokens,
            strategy,
            seed: 1,
            end: None,
            stops: None,
            earlier: &[],
            batch: None,
        }
    }
}

impl Way {
    /// The frozen decoder, with the oracle's three classes or none.
    fn model(self) -> Model<Cpu> {
        let bytes = frozen::fixture("decoder.safetensors");
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let class_ends = if self == Self::Plain { vec![] } else { vec![9, 25, 61] };
        let model = ModelConfig {
            layers: 2,
            width: 24,
            heads: 3,
            feed_forward: 40,
            ..ModelConfig::default()
        };
        let shape = ModelShape { model, positions: 13, vocabulary: 61, class_ends };
        let decoder = Decoder::new(shape);
        let mut model = Model::zeros(Cpu::new(2).unwrap(), decoder.clone()).unwrap();
        for named in decoder.layout.parameters() {
            let values = frozen::floats(&tensors, &format!("weight/{}", named.name));
            model.set_values(named.parameter, &values[..named.parameter.len()]);
        }
        model
    }

    /// Greedy, so that the likeliest class is taken; tokens are searched for at a temperature of 1.
    fn strategy(self) -> Strategy {
        let strategy = Strategy { temperature: 1.0, ..Strategy::greedy() };
        if self == Self::Joint { strategy.joint() } else { strategy }
    }
}

/// The plain decoder without its second block.
fn amateur() -> Model<Cpu> {
    let mut model = Way::Plain.model();
    let decoder = model.decoder.clone();
    for named in decoder.layout.parameters() {
        if ["block.1.attention_out", "block.1.contract"]
            .iter()
            .any(|part| named.name.starts_with(part))
        {
            model.set_values(named.parameter, &vec![0.0; named.parameter.len()]);
        }
    }
    model
}

fn ids(generated: &Generated) -> Vec<Vec<u32>> {
    assert!(generated.complete);
    generated.texts.iter().map(f2_lm::decode::Continuation::ids).collect()
}

#[test]
fn contrastive_search_finds_the_oracles_texts() {
    let golden = golden();
    for Search { way, k, alpha, texts } in &golden.contrastive_search {
        let search = ContrastiveSearch { alpha: *alpha, k: *k };
        let strategy = Strategy { contrastive_search: Some(search), ..way.strategy() };
        let model = way.model();
        let found = Generator { model: &model }
            .generate(&golden.request(&strategy), &mut |_| {}, &|| false)
            .unwrap();
        assert_eq!(&ids(&found), texts, "{way:?} {search:?}");
    }
}

/// Without a penalty, or with a single candidate, the likeliest token is chosen.
#[test]
fn contrastive_search_without_contrast_is_greedy() {
    let golden = golden();
    for way in [Way::Plain, Way::Joint, Way::Decoupled] {
        let model = way.model();
        let texts = |strategy: &Strategy| {
            // Longer than the model sees.
            let request = Request { new_tokens: 11, ..golden.request(strategy) };
            ids(&Generator { model: &model }.generate(&request, &mut |_| {}, &|| false).unwrap())
        };
        let greedy = Strategy { temperature: 0.0, ..way.strategy() };
        for (alpha, k) in [(0.0, 5), (0.6, 1)] {
            let search = ContrastiveSearch { alpha, k };
            let strategy = Strategy { contrastive_search: Some(search), ..way.strategy() };
            let (found, expected) = (texts(&strategy), texts(&greedy));
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found[..10], expected[..10], "{way:?} {search:?}");
                assert_eq!(found.len(), 11);
            }
        }
    }
}

#[test]
fn contrastive_decoding_writes_the_oracles_texts() {
    let golden = golden();
    let amateur = amateur();
    for Decoding { way, alpha, temperature, texts } in &golden.contrastive_decoding {
        let contrast = Contrast { alpha: *alpha, temperature: *temperature };
        let strategy = Strategy { temperature: 0.0, contrast: Some(contrast), ..way.strategy() };
        let model = way.model();
        for batch in [None, Some(1), Some(2)] {
            let request = Request { batch, ..golden.request(&strategy) };
            let found = Generator { model: &model }
                .generate_against(&amateur, &request, &mut |_| {}, &|| false)
                .unwrap();
            assert_eq!(&ids(&found), texts, "{way:?} {contrast:?}");
        }
    }
}

#[test]
fn contrastive_beams_are_the_oracles() {
    let golden = golden();
    let (model, amateur) = (Way::Plain.model(), amateur());
    let strategy = Strategy {
        contrast: Some(Contrast::default()),
        beam: Some(BeamSearch::default()),
        ..Strategy::default()
    };
    let request = Request { samples: 4, ..golden.request(&strategy) };
    let found =
        Generator { model: &model }.generate_against(&amateur, &request, &mut |_| {}, &|| false);
    assert_eq!(ids(&found.unwrap()), golden.contrastive_beams.concat());
}

/// If only the likeliest token is plausible, nothing changes, not even log-probabilities, which are
/// the model's own.
#[test]
fn an_amateur_changes_choices_and_no_probabilities() {
    let golden = golden();
    let model = Way::Decoupled.model();
    let all = Contrast { alpha: 1.0, temperature: 1.0 };
    let strategy = Strategy { contrast: Some(all), ..Strategy::greedy() };
    let greedy = Strategy::greedy();
    let generator = Generator { model: &model };
    let held = generator
        .generate_against(&amateur(), &golden.request(&strategy), &mut |_| {}, &|| false)
        .unwrap();
    let alone = generator.generate(&golden.request(&greedy), &mut |_| {}, &|| false).unwrap();
    assert_eq!(held, alone);
    let missing = generator.generate(&golden.request(&strategy), &mut |_| {}, &|| false);
    assert_eq!(
        missing.unwrap_err().to_string(),
        "contrast: there is no amateur to contrast the model with"
    );
}

#[test]
fn iterative_beam_search_finds_the_oracles_texts() {
    let golden = golden();
    let Iterative { width, iterations, texts } = &golden.iterative_beam;
    let model = Way::Plain.model();
    let beam = BeamSearch { width: *width, iterations: *iterations, ..BeamSearch::default() };
    let strategy = Strategy { beam: Some(beam), ..Strategy::default() };
    for batch in [None, Some(1)] {
        let request = Request { samples: width * iterations, batch, ..golden.request(&strategy) };
        let found = Generator { model: &model }.generate(&request, &mut |_| {}, &|| false).unwrap();
        assert_eq!(ids(&found), texts.concat());
    }
}
