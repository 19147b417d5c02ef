//! The paper's greedy table, compared pair by pair under each candidate rule.

mod fixtures;

use std::cmp::Ordering;

use f2_metrics::Metrics;
use f2_metrics::pairwise::{Fold, Rule, Tally, play, ranking};
use fixtures::{Json, load};

const MODELS: [&str; 5] = ["MLE", "FACE", "UL-token", "UL-token+seq", "F2-Softmax"];

fn metrics(row: &Json) -> Metrics {
    let value = |key: &str| row[key].as_f64();
    let orders = |stem: &str| (1..=3).map(|n| value(&format!("{stem}{n}"))).collect();
    Metrics {
        ppl: value("ppl"),
        kld: value("kld"),
        ms_jaccard: orders("msj"),
        self_bleu: orders("sb"),
        distinct: orders("d"),
        rep: value("rep"),
        uniq: value("uniq_k"),
        ..Metrics::default()
    }
}

#[test]
fn every_point_of_every_rule_is_the_oracle_s() {
    let (paper, golden) = (load("paper_greedy.json"), load("pairwise.json"));
    let rules = [
        ("bigram", Rule::BIGRAM),
        ("best_fit", Rule::FITTED),
        ("trigram", Rule::all(Fold::Order(3))),
        ("mean_over_n", Rule::all(Fold::Mean)),
    ];
    for (name, rule) in rules {
        for corpus in ["wikitext103", "melo"] {
            let table = &paper["greedy"][corpus];
            let human = metrics(&table["Human"]);
            for row in golden[name][corpus]["rows"].as_array().unwrap() {
                let model = |role: &str| metrics(&table[row[role].as_str().unwrap()]);
                let outcome = play(&model("winner"), &model("loser"), &human, rule);
                let mut points = outcome.points.map(|point| point.unwrap() as i64);
                if (name, corpus) == ("mean_over_n", "wikitext103") && row["loser"] == "FACE" {
                    break_the_decimal_tie(row, &mut points);
                }
                let signs: Vec<i64> =
                    row["signs"].as_array().unwrap().iter().map(|s| s.as_i64().unwrap()).collect();
                assert_eq!(points.to_vec(), signs, "{name} {corpus} {row}");
            }
        }
    }
}

/// Distinct of F²-Softmax and FACE is tied, 32.8 + 37.5 + 32.0 = 30.7 + 37.8 + 33.8 from human; the
/// oracle sums doubles without a tolerance, and their last bit gave the point to F².
fn break_the_decimal_tie(row: &Json, points: &mut [i64; 7]) {
    if row["winner"] == "F2-Softmax" {
        assert_eq!(std::mem::replace(&mut points[4], 1), 0);
    }
}

#[test]
fn the_paper_s_ranking_follows_from_its_table() {
    let paper = load("paper_greedy.json");
    let mut tallies = vec![Tally::default(); MODELS.len()];
    let mut undecided = Vec::new();
    for corpus in ["wikitext103", "melo"] {
        let table = &paper["greedy"][corpus];
        let human = metrics(&table["Human"]);
        for first in 0..MODELS.len() {
            for second in first + 1..MODELS.len() {
                let model = |index: usize| metrics(&table[MODELS[index]]);
                let outcome = play(&model(first), &model(second), &human, Rule::FITTED);
                tallies[first].add(outcome.winner());
                tallies[second].add(outcome.winner().reverse());
                if outcome.needs_all_orders() {
                    undecided.push((corpus, MODELS[first], MODELS[second], outcome.winner()));
                }
            }
        }
    }
    let printed = paper["ranking_greedy"].as_array().unwrap();
    for (place, printed) in ranking(&tallies).into_iter().zip(printed) {
        assert_eq!(MODELS[place], printed["model"]);
        assert_eq!(tallies[place].won, printed["wins"]);
        assert_eq!(tallies[place].lost, printed["losses"]);
    }
    assert_eq!(undecided, [("melo", "FACE", "UL-token", Ordering::Less)]);
}
