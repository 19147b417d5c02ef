//! Perplexities of models on a corpus and on a text.

use serde_json::Value;

use super::{done, records, workshop};

fn perplexity(arguments: &[&str]) -> Value {
    let run = done(workshop(), &[&["perplexity"], arguments, &["--json"]].concat());
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn perplexity_is_what_training_measured() {
    let workshop = workshop();
    for model in ["mle", "f2"] {
        let events = workshop.read(&format!("{model}/events.jsonl"));
        let evaluated = records(&events)
            .into_iter()
            .filter(|event| event["event"] == "evaluated")
            .map(|event| event["perplexity"].as_f64().unwrap())
            .fold(f64::INFINITY, f64::min);
        let report = perplexity(&[model, "corpus", "--split", "valid"]);
        let found = report["token_perplexity"].as_f64().unwrap();
        // The same sums in another order.
        assert!((found - evaluated).abs() < 1e-4 * evaluated, "{found} is not {evaluated}");
        let (nats, tokens) =
            (report["nats_per_token"].as_f64().unwrap(), report["tokens"].as_f64().unwrap());
        let bits = nats * tokens / report["bytes"].as_f64().unwrap() / 2_f64.ln();
        assert!((bits - report["bits_per_byte"].as_f64().unwrap()).abs() < 1e-12);
        let word = (nats * tokens / report["words"].as_f64().unwrap()).exp();
        assert!((word / report["word_perplexity"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_stride_scores_every_token_but_the_first() {
    let apart = perplexity(&["f2", "corpus", "--split", "valid"]);
    let sliding = perplexity(&["f2", "corpus", "--split", "valid", "--stride", "8"]);
    let tokens = sliding["tokens"].as_u64().unwrap();
    assert_eq!(sliding["scored_tokens"].as_u64().unwrap(), tokens - 1);
    assert!(apart["scored_tokens"].as_u64().unwrap() < tokens - 1);
    let text = perplexity(&["f2", "text.txt"]);
    assert_eq!(text["words"].as_u64().unwrap(), 600 * 12);
}
