//! Whether two tokenizers split text alike and differ only in their ids.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Tokenizer;

impl Tokenizer {
    /// For each id of `other`, this tokenizer's id of the same token, if both split text by the
    /// same rules; otherwise the first difference.
    pub fn ids_of(&self, other: &Self) -> Result<Vec<u32>, String> {
        if let Some(part) = self.different_part(other) {
            return Err(format!("they have another {part}"));
        }
        let (ours, theirs) = (self.inner.get_vocab(true), other.inner.get_vocab(true));
        if ours.len() != theirs.len() {
            return Err(format!("one has {} tokens, the other {}", ours.len(), theirs.len()));
        }
        let mut ids = vec![None; other.vocabulary_size()];
        let mut without_token: BTreeSet<u32> = (0..self.vocabulary_size() as u32).collect();
        for (token, id) in &theirs {
            let own = ours.get(token).ok_or_else(|| format!("only one has the token `{token}`"))?;
            ids[*id as usize] = Some(*own);
            without_token.remove(own);
        }
        // Ids without a token have a count of 0, so renaming keeps their order.
        let ids = ids.into_iter().map(|id| id.or_else(|| without_token.pop_first()));
        ids.collect::<Option<_>>().ok_or_else(|| "one has more ids than the other".to_owned())
    }

    /// The first part of the pipeline from text to tokens in which two tokenizers differ, apart
    /// from ids and added tokens.
    fn different_part(&self, other: &Self) -> Option<&'static str> {
        let [ours, theirs] = [self, other].map(Self::pipeline);
        let parts = [("normalizer", "normalizer"), ("pre_tokenizer", "rule for cutting words")];
        let differing = parts.into_iter().find(|(key, _)| ours[key] != theirs[key]);
        differing
            .map(|(_, words)| words)
            .or_else(|| (ours["model"] != theirs["model"]).then_some("list of merges"))
    }

    /// The tokenizer's JSON form without the model's ids.
    fn pipeline(&self) -> Value {
        let mut json: Value =
            serde_json::from_str(&self.to_json()).expect("a tokenizer writes valid JSON");
        if let Value::Object(model) = &mut json["model"] {
            model.remove("vocab");
            model.remove("unk_id");
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::super::{Tokenizer, WordCounts, train};

    #[test]
    fn a_renamed_tokenizer_is_known_again() {
        let tokenizer = example();
        let size = tokenizer.vocabulary_size() as u32;
        let rank_of_id: Vec<u32> = (0..size).map(|id| (id * 7 + 3) % size).collect();
        assert_ne!(size % 7, 0, "or this is no renaming");
        let renamed = tokenizer.renamed(&rank_of_id).unwrap();
        let ids = tokenizer.ids_of(&renamed).unwrap();
        for (id, rank) in rank_of_id.iter().enumerate() {
            assert_eq!(ids[*rank as usize], id as u32);
        }
    }

    #[test]
    fn a_special_token_is_known_again() {
        let tokenizer = example().with_special_token("<|endoftext|>").unwrap();
        let size = tokenizer.vocabulary_size() as u32;
        let reversed: Vec<u32> = (0..size).rev().collect();
        let renamed = tokenizer.renamed(&reversed).unwrap();
        assert_eq!(tokenizer.ids_of(&renamed).unwrap(), reversed);
    }

    #[test]
    fn another_tokenizer_is_refused() {
        let refusal = |other: &Tokenizer| example().ids_of(other).unwrap_err();
        let mut words = WordCounts::default();
        for _ in 0..9 {
            words.add("other words than those");
        }
        let other = train(words, 300, &|| false).unwrap();
        assert_eq!(refusal(&other), "they have another list of merges");
        let larger = example().with_special_token("<end>").unwrap();
        let reason = refusal(&larger);
        assert!(reason.starts_with("one has"), "{reason}");
    }
}
