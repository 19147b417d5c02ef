//! Strategies that are refused, and damaged models.

use f2_lm::Error;
use f2_lm::decode::{
    BeamSearch, ClassDraw, ContrastiveSearch, Dry, Factorisation, Mirostat, Request, SmallClass,
    Strategy, Truncations, Xtc,
};

use super::{Model, Opinionated as _, deterministic, prompts, request, strategies, truncated};

#[test]
fn strategies_a_model_cannot_follow_are_refused() {
    let model = Model::f2();
    let prompts = prompts();
    let class =
        |draw| Strategy { factorisation: Factorisation::Decoupled(draw), ..Strategy::default() };
    let beam = |beam| Strategy { beam: Some(beam), ..Strategy::default() };
    let (base, all) = (Strategy::default, Truncations::default());
    let contrastive =
        |alpha, k| Strategy { contrastive_search: Some(ContrastiveSearch { alpha, k }), ..base() };
    let fills = class(ClassDraw { small: SmallClass::Fill, ..ClassDraw::default() });
    let grows = |top_k_growth, strategy| Strategy {
        factorisation: Factorisation::Decoupled(ClassDraw { top_k_growth, ..ClassDraw::default() }),
        ..strategy
    };
    let refused = vec![
        Strategy::top_k(0),
        Strategy::top_k(62),
        truncated(all.with_top_p(0.0)),
        truncated(all.with_top_p(1.5)),
        truncated(all.with_min_p(-1.0)),
        truncated(all.with_typical(f64::NAN)),
        truncated(all.with_top_n_sigma(0.0)),
        truncated(all.with_epsilon_cutoff(0.0)),
        truncated(all.with_eta_cutoff(1.1)),
        Strategy { temperature: -0.5, ..base() },
        Strategy { repetition_penalty: 0.5, ..base() },
        class(ClassDraw { top_k: Some(5), ..ClassDraw::default() }),
        class(ClassDraw { top_p: 0.0, ..ClassDraw::default() }),
        class(ClassDraw { temperature: -1.0, ..ClassDraw::default() }),
        fills.clone(),
        grows(0.5, Strategy::default()),
        grows(-0.5, Strategy::top_k(3)),
        grows(f64::INFINITY, Strategy::top_k(3)),
        grows(0.5, contrastive(0.6, 4)),
        beam(BeamSearch { width: 0, ..BeamSearch::default() }),
        beam(BeamSearch { iterations: 0, ..BeamSearch::default() }),
        beam(BeamSearch { groups: 3, ..BeamSearch::default() }),
        beam(BeamSearch { diversity: -1.0, ..BeamSearch::default() }),
        beam(BeamSearch { length_penalty: f64::INFINITY, ..BeamSearch::default() }),
        Strategy { beam: Some(BeamSearch::default()), ..Strategy::top_k(3) },
        Strategy { truncations: all.with_top_p(0.9), ..contrastive(0.6, 4) },
        Strategy { beam: Some(BeamSearch::default()), ..contrastive(0.6, 4) },
        contrastive(1.5, 4),
        contrastive(0.6, 0),
        Strategy { mirostat: Some(Mirostat::default()), ..beam(BeamSearch::default()) },
        Strategy { mirostat: Some(Mirostat::default()), ..Strategy::top_k(3) },
        Strategy { mirostat: Some(Mirostat::default()), ..Strategy::greedy() },
        Strategy { mirostat: Some(Mirostat { tau: 0.0, eta: 0.1 }), ..base() },
        Strategy { mirostat: Some(Mirostat { tau: 5.0, eta: f64::NAN }), ..base() },
        Strategy { xtc: Some(Xtc::default()), ..Strategy::greedy() },
        Strategy { xtc: Some(Xtc { probability: 1.1, threshold: 0.1 }), ..base() },
        Strategy { xtc: Some(Xtc { probability: 0.5, threshold: 0.6 }), ..base() },
        Strategy { dry: Some(Dry { multiplier: -1.0, ..Dry::default() }), ..base() },
        Strategy { dry: Some(Dry { base: 0.9, ..Dry::default() }), ..base() },
        Strategy { dry: Some(Dry { allowed_length: 0, ..Dry::default() }), ..base() },
        deterministic(beam(BeamSearch::default())),
        deterministic(Strategy::greedy()),
        deterministic(Strategy { xtc: Some(Xtc::default()), ..Strategy::top_k(3) }),
        deterministic(Strategy { truncations: Strategy::top_k(3).truncations, ..fills }),
    ];
    let message = |strategy| model.generate(&request(&prompts, &strategy)).unwrap_err().to_string();
    let refused: Vec<String> = refused.into_iter().map(message).collect();
    insta::assert_snapshot!(refused.join("\n"));
    let strategy = beam(BeamSearch::default());
    let many = Request { samples: 5, ..request(&prompts, &strategy) };
    let base = base();
    let more = [
        model.generate(&many).unwrap_err().to_string(),
        model.generate(&request(&[vec![1], vec![]], &base)).unwrap_err().to_string(),
        model.generate(&request(&[vec![61]], &base)).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(more.join("\n"), @r"
    beam width: a beam of 4 cannot give 5 texts for each prompt
    prompt 2 is empty: the model needs at least one token to continue
    the text holds token 61; the model's vocabulary has 61
    ");
}

/// A damaged model is an error, not a bad draw.
#[test]
fn parameters_that_are_nan_are_reported() {
    let mut model = Model::f2();
    let norm = model.decoder.final_norm.gain;
    model.set_values(norm, &vec![f32::NAN; norm.len()]);
    let prompts = prompts();
    for strategy in strategies() {
        let refused = model.generate(&request(&prompts, &strategy));
        assert!(matches!(refused, Err(Error::NoProbabilities)), "{strategy:?}: {refused:?}");
    }
}
