//! Text to ids and back, by frequency rank.

use f2_corpus::{Error, Ranks, Tokenizer};

/// Texts of at least this many bytes are encoded piece by piece by an
/// [`Encoder`](f2_corpus::Encoder): a whole book at once takes some hundred bytes of memory for
/// each of its own.
const LONG_TEXT: usize = 1 << 18;

/// A model's tokenizer, in the model's own ids: frequency ranks.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    tokenizer: Tokenizer,
    /// The ranks of ids and the ids of ranks, if the two differ.
    renaming: Option<Renaming>,
}

#[derive(Clone, Debug)]
struct Renaming {
    rank_of_id: Vec<u32>,
    id_of_rank: Vec<u32>,
}

impl Vocabulary {
    /// A tokenizer whose ids are ranks, or are renamed to them.
    pub fn new(tokenizer: Tokenizer, ranks: Option<Ranks>) -> Self {
        let renaming = ranks
            .map(|ranks| Renaming { rank_of_id: ranks.rank_of_id(), id_of_rank: ranks.id_of_rank });
        Self { tokenizer, renaming }
    }

    /// How many ids there are.
    pub fn size(&self) -> usize {
        let renamed = self.renaming.as_ref().map(|renaming| renaming.id_of_rank.len());
        renamed.unwrap_or_else(|| self.tokenizer.vocabulary_size())
    }

    /// The ids of a text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::new();
        if text.len() < LONG_TEXT {
            ids = self.tokenizer.encode(text)?;
        } else {
            self.tokenizer.encoder().encode(text, &mut ids)?;
        }
        if let Some(renaming) = &self.renaming {
            ids.iter_mut().for_each(|id| *id = renaming.rank_of_id[*id as usize]);
        }
        Ok(ids)
    }

    /// The text of some ids. Bytes that are not UTF-8 become replacement characters, and ids
    /// without a token are left out.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        let Some(renaming) = &self.renaming else { return self.tokenizer.decode(ids) };
        let own = |rank: &u32| renaming.id_of_rank.get(*rank as usize).copied();
        self.tokenizer.decode(&ids.iter().filter_map(own).collect::<Vec<u32>>())
    }

    /// The id of a special token, such as the one that ends a text, if there is one.
    pub fn token(&self, text: &str) -> Option<u32> {
        let id = self.tokenizer.token_id(text)?;
        Some(self.renaming.as_ref().map_or(id, |renaming| renaming.rank_of_id[id as usize]))
    }

    /// The ids of the tokens that contain one of these texts, ascending.
    pub fn tokens_with<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<u32>, Error> {
        let mut found = Vec::new();
        for id in 0..self.size() as u32 {
            let token = self.decode(&[id])?;
            if texts.iter().any(|text| token.contains(text.as_ref())) {
                found.push(id);
            }
        }
        Ok(found)
    }

    /// Decodes a text token by token.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream { vocabulary: self, shown: Vec::new(), held: Vec::new() }
    }
}

/// No character of UTF-8 has more bytes, so no more tokens can be waiting for its end.
const LONGEST_CHARACTER: usize = 4;

/// Decodes a text while it is generated: a character whose bytes are spread over several tokens is
/// held back until it is complete.
#[derive(Clone, Debug)]
pub struct TextStream<'a> {
    vocabulary: &'a Vocabulary,
    /// The tokens of the last piece returned: the text of later tokens can depend on them.
    shown: Vec<u32>,
    held: Vec<u32>,
}

impl TextStream<'_> {
    /// The text that this token completes; empty while a character is incomplete.
    pub fn push(&mut self, id: u32) -> Result<String, Error> {
        self.held.push(id);
        let text = self.waiting()?;
        let broken = text.ends_with(char::REPLACEMENT_CHARACTER);
        if broken && self.held.len() < LONGEST_CHARACTER {
            return Ok(String::new());
        }
        self.shown = std::mem::take(&mut self.held);
        Ok(text)
    }

    /// The text still held back, once there are no more tokens.
    pub fn finish(mut self) -> Result<String, Error> {
        let text = self.waiting()?;
        self.held.clear();
        Ok(text)
    }

    fn waiting(&self) -> Result<String, Error> {
        let before = self.vocabulary.decode(&self.shown)?;
        let all = self.vocabulary.decode(&[&self.shown[..], &self.held].concat())?;
        Ok(all.get(before.len()..).unwrap_or_default().to_owned())
    }
}
