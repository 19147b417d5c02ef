//! The rules newer than the paper, compared with `oracle/decoders.py`: in double precision on both
//! sides, except for the log-probabilities, which the engine gives as `f32`.

use serde::Deserialize;

use super::super::candidates::{Candidates, Run};
use super::super::mirostat::Limit;
use super::super::{ClassDraw, Distribution, Dry, Mirostat, Strategy, Truncations, Xtc};
use crate::config::ModelConfig;
use crate::model::{Decoder, ModelShape};

/// Differences of log-probabilities are taken in `f32`.
const TOLERANCE: f64 = 1e-6;

#[derive(Deserialize)]
struct Golden {
    rules: Vec<Case>,
    mirostat: Vec<MirostatRun>,
    dry: Vec<DryCase>,
    class_ks: Vec<ClassKs>,
}

#[derive(Deserialize)]
struct Case {
    logs: Vec<f32>,
    temperature: f64,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "rule")]
    name: String,
    setting: f64,
    #[serde(flatten)]
    kept: Kept,
}

#[derive(Deserialize)]
struct Kept {
    ids: Vec<u32>,
    probabilities: Vec<f64>,
}

#[derive(Deserialize)]
struct MirostatRun {
    tau: f64,
    eta: f64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    logs: Vec<f32>,
    /// The log-probability of the class.
    own: f32,
    uniform: f64,
    chosen: u32,
    limit: f64,
    #[serde(flatten)]
    kept: Kept,
}

#[derive(Deserialize)]
struct DryCase {
    history: Vec<u32>,
    multiplier: f64,
    base: f64,
    allowed_length: usize,
    breakers: Vec<u32>,
    penalties: Vec<(u32, f64)>,
}

#[derive(Deserialize)]
struct ClassKs {
    ends: Vec<u32>,
    k: usize,
    growth: f64,
    classes: Vec<ClassK>,
}

/// A class, with the log-probabilities of its tokens.
#[derive(Deserialize)]
struct ClassK {
    k: usize,
    logs: Vec<f32>,
    #[serde(flatten)]
    kept: Kept,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../tests/fixtures/decoders.json")).unwrap()
}

fn assert_kept(distribution: &Distribution, kept: &Kept, about: &str) {
    let ids: Vec<u32> = distribution.entries().iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, kept.ids, "{about}");
    for ((_, found), expected) in distribution.entries().iter().zip(&kept.probabilities) {
        assert!((found - expected).abs() < TOLERANCE, "{about}: {found} is not {expected}");
    }
}

#[test]
fn the_rules_keep_what_the_oracle_keeps() {
    for Case { logs, temperature, rules } in golden().rules {
        for Rule { name, setting, kept } in rules {
            let none = Truncations::default();
            let truncations = match name.as_str() {
                "top_n_sigma" => none.with_top_n_sigma(setting),
                "epsilon" => none.with_epsilon_cutoff(setting),
                "eta" => none.with_eta_cutoff(setting),
                _ => none,
            };
            let logs = (0..).zip(logs.iter().copied());
            let mut found = truncations.distribution(logs, temperature);
            if name == "xtc" {
                found = Xtc { probability: 1.0, threshold: setting }.exclude(found);
            }
            assert_kept(&found, &kept, &format!("{name} {setting}"));
        }
    }
}

#[test]
fn classes_have_the_oracles_k_and_keep_its_tokens() {
    for ClassKs { ends, k, growth, classes: expected } in golden().class_ks {
        let draw = ClassDraw { top_k_growth: growth, ..ClassDraw::default() };
        let decoder = Decoder::new(ModelShape {
            model: ModelConfig::default(),
            positions: 2,
            vocabulary: ends[ends.len() - 1] as usize,
            class_ends: ends,
        });
        let classes = decoder.head.classes.expect("there are classes");
        for (class, ClassK { k: own, mut logs, kept }) in (0..).zip(expected) {
            let about = format!("{k} in class {class}, growth {growth}");
            let strategy = Strategy::top_k(k);
            let truncations = draw.truncations(strategy.truncations, &classes, class);
            assert_eq!(truncations.top_k(), Some(own), "{about}");
            let run = Run { first: 0, class: 0.0, logs: &mut logs };
            let candidates = Candidates::new(vec![run], &strategy, &[], &[]).truncated(truncations);
            assert_kept(&candidates.distribution(&strategy, None), &kept, &about);
        }
    }
}

#[test]
fn mirostat_follows_the_oracle() {
    for MirostatRun { tau, eta, steps } in golden().mirostat {
        let mirostat = Mirostat { tau, eta };
        let strategy = Strategy { mirostat: Some(mirostat), ..Strategy::default() };
        let mut limit = mirostat.start();
        for Step { mut logs, own, uniform, chosen, limit: expected, kept } in steps {
            let run = Run { first: 0, class: own, logs: &mut logs };
            let candidates = Candidates::new(vec![run], &strategy, &[], &[]);
            let distribution = candidates.distribution(&strategy, Some(limit));
            assert_kept(&distribution, &kept, "mirostat");
            let id = distribution.draw(uniform);
            assert_eq!(id, chosen);
            limit = mirostat.after(limit, candidates.log_probability(id));
            let Limit(bits) = limit;
            assert!((bits - expected).abs() < TOLERANCE * expected.abs().max(1.0));
        }
    }
}

#[test]
fn repetitions_have_the_oracles_penalties() {
    for case in golden().dry {
        let DryCase { history, multiplier, base, allowed_length, breakers, penalties } = case;
        let dry = Dry { multiplier, base, allowed_length, breakers, range: 0 };
        let found: Vec<(u32, f64)> = dry.penalties(&history).into_iter().collect();
        assert_eq!(found.len(), penalties.len());
        for ((id, penalty), (expected_id, expected)) in found.into_iter().zip(penalties) {
            assert_eq!(id, expected_id);
            assert!((penalty / expected - 1.0).abs() < 1e-12, "{penalty} is not {expected}");
        }
    }
}
