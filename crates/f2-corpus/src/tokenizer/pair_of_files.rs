//! GPT-2's pair of files, `vocab.json` and `merges.txt`, as a BPE model.

use std::collections::BTreeMap;

use ahash::AHashMap;
use tokenizers::models::bpe::BPE;

use super::sound;

/// The model, from the contents of both files.
pub(super) fn model(vocabulary: &str, merges: &str) -> tokenizers::Result<BPE> {
    let tokens: BTreeMap<String, u32> = serde_json::from_str(vocabulary)?;
    let merges = parse_merges(merges)?;
    for (left, right) in &merges {
        sound::check_merge(left, right, "", |token| tokens.contains_key(token))?;
    }
    let largest = tokens.values().copied().max().unwrap_or(0);
    sound::check_ids(largest.into(), tokens.len())?;
    BPE::builder().vocab_and_merges(tokens.into_iter().collect::<AHashMap<_, _>>(), merges).build()
}

/// The two tokens on each line, except lines that begin with `#version`.
fn parse_merges(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with("#version"));
    let pair = |(number, line): (usize, &str)| match line.split_once(' ') {
        Some((left, right)) if !right.contains(' ') => Ok((left.to_owned(), right.to_owned())),
        _ => Err(format!("line {} of the merges is not two tokens and a space", number + 1)),
    };
    lines.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_is_read_as_the_library_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let [vocabulary, merges] =
            ["vocab.json", "merges.txt"].map(|name| folder.path().join(name));
        std::fs::write(&vocabulary, r##"{"a":0,"b":1,"ab":2,"aba":3,"#":4,"#a":5}"##).unwrap();
        for text in ["", "#version: 0.2\na b\r\nab a\n# a", "a b\n#version\nab a\n"] {
            std::fs::write(&merges, text).unwrap();
            let (tokens, pairs) =
                BPE::read_file(vocabulary.to_str().unwrap(), merges.to_str().unwrap()).unwrap();
            let expected = BPE::builder().vocab_and_merges(tokens, pairs).build().unwrap();
            let found = model(&std::fs::read_to_string(&vocabulary).unwrap(), text).unwrap();
            assert_eq!(found, expected, "{text:?}");
        }
        for text in ["a b\n\n", "ab", "a b a", "a  b"] {
            let refused = model(r#"{"a":0,"b":1,"ab":2}"#, text).unwrap_err().to_string();
            assert!(refused.contains("of the merges is not two tokens"), "{refused}");
        }
    }
}
