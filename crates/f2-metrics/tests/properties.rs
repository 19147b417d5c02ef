//! Random sets of texts: every metric equals its reference implementation.

use std::collections::{HashMap, HashSet};

use f2_metrics::{
    Convention, distinct, ends_in_loop, kl_divergence, ms_jaccard, self_bleu_parts, uniq,
};
use proptest::prelude::*;

type Counts = HashMap<Vec<u32>, usize>;

fn counts<'a>(texts: impl IntoIterator<Item = &'a Vec<u32>>, n: usize) -> Counts {
    let mut counts = Counts::new();
    for window in texts.into_iter().flat_map(|text| text.windows(n)) {
        *counts.entry(window.to_vec()).or_default() += 1;
    }
    counts
}

/// The n-grams of a padded text and the shorter slices at its end, as in the authors' evaluation.
fn padded(text: &[u32], n: usize) -> Vec<Vec<i64>> {
    let pads = vec![-1; n - 1];
    let row = [pads.clone(), text.iter().map(|&id| i64::from(id)).collect(), pads].concat();
    (0..row.len() + n - 1)
        .map(|start| row[start.min(row.len())..(start + n).min(row.len())].to_vec())
        .collect()
}

fn padded_shares(texts: &[Vec<u32>], n: usize) -> HashMap<Vec<i64>, f64> {
    let all: Vec<_> = texts.iter().flat_map(|text| padded(text, n)).collect();
    let mut shares = HashMap::new();
    for ngram in &all {
        *shares.entry(ngram.clone()).or_default() += 1.0 / all.len() as f64;
    }
    shares
}

fn matches(texts: &[Vec<u32>], text: usize, n: usize) -> usize {
    let others: Vec<Counts> = (0..texts.len())
        .filter(|&other| other != text)
        .map(|other| counts([&texts[other]], n))
        .collect();
    let clipped = |(ngram, count): (Vec<u32>, usize)| {
        let most = others.iter().map(|other| other.get(&ngram).copied().unwrap_or(0)).max();
        count.min(most.unwrap())
    };
    counts([&texts[text]], n).into_iter().map(clipped).sum()
}

/// Whether the text ends in `copies` copies of its last `phrase` tokens.
fn stands(text: &[u32], phrase: usize, copies: usize) -> bool {
    let Some(start) = text.len().checked_sub(phrase * copies) else { return false };
    text[start..].chunks(phrase).all(|chunk| chunk == &text[text.len() - phrase..])
}

fn loops(text: &[u32]) -> bool {
    let copies =
        |phrase| (1..=text.len()).take_while(|&copies| stands(text, phrase, copies)).count();
    let best = (1..=100).max_by_key(|&phrase| (copies(phrase), 101 - phrase)).unwrap();
    copies(best) >= 2 && (best >= 3 || copies(best) > 50)
}

fn text_sets() -> impl Strategy<Value = Vec<Vec<u32>>> {
    // Few distinct ids, so that n-grams repeat; occasionally one from the end of the range.
    let id = prop_oneof![9 => 0..6_u32, 1 => u32::MAX - 2..=u32::MAX];
    prop::collection::vec(prop::collection::vec(id, 0..14), 2..9)
}

fn looping_text() -> impl Strategy<Value = Vec<u32>> {
    let parts = (
        prop::collection::vec(0..4_u32, 0..8),
        prop::collection::vec(0..3_u32, 1..6),
        0..60_usize,
        prop::collection::vec(0..3_u32, 0..3),
    );
    parts.prop_map(|(head, phrase, copies, tail)| [head, phrase.repeat(copies), tail].concat())
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

proptest! {
    #[test]
    fn self_bleu_matches(texts in text_sets()) {
        let parts = self_bleu_parts(&texts, 4).unwrap();
        for (text, parts) in parts.iter().enumerate() {
            for n in 1..=4 {
                prop_assert_eq!(parts.matches[n - 1] as usize, matches(&texts, text, n));
            }
            let others = (0..texts.len()).filter(|&other| other != text);
            let closest = others
                .map(|other| texts[other].len())
                .min_by_key(|&length| (length.abs_diff(texts[text].len()), length));
            prop_assert_eq!(Some(parts.closest_length), closest);
        }
    }

    #[test]
    fn distinct_shares(texts in text_sets()) {
        for n in 1..=3 {
            let long: Vec<_> = texts.iter().filter(|text| text.len() > 5).collect();
            let shares = long.iter().map(|text| counts([*text], n).len() as f64 / text.len() as f64);
            let expected = shares.sum::<f64>() / long.len() as f64;
            match distinct(&texts, n, Convention::Paper) {
                Ok(scores) => prop_assert!(close(scores[n - 1], expected)),
                Err(_) => prop_assert!(long.is_empty()),
            }
        }
    }

    #[test]
    fn textbook_jaccard(human in text_sets(), model in text_sets()) {
        let mut product = 1.0;
        for n in 1..=3 {
            let (h, m) = (counts(&human, n), counts(&model, n));
            let ngrams: HashSet<_> = h.keys().chain(m.keys()).collect();
            let share = |counts: &Counts, ngram: &Vec<u32>, texts: usize| {
                counts.get(ngram).copied().unwrap_or(0) as f64 / texts as f64
            };
            let pairs: Vec<_> = ngrams
                .into_iter()
                .map(|ngram| (share(&h, ngram, human.len()), share(&m, ngram, model.len())))
                .collect();
            let shared: f64 = pairs.iter().map(|pair| pair.0.min(pair.1)).sum();
            let joint: f64 = pairs.iter().map(|pair| pair.0.max(pair.1)).sum();
            product *= shared / joint;
            match ms_jaccard(&human, &model, n, Convention::Textbook) {
                Ok(scores) => prop_assert!(close(scores[n - 1], product.powf(1.0 / n as f64))),
                Err(_) => prop_assert!(product.is_nan()),
            }
        }
    }

    #[test]
    fn paper_jaccard(human in text_sets(), model in text_sets()) {
        prop_assume!(human.iter().flatten().count() > 0);
        prop_assume!(model.iter().flatten().count() > 0);
        let mut product = 1.0;
        for n in 1..=3 {
            let (h, m) = (padded_shares(&human, n), padded_shares(&model, n));
            let ngrams: HashSet<_> = h.keys().chain(m.keys()).collect();
            let share = |shares: &HashMap<Vec<i64>, f64>, ngram| *shares.get(ngram).unwrap_or(&1e-10);
            let (mut shared, mut joint) = (0.0, 0.0);
            for ngram in ngrams {
                shared += share(&h, ngram).min(share(&m, ngram));
                joint += share(&h, ngram).max(share(&m, ngram));
            }
            product *= shared / joint;
            let scores = ms_jaccard(&human, &model, n, Convention::Paper).unwrap();
            prop_assert!(close(scores[n - 1], product.powf(1.0 / n as f64)));
        }
    }

    #[test]
    fn divergence_of_unigrams(human in text_sets(), model in text_sets()) {
        let (h, m) = (padded_shares(&human, 1), padded_shares(&model, 1));
        prop_assume!(!h.is_empty() && !m.is_empty());
        let tokens: HashSet<_> = h.keys().chain(m.keys()).collect();
        let (mut paper, mut textbook) = (0.0, 0.0);
        for token in tokens {
            let q = *m.get(token).unwrap_or(&1e-10);
            let p = *h.get(token).unwrap_or(&1e-10);
            paper += p * (p / q).ln();
            textbook += h.get(token).map_or(0.0, |p| p * (p / q).ln());
        }
        prop_assert!(close(kl_divergence(&human, &model, Convention::Paper).unwrap(), paper));
        prop_assert!(close(kl_divergence(&human, &model, Convention::Textbook).unwrap(), textbook));
    }

    #[test]
    fn different_tokens(texts in text_sets()) {
        let tokens: HashSet<_> = texts.iter().flatten().collect();
        prop_assert_eq!(uniq(&texts).unwrap(), tokens.len());
    }

    #[test]
    fn loops_at_the_end(text in looping_text()) {
        prop_assert_eq!(ends_in_loop(&text), loops(&text));
    }
}
