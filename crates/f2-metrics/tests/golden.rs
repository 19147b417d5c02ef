//! Every metric against frozen values of independent Python code: `oracle/metrics.py`,
//! `oracle/nltk_bleu.py`, and the golden files of the method's description.

mod fixtures;

use f2_metrics::{
    Bands, Convention, Error, Settings, Smoothing, distinct, ends_in_loop, evaluate, kl_divergence,
    ms_jaccard, repetition, self_bleu, self_bleu_parts, uniq,
};
use fixtures::{Json, close, floats, generated, integers, load, texts};

const BOTH: [(Convention, &str, &str); 2] =
    [(Convention::Paper, "author", ""), (Convention::Textbook, "clean", "_clean")];

#[test]
fn small_corpora() {
    for case in load("metrics_small.json")["corpora"].as_array().unwrap() {
        check_corpus(case);
    }
}

/// Sets of the size and length of the paper's protocol, generated from a seed.
#[test]
fn long_texts_and_their_bands() {
    let case = load("metrics_long.json");
    let (refs, hyps) = (generated(&case["refs"]), generated(&case["hyps"]));
    check_orders(&case, &refs, &hyps);
    close(&[repetition(&hyps).unwrap()], &[case["repetition"].as_f64().unwrap()]);
    let expect = &case["bands"];
    let [total, ranks] = ["total", "ranks"].map(|name| expect[name].as_u64().unwrap());
    let counts: Vec<u64> = (1..=ranks).map(|rank| total / rank).collect();
    let bands = Bands::from_counts(&counts).unwrap();
    assert_eq!(bands.bounds().to_vec(), integers(&expect["bounds"]));
    close(&bands.shares(&refs).unwrap(), &floats(&expect["refs"]));
    close(&bands.shares(&hyps).unwrap(), &floats(&expect["hyps"]));
}

fn check_corpus(case: &Json) {
    let (refs, hyps) = (texts(&case["refs"]), texts(&case["hyps"]));
    let expect = &case["expect"];
    for (convention, name, suffix) in BOTH {
        let kld = kl_divergence(&refs, &hyps, convention).unwrap();
        close(&[kld], &[expect[format!("kld{suffix}")].as_f64().unwrap()]);
        let scores = ms_jaccard(&refs, &hyps, 3, convention).unwrap();
        close(&scores, &floats(&expect[format!("msj_{name}")]));
        close(&singles(&scores), &floats(&expect[format!("jaccard_{name}")]));
        for (side, set) in [("ref", &refs), ("hyp", &hyps)] {
            let expected = floats(&expect[side][format!("distinct{suffix}")]);
            close(&distinct(set, 3, convention).unwrap(), &expected);
        }
    }
    for (side, set) in [("ref", &refs), ("hyp", &hyps)] {
        check_set(set, &expect[side]);
    }
}

/// The similarities of single orders, from the running geometric means.
fn singles(means: &[f64]) -> Vec<f64> {
    let product = |n: usize| if n == 0 { 1.0 } else { means[n - 1].powi(n as i32) };
    (1..=means.len())
        .map(|n| if product(n) == 0.0 { 0.0 } else { product(n) / product(n - 1) })
        .collect()
}

fn check_set(set: &[Vec<u32>], expect: &Json) {
    close(&self_bleu(set, 3, Convention::Paper).unwrap(), &floats(&expect["self_bleu"]));
    let parts = self_bleu_parts(set, 3).unwrap();
    let method1 = (0..3).map(|n| {
        let each = parts.iter().map(|parts| parts.scores(Smoothing::METHOD1)[n]);
        each.sum::<f64>() / parts.len() as f64
    });
    close(&method1.collect::<Vec<_>>(), &floats(&expect["self_bleu_method1"]));
    if parts.iter().all(|parts| parts.matches[0] > 0) {
        let textbook = self_bleu(set, 3, Convention::Textbook).unwrap();
        close(&textbook, &floats(&expect["self_bleu_method1"]));
    }
    close(&[repetition(set).unwrap()], &[expect["repetition"].as_f64().unwrap()]);
    assert_eq!(uniq(set).unwrap() as u64, expect["uniq"].as_u64().unwrap());
}

#[test]
fn loops_at_the_end() {
    for case in load("metrics_small.json")["repetition"].as_array().unwrap() {
        let flagged = ends_in_loop(&integers(&case["text"]));
        assert_eq!(flagged, case["repetitive"].as_bool().unwrap(), "{}", case["name"]);
    }
}

#[test]
fn frequency_bands() {
    for case in load("metrics_small.json")["categories"].as_array().unwrap() {
        let counts: Vec<u64> = integers(&case["counts"]).into_iter().map(u64::from).collect();
        let bands = Bands::from_counts(&counts).unwrap();
        assert_eq!(bands.bounds().to_vec(), integers(&case["bounds"]));
        let ranks: Vec<u32> = (0..counts.len() as u32).collect();
        close(&bands.shares(std::slice::from_ref(&ranks)).unwrap(), &floats(&case["shares"]));
        close(&[bands.very_rare(&ranks).unwrap()], &[case["vr_of_all_ranks"].as_f64().unwrap()]);
    }
}

#[test]
fn five_orders_in_both_conventions_on_texts_of_all_lengths() {
    for case in load("metrics_orders.json").as_array().unwrap() {
        check_orders(case, &texts(&case["refs"]), &texts(&case["hyps"]));
    }
}

fn check_orders(case: &Json, refs: &[Vec<u32>], hyps: &[Vec<u32>]) {
    for (convention, name) in [(Convention::Paper, "paper"), (Convention::Textbook, "textbook")] {
        let settings = Settings { max_order: 5, convention, ..Settings::default() };
        let metrics = evaluate(Some(refs), hyps, &settings).unwrap().metrics;
        let expect = &case[name];
        close(&[metrics.kld.unwrap()], &[expect["kld"].as_f64().unwrap()]);
        fixtures::close_where_defined(&metrics.ms_jaccard, &expect["ms_jaccard"]);
        fixtures::close_where_defined(&metrics.self_bleu, &expect["self_bleu"]);
        fixtures::close_where_defined(&metrics.distinct, &expect["distinct"]);
        assert_eq!(metrics.uniq, case["uniq"].as_f64());
    }
}

#[test]
fn undefined_orders_say_why() {
    let cases = load("metrics_orders.json");
    let case = &cases[3];
    let settings = Settings { convention: Convention::Textbook, ..Settings::default() };
    let evaluation =
        evaluate(Some(&texts(&case["refs"])), &texts(&case["hyps"]), &settings).unwrap();
    let expected = [Error::NoNgrams(3), Error::AllTooShort { order: 3, shortest: 3 }];
    assert_eq!(evaluation.undefined, expected);
}

#[test]
fn bleu_and_its_parts_equal_nltk() {
    for set in load("nltk_self_bleu.json")["sets"].as_array().unwrap() {
        let texts = texts(&set["texts"]);
        let each = set["each"].as_array().unwrap();
        let parts = self_bleu_parts(&texts, 5).unwrap();
        let mut sums = [0.0; 5];
        for (parts, expect) in parts.iter().zip(each) {
            assert_eq!(parts.matches, integers(&expect["matches"]));
            let ngrams: Vec<u32> = (1..=5).map(|order| parts.ngrams(order) as u32).collect();
            assert_eq!(ngrams, integers(&expect["ngrams"]));
            assert_eq!(parts.closest_length as u64, expect["closest_length"].as_u64().unwrap());
            close(&[parts.brevity_penalty()], &[expect["brevity_penalty"].as_f64().unwrap()]);
            let bleu = floats(&expect["bleu"]);
            close(&parts.scores(Smoothing::NLTK), &bleu);
            sums.iter_mut().zip(bleu).for_each(|(sum, score)| *sum += score);
        }
        let means = sums.map(|sum| sum / texts.len() as f64);
        close(&self_bleu(&texts, 5, Convention::Textbook).unwrap(), &means);
    }
}
