//! `generation_config.json`: the defaults of `generate` in `transformers`.

use serde_json::{Map, Value, json};

use crate::decode::{BeamSearch, Factorisation, Foreign, Strategy, Truncations};

/// The tokens that begin, end and pad texts and, if the model has a default decoding, its settings.
pub(super) fn describe(
    end_of_text: Option<u32>,
    decoding: Option<&Strategy>,
    is_f2: bool,
) -> Map<String, Value> {
    let mut config = Map::new();
    let mut put = |name: &str, value: Value| drop(config.insert(name.to_owned(), value));
    if let Some(id) = end_of_text {
        for name in ["bos_token_id", "eos_token_id", "pad_token_id"] {
            put(name, json!(id));
        }
    }
    let Some(decoding) = decoding else { return config };
    let Strategy {
        temperature,
        truncations,
        repetition_penalty,
        block_ngrams,
        factorisation,
        beam,
        // Not exported.
        dry: _,
        xtc: _,
        mirostat: _,
        deterministic: _,
        contrastive_search: _,
        contrast: _,
    } = decoding;
    if let Some(BeamSearch { width, groups, diversity, length_penalty, iterations: _ }) = beam {
        put("do_sample", json!(false));
        put("num_beams", json!(width));
        put("length_penalty", json!(length_penalty));
        if *groups > 1 {
            put("num_beam_groups", json!(groups));
            put("diversity_penalty", json!(diversity));
        }
    } else if *temperature == 0.0 {
        put("do_sample", json!(false));
    } else {
        put("do_sample", json!(true));
        put("temperature", json!(temperature));
        for rule in Truncations::rules() {
            if let Some(Foreign { name, unset }) = rule.transformers
                && let Some(setting) = truncations.get(rule).or(unset)
            {
                put(name, json!(rule.written(setting)));
            }
        }
    }
    if *repetition_penalty != 1.0 {
        put("repetition_penalty", json!(repetition_penalty));
    }
    if *block_ngrams != 0 {
        put("no_repeat_ngram_size", json!(block_ngrams));
    }
    if is_f2 {
        match factorisation {
            Factorisation::Joint => put("joint", json!(true)),
            // In `transformers`, beam search uses the full posterior.
            Factorisation::Decoupled(_) if beam.is_some() => {}
            Factorisation::Decoupled(draw) => {
                put("class_temperature", json!(draw.temperature));
                put("class_top_p", json!(draw.top_p));
                if let Some(k) = draw.top_k {
                    put("class_top_k", json!(k));
                }
                if draw.top_k_growth != 0.0 {
                    put("top_k_growth", json!(draw.top_k_growth));
                }
            }
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::ClassDraw;

    #[test]
    fn a_strategy_has_the_names_of_transformers() {
        let draw = ClassDraw { temperature: 0.9, top_p: 0.95, ..ClassDraw::default() };
        let tuned = Strategy {
            temperature: 1.1,
            truncations: Truncations::default().with_top_p(0.8),
            factorisation: Factorisation::Decoupled(draw),
            ..Strategy::default()
        };
        let f2 = Value::Object(describe(Some(0), Some(&tuned), true));
        let expected = json!({
            "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "do_sample": true,
            "temperature": 1.1, "top_k": 0, "top_p": 0.8, "class_temperature": 0.9,
            "class_top_p": 0.95,
        });
        assert_eq!(f2, expected);
        let plain = Value::Object(describe(None, Some(&Strategy::top_k(3)), false));
        assert_eq!(plain, json!({ "do_sample": true, "temperature": 1.0, "top_k": 3 }));
        let grows = ClassDraw { top_k_growth: 0.3, ..ClassDraw::default() };
        let grown =
            Strategy { factorisation: Factorisation::Decoupled(grows), ..Strategy::top_k(3) };
        let grown = describe(None, Some(&grown), true);
        assert_eq!((&grown["top_k"], &grown["top_k_growth"]), (&json!(3), &json!(0.3)));
        let greedy = Value::Object(describe(None, Some(&Strategy::greedy()), false));
        assert_eq!(greedy, json!({ "do_sample": false }));
        assert_eq!(Value::Object(describe(None, None, true)), json!({}));
    }
}
