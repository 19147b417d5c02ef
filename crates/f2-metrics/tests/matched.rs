//! BLEU, chrF and ROUGE against sacrebleu and rouge-score, and against naive implementations.

use f2_metrics::{Error, Rouge, chrf, corpus_bleu, rouge};
use proptest::prelude::*;
use serde_json::Value;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// The order of sums and logarithms differs, which changes values by far less than 1e-9.
#[track_caller]
fn assert_close(found: f64, expected: &Value, what: &str, case: usize) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "case {case}, {what}: {found}, not {expected}");
}

#[test]
fn golden_scores() {
    let golden: Value = serde_json::from_str(include_str!("fixtures/matched.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 55);
    for (number, case) in cases.iter().enumerate() {
        let (references, hypotheses) = (texts(&case["references"]), texts(&case["texts"]));
        assert_close(corpus_bleu(&references, &hypotheses).unwrap(), &case["bleu"], "BLEU", number);
        for (name, words) in [("chrf", 0), ("chrf_plus", 2)] {
            assert_close(chrf(&references, &hypotheses, words).unwrap(), &case[name], name, number);
        }
        let Rouge { rouge_1, rouge_2, rouge_l } = rouge(&references, &hypotheses).unwrap();
        for (order, found) in [rouge_1, rouge_2, rouge_l].into_iter().enumerate() {
            assert_close(found, &case["rouge"][order], "ROUGE", number);
        }
    }
}

/// The number of n-grams that two texts share, by removing matches one by one.
fn shared<T: PartialEq + Clone>(left: &[T], right: &[T], order: usize) -> usize {
    let mut left_over: Vec<Vec<T>> = right.windows(order).map(<[T]>::to_vec).collect();
    let mut found = 0;
    for ngram in left.windows(order) {
        if let Some(place) = left_over.iter().position(|other| other == ngram) {
            left_over.remove(place);
            found += 1;
        }
    }
    found
}

fn longest_common(left: &[char], right: &[char]) -> usize {
    match (left, right) {
        ([], _) | (_, []) => 0,
        ([one, left @ ..], [other, right @ ..]) if one == other => 1 + longest_common(left, right),
        ([_, rest @ ..], [_, others @ ..]) => {
            longest_common(rest, right).max(longest_common(left, others))
        }
    }
}

fn f_score(matches: usize, ours: usize, theirs: usize) -> f64 {
    if matches == 0 { 0.0 } else { 2.0 * matches as f64 / (ours + theirs) as f64 }
}

proptest! {
    /// Words of one letter, so that a text is its letters separated by spaces.
    #[test]
    fn of_single_texts_by_the_simplest_code(
        reference in prop::collection::vec(prop::char::range('a', 'd'), 4..8),
        text in prop::collection::vec(prop::char::range('a', 'd'), 4..8),
    ) {
        let spaced = |letters: &[char]| letters.iter().map(|c| format!("{c} ")).collect::<String>();
        let (one, other) = ([spaced(&reference)], [spaced(&text)]);
        let scores = rouge(&one, &other).unwrap();
        for (found, order) in [(scores.rouge_1, 1), (scores.rouge_2, 2)] {
            let (ours, theirs) = (text.len() + 1 - order, reference.len() + 1 - order);
            prop_assert!((found - f_score(shared(&text, &reference, order), ours, theirs)).abs() < 1e-12);
        }
        let common = longest_common(&reference, &text);
        prop_assert!((scores.rouge_l - f_score(common, text.len(), reference.len())).abs() < 1e-12);
        let (mut halved, mut product, mut any) = (1.0, 1.0, false);
        for order in 1..=4 {
            let matches = shared(&text, &reference, order);
            any |= matches > 0;
            if matches == 0 {
                halved /= 2.0;
            }
            let matches = if matches == 0 { halved } else { matches as f64 };
            product *= matches / (text.len() + 1 - order) as f64;
        }
        let short = (1.0 - reference.len() as f64 / text.len() as f64).min(0.0).exp();
        let expected = if any { short * product.powf(0.25) } else { 0.0 };
        prop_assert!((corpus_bleu(&one, &other).unwrap() - expected).abs() < 1e-12);
        let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
        for order in 1..=reference.len().min(text.len()).min(6) {
            let matches = shared(&text, &reference, order) as f64;
            precision += matches / (text.len() + 1 - order) as f64;
            recall += matches / (reference.len() + 1 - order) as f64;
            orders += 1.0;
        }
        let (precision, recall) = (precision / orders, recall / orders);
        let expected = if precision + recall > 0.0 {
            5.0 * precision * recall / (4.0 * precision + recall)
        } else {
            0.0
        };
        prop_assert!((chrf(&one, &other, 0).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn any_text_has_scores_between_nothing_and_all_and_its_own_are_all(
        pairs in prop::collection::vec(("\\PC{0,30}", "\\PC{0,30}"), 1..6),
    ) {
        let (references, hypotheses): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
        let all = |references: &[String], texts: &[String]| {
            let Rouge { rouge_1, rouge_2, rouge_l } = rouge(references, texts).unwrap();
            let bleu = corpus_bleu(references, texts).unwrap();
            [bleu, chrf(references, texts, 0).unwrap(), chrf(references, texts, 2).unwrap(), rouge_1, rouge_2, rouge_l]
        };
        let scores = all(&references, &hypotheses);
        prop_assert!(scores.iter().all(|score| (0.0..=1.0 + 1e-12).contains(score)), "{scores:?}");
        for score in &all(&references, &references)[..3] {
            prop_assert!(*score == 0.0 || (score - 1.0).abs() < 1e-12, "{score}");
        }
    }
}

#[test]
fn every_text_needs_its_reference() {
    let (none, one, two): ([&str; 0], _, _) = ([], ["a"], ["a", "b"]);
    assert_eq!(corpus_bleu(&one, &none), Err(Error::NoTexts));
    assert_eq!(chrf(&none, &one, 0), Err(Error::NoReferences));
    assert_eq!(rouge(&one, &two), Err(Error::Unmatched { texts: 2, references: 1 }));
}
