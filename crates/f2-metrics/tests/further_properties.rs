//! Random sets of texts: every further metric equals its reference implementation.

use std::collections::{HashMap, HashSet};

use f2_metrics::{
    Error, coherence, longest_match, mattr, ngram_entropy, novelty, rep_l, rep_n, self_repetition,
    seq_rep, training_matches, vendi_score, zipf_coefficient,
};
use f2_metrics::{Features, Further, FurtherSettings, FurtherTexts, Settings, evaluate, frontier};
use proptest::prelude::*;

fn text_sets() -> impl Strategy<Value = Vec<Vec<u32>>> {
    // Few distinct ids, so that n-grams repeat; occasionally one from the end of the range.
    let id = prop_oneof![9 => 0..6_u32, 1 => u32::MAX - 2..=u32::MAX];
    prop::collection::vec(prop::collection::vec(id, 0..20), 1..9)
}

fn ngrams(text: &[u32], n: usize) -> Vec<&[u32]> {
    text.windows(n).collect()
}

fn different(text: &[u32], n: usize) -> HashSet<&[u32]> {
    text.windows(n).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better")]
fn same(value: Result<f64, Error>, expected: f64) -> bool {
    match value {
        Ok(value) => (value - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        Err(_) => !expected.is_finite(),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

proptest! {
    #[test]
    fn repeated_ngrams(texts in text_sets()) {
        for n in 1..=4 {
            let total: usize = texts.iter().map(|text| ngrams(text, n).len()).sum();
            let kinds: usize = texts.iter().map(|text| different(text, n).len()).sum();
            prop_assert!(same(rep_n(&texts, n), 1.0 - kinds as f64 / total as f64));
            let long = texts.iter().filter(|text| text.len() >= n);
            let each = long.map(|text| {
                1.0 - different(text, n).len() as f64 / ngrams(text, n).len() as f64
            });
            prop_assert!(same(seq_rep(&texts, n), mean(each)));
        }
    }

    #[test]
    fn tokens_seen_just_before(texts in text_sets(), window in 1..8_usize) {
        let (mut seen, mut total) = (0_usize, 0_usize);
        for text in &texts {
            for place in 0..text.len() {
                seen += usize::from(text[place.saturating_sub(window)..place].contains(&text[place]));
                total += 1;
            }
        }
        prop_assert!(same(rep_l(&texts, window), seen as f64 / total as f64));
    }

    #[test]
    fn ngrams_of_other_texts(texts in text_sets(), n in 1..5_usize) {
        let of_text = |(number, text): (usize, &Vec<u32>)| {
            let elsewhere = |ngram: &&[u32]| {
                let others = texts.iter().enumerate().filter(|(other, _)| *other != number);
                others.filter(|(_, other)| different(other, n).contains(*ngram)).count()
            };
            (different(text, n).iter().map(elsewhere).sum::<usize>() as f64 + 1.0).ln()
        };
        let expected = mean(texts.iter().enumerate().map(of_text));
        prop_assert!(same(self_repetition(&texts, n), expected));
    }

    #[test]
    fn the_law_of_zipf_and_entropy(texts in text_sets(), ranks in 2..9_usize) {
        let mut counts: HashMap<u32, f64> = HashMap::new();
        texts.iter().flatten().for_each(|token| *counts.entry(*token).or_default() += 1.0);
        let mut counts: Vec<f64> = counts.into_values().collect();
        let total: f64 = counts.iter().sum();
        let entropy: f64 = counts.iter().map(|count| -count / total * (count / total).ln()).sum();
        let entropy = if total > 0.0 { entropy } else { f64::NAN };
        prop_assert!(same(ngram_entropy(&texts, 1), entropy));
        counts.sort_by(|one, other| other.total_cmp(one));
        counts.truncate(ranks);
        // The normal equations of a straight line.
        let points: Vec<(f64, f64)> =
            (1_u32..).zip(&counts).map(|(rank, count)| (f64::from(rank).ln(), count.ln())).collect();
        let n = points.len() as f64;
        let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let (x, y, xy, xx) = (sum(|p| p.0), sum(|p| p.1), sum(|p| p.0 * p.1), sum(|p| p.0 * p.0));
        let slope = (n * xy - x * y) / (n * xx - x * x);
        let expected = if counts.len() < 2 { f64::NAN } else { -slope };
        prop_assert!(same(zipf_coefficient(&texts, ranks), expected));
    }

    #[test]
    fn types_in_a_moving_window(texts in text_sets(), window in 1..9_usize) {
        let of_text = |text: &Vec<u32>| {
            let window = window.min(text.len());
            let types = |tokens: &[u32]| tokens.iter().collect::<HashSet<_>>().len() as f64;
            mean(text.windows(window).map(|tokens| types(tokens) / window as f64))
        };
        let expected = mean(texts.iter().filter(|text| !text.is_empty()).map(of_text));
        prop_assert!(same(mattr(&texts, window), expected));
    }

    #[test]
    fn matches_in_the_training_text(
        texts in text_sets(),
        training in prop::collection::vec(0..5_u32, 0..60),
    ) {
        let occurs = |tokens: &[u32]| training.windows(tokens.len()).any(|other| other == tokens);
        let longest = |text: &[u32], end: usize| {
            (1..=end).take_while(|length| occurs(&text[end - length..end])).count() as u32
        };
        let expected: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| (1..=text.len()).map(|end| longest(text, end)).collect())
            .collect();
        let matches = training_matches(&texts, &training[..], &|_| true).unwrap();
        prop_assert_eq!(&matches, &expected);
        for n in 1..4 {
            let all: Vec<&[u32]> = texts.iter().flat_map(|text| ngrams(text, n)).collect();
            let new = all.iter().filter(|ngram| !occurs(ngram)).count();
            prop_assert!(same(novelty(&matches, n), new as f64 / all.len() as f64));
        }
        let longest = expected.iter().filter_map(|text| text.iter().max());
        prop_assert!(same(longest_match(&matches), mean(longest.map(|length| f64::from(*length)))));
    }

    #[test]
    fn the_vendi_score_of_few_texts(texts in prop::collection::vec(prop::collection::vec(0..4_u32, 4..12), 2..4)) {
        let similarity = |one: &[u32], other: &[u32]| {
            let cosine = |n: usize| {
                let count = |text: &[u32], ngram: &[u32]| text.windows(n).filter(|w| *w == ngram).count() as f64;
                let dot = |a: &[u32], b: &[u32]| {
                    different(a, n).iter().map(|g| count(a, g) * count(b, g)).sum::<f64>()
                };
                dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
            };
            (1..=4).map(cosine).sum::<f64>() / 4.0
        };
        let n = texts.len();
        let k: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| similarity(&texts[i], &texts[j]) / n as f64).collect())
            .collect();
        let expected = (-eigenvalues(k).iter().filter(|v| **v > 0.0).map(|v| v * v.ln()).sum::<f64>()).exp();
        prop_assert!(same(vendi_score(&texts, 4), expected));
    }

    #[test]
    fn cosines_of_prompts(pairs in prop::collection::vec(prop::array::uniform6(-3_f32..3.0), 1..6)) {
        let side = |from: usize| {
            Features::new(3, pairs.iter().flat_map(|pair| pair[from..from + 3].to_vec()).collect()).unwrap()
        };
        let cosine = |pair: &[f32; 6]| {
            let pair = pair.map(f64::from);
            let dot = |a: usize, b: usize| (0..3).map(|at| pair[a + at] * pair[b + at]).sum::<f64>();
            dot(0, 3) / (dot(0, 0).sqrt() * dot(3, 3).sqrt())
        };
        prop_assert!(same(coherence(&side(0), &side(3)), mean(pairs.iter().map(cosine))));
    }

    #[test]
    fn a_frontier_lies_between_none_and_all(
        counts in prop::collection::vec((0..9_u32, 0..9_u32), 2..8),
    ) {
        let (mut p, mut q): (Vec<u32>, Vec<u32>) = counts.into_iter().unzip();
        p[0] += 1;
        q[1] += 1;
        let found = frontier(&p, &q, 5.0);
        prop_assert!((0.0..=1.0 + 1e-12).contains(&found.mauve), "{found:?}");
        prop_assert!((-1e-12..=1.0).contains(&found.integral), "{found:?}");
        let turned = frontier(&q, &p, 5.0);
        prop_assert!((turned.mauve - found.mauve).abs() < 1e-9);
        prop_assert!((frontier(&p, &p, 5.0).mauve - 1.0).abs() < 1e-9);
    }

    /// For any texts, every value is a number or missing with a reason.
    #[test]
    fn no_value_is_other_than_a_number(texts in text_sets()) {
        let mut evaluation = evaluate(None, &texts, &Settings::default()).unwrap();
        let strings: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        let matches = training_matches(&texts, &[0, 1, 2, 3][..], &|_| true).unwrap();
        let all = FurtherTexts {
            strings: Some(&strings),
            matches: Some(&matches),
            ..FurtherTexts::new(&texts)
        };
        evaluation.add_further(&all, &FurtherSettings::default()).unwrap();
        let further = &evaluation.metrics.further;
        prop_assert_eq!(further.metrics().count(), Further::ALL.len());
        for metric in Further::ALL {
            for order in metric.orders() {
                let value = further.get(metric, *order);
                prop_assert!(value.is_none_or(f64::is_finite));
                prop_assert!(value.is_some() || !evaluation.undefined.is_empty());
            }
        }
        prop_assert!(serde_json::to_string(&evaluation.metrics).is_ok());
    }
}

/// The eigenvalues of a small symmetric matrix by Jacobi's rotations.
fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-300 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (s, c) = angle.sin_cos();
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    (row[p], row[q]) = (c * x - s * y, s * x + c * y);
                }
                let (upper, lower) = a.split_at_mut(q);
                for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
    }
    (0..n).map(|at| a[at][at]).collect()
}

#[test]
fn what_is_not_there_is_named() {
    let texts = [vec![1, 2, 3]];
    let mut evaluation = evaluate(None, &texts, &Settings::default()).unwrap();
    evaluation.undefined.clear();
    evaluation.add_further(&FurtherTexts::new(&texts), &FurtherSettings::default()).unwrap();
    let reasons: Vec<String> = evaluation.undefined.iter().map(ToString::to_string).collect();
    let expected = [
        "Compression ratio needs the texts as strings, not as token ids alone",
        "rep-n is not defined at order 4: no text has 4 tokens or more",
        "Diversity is not defined at order 4: no text has 4 tokens or more",
        "seq-rep-4 is not defined at order 4: no text has 4 tokens or more",
        "Novelty needs the training text",
        "Longest match needs the training text",
        "MAUVE needs references, and a model whose hidden states stand for the texts",
        "Coherence needs the prompts that the texts continue, and a model whose hidden states stand \
         for both",
    ];
    assert_eq!(reasons, expected);
}
