//! The further metrics against values frozen from their published implementations by
//! `oracle/further_metrics.py`.

mod fixtures;

use f2_metrics::{
    Features, Further, FurtherSettings, FurtherTexts, MauveSettings, Settings, compression_ratio,
    evaluate, frontier, mattr, mauve, mauve_counts, zipf_coefficient,
};
use fixtures::{Json, close, floats, integers, load, split_mix, texts};

fn number(json: &Json) -> f64 {
    json.as_f64().unwrap()
}

#[test]
fn sets_of_texts() {
    for case in load("further.json")["sets"].as_array().unwrap() {
        let texts = texts(&case["texts"]);
        let word = |token: &u32| format!("w{token}");
        let strings: Vec<String> =
            texts.iter().map(|text| text.iter().map(word).collect::<Vec<_>>().join(" ")).collect();
        let mut evaluation = evaluate(None, &texts, &Settings::default()).unwrap();
        let all = FurtherTexts { strings: Some(&strings), ..FurtherTexts::new(&texts) };
        evaluation.add_further(&all, &FurtherSettings::default()).unwrap();
        let value = |metric, order| evaluation.metrics.further.get(metric, order).unwrap();
        for (metric, key) in [
            (Further::CompressionRatio, "compression_ratio"),
            (Further::SelfRepetition, "self_repetition"),
            (Further::Diversity, "diversity"),
            (Further::Zipf, "zipf"),
            (Further::Mattr, "mattr_50"),
            (Further::Vendi, "vendi"),
        ] {
            close(&[value(metric, 1)], &[number(&case[key])]);
        }
        close(&[2, 3, 4].map(|n| value(Further::RepN, n)), &floats(&case["rep_n"]));
        close(&[1, 2, 3].map(|n| value(Further::Entropy, n)), &floats(&case["entropy"]));
        close(&[mattr(&texts, 10).unwrap()], &[number(&case["mattr_10"])]);
        close(&[zipf_coefficient(&texts, 10).unwrap()], &[number(&case["zipf_10"])]);
        // The package compresses what is compressed once more: headers, and little else.
        let twice = number(&case["compression_ratio_of_diversity"]);
        let once = compression_ratio(&strings).unwrap();
        let joined = strings.join(" ").len() as f64;
        let more = joined / twice - joined / once;
        assert!((10.0..80.0).contains(&more), "{more} bytes more");
    }
}

#[test]
fn divergence_curves() {
    for case in load("further.json")["curves"].as_array().unwrap() {
        let found = frontier(&integers(&case["human"]), &integers(&case["model"]), 5.0);
        close(
            &[found.mauve, found.smoothed, found.integral, found.smoothed_integral],
            &["mauve", "smoothed", "integral", "smoothed_integral"].map(|key| number(&case[key])),
        );
    }
}

/// The points that `features` of the oracle makes.
fn points(seed: u64, count: usize, width: usize, shift: f64) -> Features {
    let mut state = seed;
    let mut rows = Vec::new();
    for number in 0..count {
        for place in 0..width {
            let total: u64 = (0..4).map(|_| split_mix(&mut state) >> 40).sum();
            let centre = if number % 5 == place % 5 { 3.0 } else { 0.0 };
            let value = total as f64 / f64::from(1 << 24) - 2.0 + centre;
            rows.push((value + shift * (place % 3) as f64) as f32);
        }
    }
    Features::new(width, rows).unwrap()
}

/// End to end: principal components and clusters as scikit-learn and faiss find them. Cluster by cluster
/// the counts are the same.
#[test]
fn points_in_the_clusters_of_mauve_text() {
    for case in load("further.json")["clusterings"].as_array().unwrap() {
        let [count, width, seed] =
            ["count", "width", "seed"].map(|key| case[key].as_u64().unwrap());
        let (count, width, shift) = (count as usize, width as usize, number(&case["shift"]));
        let human = points(seed, count, width, 0.0);
        let first: Vec<f64> =
            human.points().next().unwrap().iter().copied().map(f64::from).collect();
        close(&first, &floats(&case["first"]));
        let model = points(seed + 1, count + 7, width, shift);
        let settings = MauveSettings { seed, ..MauveSettings::default() };
        let [human_counts, model_counts] = mauve_counts(&human, &model, &settings).unwrap();
        assert_eq!(human_counts, integers(&case["human"]));
        assert_eq!(model_counts, integers(&case["model"]));
        let found = mauve(&human, &model, &settings).unwrap();
        close(&[found.mauve, found.smoothed], &["mauve", "smoothed"].map(|key| number(&case[key])));
    }
}
