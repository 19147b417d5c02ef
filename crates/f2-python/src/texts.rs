//! Conversion of texts from Python to token ids.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use rustc_hash::FxHashMap;

use crate::numbers::Array;

/// Texts as token ids, concatenated.
pub(crate) struct Texts {
    ids: Ids,
    /// Where each text ends.
    ends: Vec<usize>,
}

enum Ids {
    Owned(Vec<u32>),
    Array(Array),
}

/// The kind of the tokens of texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// Token ids, used as given.
    Ids,
    /// Words, numbered in order of first occurrence.
    Words,
}

/// Reads several sets of texts with common ids, so that equal words have equal ids.
#[derive(Default)]
pub(crate) struct Reader {
    words: FxHashMap<String, u32>,
    /// The kind of tokens in the texts read so far, and the argument that set it.
    tokens: Option<(Tokens, &'static str)>,
}

impl Texts {
    /// Each text.
    pub(crate) fn slices(&self) -> Vec<&[u32]> {
        let ids = match &self.ids {
            Ids::Owned(ids) => &ids[..],
            Ids::Array(array) => array.values(),
        };
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &ids[start..*end]).collect()
    }

    /// The same texts with each id replaced by its entry in `new_ids`. `argument` names the texts
    /// in messages.
    pub(crate) fn renamed(self, argument: &str, new_ids: &[u32]) -> PyResult<Self> {
        let mut ids = Vec::with_capacity(self.ends.last().copied().unwrap_or(0));
        for (number, text) in self.slices().into_iter().enumerate() {
            for id in text {
                let new = new_ids.get(*id as usize).ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "{argument}: text {number} holds the token id {id}, but the counts cover \
                         the ids 0 to {} only",
                        new_ids.len() - 1
                    ))
                })?;
                ids.push(*new);
            }
        }
        Ok(Self { ids: Ids::Owned(ids), ends: self.ends })
    }
}

impl Reader {
    /// Whether words were read, whose ids are arbitrary.
    pub(crate) fn has_words(&self) -> bool {
        self.tokens.is_some_and(|(tokens, _)| tokens == Tokens::Words)
    }

    /// Reads an argument prepared by `f2_softmax._texts`: a list of texts, or a pair of an array of
    /// all ids and the ends of the texts in it.
    pub(crate) fn read(
        &mut self,
        argument: &'static str,
        texts: &Bound<'_, PyAny>,
    ) -> PyResult<Texts> {
        if let Ok(pair) = texts.cast::<PyTuple>() {
            return self.read_array(argument, pair);
        }
        let texts = texts.cast::<PyList>().map_err(|_| {
            PyTypeError::new_err(format!("{argument} must be a list of texts, not {}", kind(texts)))
        })?;
        let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(texts.len()));
        for (number, text) in texts.iter().enumerate() {
            self.read_text(argument, number, &text, &mut ids)?;
            ends.push(ids.len());
        }
        Ok(Texts { ids: Ids::Owned(ids), ends })
    }

    fn read_array(&mut self, argument: &'static str, pair: &Bound<'_, PyTuple>) -> PyResult<Texts> {
        let array = Array::new(&pair.get_item(0)?)?;
        let ends: Vec<usize> = pair.get_item(1)?.extract()?;
        let rising = ends.windows(2).all(|pair| pair[0] <= pair[1]);
        if !rising || ends.last().is_some_and(|end| *end > array.values().len()) {
            return Err(PyValueError::new_err(format!(
                "{argument}: the ends of the texts must not fall, nor pass the end of the ids"
            )));
        }
        self.set_kind(argument, Tokens::Ids)?;
        Ok(Texts { ids: Ids::Array(array), ends })
    }

    fn read_text(
        &mut self,
        argument: &'static str,
        number: usize,
        text: &Bound<'_, PyAny>,
        ids: &mut Vec<u32>,
    ) -> PyResult<()> {
        if let Ok(text) = text.cast::<PyString>() {
            self.set_kind(argument, Tokens::Words)?;
            text.to_cow()?.split_whitespace().for_each(|word| ids.push(self.word(word)));
            return Ok(());
        }
        if let Ok(tokens) = text.cast::<PyList>() {
            let mut tokens = tokens.iter().enumerate();
            tokens.try_for_each(|(place, token)| {
                self.read_token(argument, (number, place), &token, ids)
            })
        } else if let Ok(tokens) = text.cast::<PyTuple>() {
            let mut tokens = tokens.iter().enumerate();
            tokens.try_for_each(|(place, token)| {
                self.read_token(argument, (number, place), &token, ids)
            })
        } else {
            Err(PyTypeError::new_err(format!(
                "{argument}: text {number} is {}; a text is a string, or a list of token ids or of \
                 words",
                kind(text)
            )))
        }
    }

    fn read_token(
        &mut self,
        argument: &'static str,
        (text, place): (usize, usize),
        token: &Bound<'_, PyAny>,
        ids: &mut Vec<u32>,
    ) -> PyResult<()> {
        if let Ok(word) = token.cast::<PyString>() {
            self.set_kind(argument, Tokens::Words)?;
            ids.push(self.word(&word.to_cow()?));
            return Ok(());
        }
        match token.extract::<u32>() {
            Ok(id) => {
                self.set_kind(argument, Tokens::Ids)?;
                ids.push(id);
                Ok(())
            }
            Err(error) if error.is_instance_of::<PyTypeError>(token.py()) => {
                Err(PyTypeError::new_err(format!(
                    "{argument}: token {place} of text {text} is {}; a token is an id or a word",
                    kind(token)
                )))
            }
            Err(_) => Err(PyValueError::new_err(format!(
                "{argument}: token {place} of text {text} is {token}; ids go from 0 to {}",
                u32::MAX
            ))),
        }
    }

    /// The id of a word.
    fn word(&mut self, word: &str) -> u32 {
        if let Some(&id) = self.words.get(word) {
            return id;
        }
        let id = self.words.len() as u32;
        self.words.insert(word.to_owned(), id);
        id
    }

    /// Records the kind of tokens; refuses to mix words and ids.
    fn set_kind(&mut self, argument: &'static str, tokens: Tokens) -> PyResult<()> {
        match self.tokens {
            None => self.tokens = Some((tokens, argument)),
            Some((before, _)) if before == tokens => {}
            Some((_, other)) if other == argument => {
                return Err(PyTypeError::new_err(format!(
                    "{argument} holds both token ids and words; give one or the other"
                )));
            }
            Some((_, other)) => {
                return Err(PyTypeError::new_err(format!(
                    "one of {other} and {argument} holds token ids and the other words, which \
                     cannot be compared"
                )));
            }
        }
        Ok(())
    }
}

/// The type of an object, for a message.
fn kind(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("a {name}"))
}
