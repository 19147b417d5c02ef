//! Renaming the ids of a tokenizer.

use serde_json::Value;

use super::{Tokenizer, failure};
use crate::error::Result;

impl Tokenizer {
    /// The same tokenizer with token `id` renamed to `rank_of_id[id]`.
    ///
    /// It renames ids in the JSON form, which other programs read: in the vocabulary, the added
    /// tokens, and the special tokens of a post-processor.
    pub fn renamed(&self, rank_of_id: &[u32]) -> Result<Self> {
        let mut json: Value =
            serde_json::from_str(&self.to_json()).expect("a tokenizer writes valid JSON");
        let added_tokens = std::mem::take(&mut json["added_tokens"]);
        let mut added_tokens = added_tokens.as_array().cloned().unwrap_or_default();
        add_to_model(&mut json["model"], &added_tokens);
        rename_vocabulary(&mut json["model"], rank_of_id);
        added_tokens.iter_mut().for_each(|token| rename(&mut token["id"], rank_of_id));
        // The library expects added tokens in the order of their ids.
        added_tokens.sort_by_key(|token| token["id"].as_u64());
        json["added_tokens"] = added_tokens.into();
        rename_post_processor(&mut json["post_processor"], rank_of_id);
        Self::from_json(json.to_string().as_bytes())
            .map_err(|reason| failure("the renamed tokenizer", reason))
    }
}

/// Adds the added tokens to the model's vocabulary.
///
/// The library numbers added tokens that are not in the model from the end of the vocabulary on,
/// whatever id their entry has; for any other id, a token must be in the model. The model never
/// produces such a token itself, since added tokens are split off the text first.
fn add_to_model(model: &mut Value, added_tokens: &[Value]) {
    match &mut model["vocab"] {
        Value::Object(vocabulary) => {
            for token in added_tokens {
                let content = token["content"].as_str().unwrap_or_default().to_owned();
                vocabulary.entry(content).or_insert_with(|| token["id"].clone());
            }
        }
        Value::Array(vocabulary) => {
            // The lowest score, so that the minimum, which sets the score of unknown characters,
            // does not change.
            let score = vocabulary.iter().filter_map(|entry| entry[1].as_f64()).reduce(f64::min);
            for token in added_tokens {
                if token["id"].as_u64() == Some(vocabulary.len() as u64) {
                    vocabulary.push(serde_json::json!([token["content"], score.unwrap_or(0.0)]));
                }
            }
        }
        _ => {}
    }
}

fn rename_vocabulary(model: &mut Value, rank_of_id: &[u32]) {
    match &mut model["vocab"] {
        // BPE, WordPiece and WordLevel: token → id.
        Value::Object(vocabulary) => {
            vocabulary.values_mut().for_each(|id| rename(id, rank_of_id));
        }
        // Unigram: the id is the position.
        Value::Array(vocabulary) => {
            let mut sorted: Vec<(u32, Value)> =
                rank_of_id.iter().copied().zip(vocabulary.drain(..)).collect();
            sorted.sort_by_key(|&(rank, _)| rank);
            vocabulary.extend(sorted.into_iter().map(|(_, entry)| entry));
            rename(&mut model["unk_id"], rank_of_id);
        }
        _ => {}
    }
}

fn rename_post_processor(processor: &mut Value, rank_of_id: &[u32]) {
    match processor["type"].as_str() {
        Some("Sequence") => {
            let parts = processor["processors"].as_array_mut();
            parts.into_iter().flatten().for_each(|part| rename_post_processor(part, rank_of_id));
        }
        Some("TemplateProcessing") => {
            let special = processor["special_tokens"].as_object_mut();
            for token in special.into_iter().flat_map(serde_json::Map::values_mut) {
                let ids = token["ids"].as_array_mut();
                ids.into_iter().flatten().for_each(|id| rename(id, rank_of_id));
            }
        }
        // Each is a pair of token and id.
        Some("BertProcessing" | "RobertaProcessing") => {
            for name in ["sep", "cls"] {
                rename(&mut processor[name][1], rank_of_id);
            }
        }
        _ => {}
    }
}

/// Renames one id; anything but a known id is unchanged.
fn rename(id: &mut Value, rank_of_id: &[u32]) {
    let rank = id.as_u64().and_then(|id| rank_of_id.get(id as usize));
    if let Some(&rank) = rank {
        *id = rank.into();
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::AddedToken;
    use tokenizers::models::unigram::Unigram;
    use tokenizers::processors::template::TemplateProcessing;

    use super::super::tests::example;
    use super::*;

    /// Reverses the ids 0…n−1.
    fn reversal(size: usize) -> Vec<u32> {
        (0..size as u32).rev().collect()
    }

    fn assert_renames(tokenizer: &Tokenizer, text: &str) {
        let ranks = reversal(tokenizer.vocabulary_size());
        let renamed = tokenizer.renamed(&ranks).unwrap();
        let old = tokenizer.encode(text).unwrap();
        let expected: Vec<u32> = old.iter().map(|&id| ranks[id as usize]).collect();
        assert_eq!(renamed.encode(text).unwrap(), expected);
        assert_eq!(renamed.decode(&expected).unwrap(), tokenizer.decode(&old).unwrap());
        assert_eq!(renamed.vocabulary_size(), tokenizer.vocabulary_size());
    }

    #[test]
    fn byte_level_bpe() {
        assert_renames(&example(), "the cat sat on 12 mats — naïvely");
    }

    #[test]
    fn special_tokens_and_the_post_processor_follow() {
        let mut tokenizer = example();
        let specials = ["<s>", "</s>"].map(|token| AddedToken::from(token, true));
        tokenizer.inner.add_special_tokens(specials).unwrap();
        let id = |token| tokenizer.token_id(token).unwrap();
        let template = TemplateProcessing::builder()
            .try_single("<s> $0 </s>")
            .unwrap()
            .special_tokens(vec![("<s>", id("<s>")), ("</s>", id("</s>"))])
            .build()
            .unwrap();
        tokenizer.inner.with_post_processor(Some(template));
        assert_renames(&tokenizer, "the cat</s>the mat");

        let ranks = reversal(tokenizer.vocabulary_size());
        let renamed = tokenizer.renamed(&ranks).unwrap();
        let closed = renamed.inner.encode("the", true).unwrap();
        assert_eq!(closed.get_ids().last(), renamed.token_id("</s>").as_ref());
    }

    #[test]
    fn unigram_keeps_its_unknown_token() {
        let vocabulary = [("<unk>", 0.0), ("a", -1.0), ("b", -2.0), ("ab", -1.5)];
        let vocabulary = vocabulary.map(|(token, score)| (token.to_owned(), score)).to_vec();
        let model = Unigram::from(vocabulary, Some(0), false).unwrap();
        let tokenizer = Tokenizer { inner: tokenizers::Tokenizer::new(model) };
        assert_renames(&tokenizer, "abxba");
    }
}
