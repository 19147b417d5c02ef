//! Perplexities of models on a corpus and on a text.

use std::fs;

use f2_lm::run::{Pick, SavedModel};
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
        // The same sum in another order.
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

/// For a text of one very long word the perplexity per word overflows and is left out; the other
/// values are reported.
#[test]
fn a_perplexity_per_word_that_no_number_holds_is_left_out() {
    let workshop = workshop();
    workshop.write("word.txt", "zqxj".repeat(500));
    let report = perplexity(&["mle", "word.txt"]);
    assert!(report["word_perplexity"].is_null(), "{report}");
    assert!(report["bits_per_byte"].is_number(), "{report}");
    let shown = done(workshop, &["perplexity", "mle", "word.txt"]).stdout;
    assert!(shown.contains("\nword perplexity: –\nbits per byte: "), "{shown}");
    // `f2 eval` reads the perplexity per token.
    workshop.write("word.ppl.json", report.to_string());
    let score = ["eval", "--hyps", "text.txt", "--ppl", "word.ppl.json", "--json"];
    let scores: Value = serde_json::from_str(&done(workshop, &score).stdout).unwrap();
    assert_eq!(scores["ppl"], report["token_perplexity"]);
}

/// Saves a model that is far too confident: all its parameters are multiplied by 100.
fn exaggerate(model: &str, loud: &str) {
    let workshop = workshop();
    let saved = SavedModel::open(&workshop.path(model), Pick::Best).unwrap();
    fs::create_dir(workshop.path(loud)).unwrap();
    for name in ["model.json", "tokenizer.json"] {
        fs::copy(saved.folder.join(name), workshop.path(loud).join(name)).unwrap();
    }
    let mut bytes = fs::read(saved.folder.join("model.safetensors")).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for number in bytes[header..].chunks_exact_mut(4) {
        let value = f32::from_le_bytes(number.try_into().unwrap());
        number.copy_from_slice(&(100.0 * value).to_le_bytes());
    }
    fs::write(workshop.path(loud).join("model.safetensors"), bytes).unwrap();
}

#[test]
fn a_perplexity_that_no_number_holds_is_refused() {
    exaggerate("mle", "loud");
    let refused = workshop().f2(&["perplexity", "loud", "text.txt", "--json"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("loud: the perplexity of "), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("nats per token is too large for a number"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_byte_order_mark_is_not_scored() {
    let text = workshop().read("text.txt");
    workshop().write("marked.txt", format!("\u{feff}{text}"));
    assert_eq!(perplexity(&["f2", "marked.txt"]), perplexity(&["f2", "text.txt"]));
}
