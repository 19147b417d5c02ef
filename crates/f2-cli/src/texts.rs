//! Reading generated texts: JSON Lines with `ids` or `text`, or plain text, one text a line.

use std::collections::HashMap;
use std::io::{BufRead, ErrorKind};
use std::path::{Path, PathBuf};

use f2_corpus::{Tokenizer, open_text};
use rayon::prelude::*;
use serde::Deserialize;

use crate::bounded::BoundedLines;
use crate::failure::{Failure, Kind};

/// How text becomes tokens.
pub(crate) enum Splitting {
    /// By a tokenizer.
    Tokenizer(Box<Tokenizer>),
    /// At white space, each different word a token.
    Words,
}

/// The texts of one file as token ids.
pub(crate) struct Texts {
    pub(crate) path: PathBuf,
    pub(crate) ids: Vec<Vec<u32>>,
    /// The ids as given, if `ids` were replaced since, by ranks.
    pub(crate) own_ids: Option<Vec<Vec<u32>>>,
    /// The texts as strings, if the file has them.
    pub(crate) strings: Option<Vec<String>>,
    /// The prompts of the texts, if the file has them.
    pub(crate) prompts: Option<Vec<String>>,
    /// The line number of each text.
    lines: Vec<usize>,
    /// Whether the file holds ids, not text.
    pub(crate) given_as_ids: bool,
}

impl Texts {
    /// File and line of a text, for a message.
    pub(crate) fn place(&self, number: usize) -> String {
        line_of(&self.path, self.lines[number])
    }

    /// How many texts have fewer tokens than this.
    pub(crate) fn shorter_than(&self, tokens: usize) -> usize {
        self.ids.iter().filter(|text| text.len() < tokens).count()
    }
}

/// Reads files of texts, so that equal words get equal ids in all of them.
pub(crate) struct TextReader {
    /// The requested splitting; by words if `None`.
    splitting: Option<Splitting>,
    words: HashMap<String, u32>,
}

/// The content of a file.
enum Content {
    Ids(Vec<Vec<u32>>),
    Text(Vec<String>),
}

#[derive(Deserialize)]
struct JsonLine {
    ids: Option<Vec<u32>>,
    text: Option<String>,
    /// A string in files of `f2 generate`; other programs may store other values under this name.
    prompt: Option<serde_json::Value>,
}

/// The texts of a file, and their strings and prompts if known.
struct Parsed {
    /// The line number of each text.
    numbers: Vec<usize>,
    content: Content,
    strings: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
}

impl TextReader {
    pub(crate) fn new(splitting: Option<Splitting>) -> Self {
        Self { splitting, words: HashMap::new() }
    }

    /// Reads a file that must hold at least one text.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Texts, Failure> {
        let (numbers, lines) = lines(path, open_text(path)?)?;
        let parsed = if is_json(path) {
            parse_json(path, numbers, lines, self.splitting.is_some())?
        } else {
            Parsed { numbers, content: Content::Text(lines), strings: None, prompts: None }
        };
        let Parsed { numbers, content, strings, prompts } = parsed;
        if numbers.is_empty() {
            return Err(Failure::data(format!("{} holds no texts", path.display()))
                .advise("give a file with one text a line"));
        }
        let given_as_ids = matches!(content, Content::Ids(_));
        let (ids, strings) = match content {
            Content::Ids(ids) => (ids, strings),
            Content::Text(texts) => (self.split(&texts)?, Some(texts)),
        };
        let path = path.to_path_buf();
        Ok(Texts { path, ids, own_ids: None, strings, prompts, lines: numbers, given_as_ids })
    }

    /// Whether any text read so far was split into words.
    pub(crate) fn split_into_words(&self) -> bool {
        !self.words.is_empty()
    }

    fn split(&mut self, texts: &[String]) -> Result<Vec<Vec<u32>>, Failure> {
        if let Some(Splitting::Tokenizer(tokenizer)) = &self.splitting {
            let encode = |encoder: &mut f2_corpus::Encoder, text: &String| {
                let mut ids = Vec::new();
                encoder.encode(text, &mut ids).map(|()| ids)
            };
            let encoded: Result<_, f2_corpus::Error> =
                texts.par_iter().map_init(|| tokenizer.encoder(), encode).collect();
            return Ok(encoded?);
        }
        Ok(texts.iter().map(|text| self.split_words(text)).collect())
    }

    fn split_words(&mut self, text: &str) -> Vec<u32> {
        let mut id = |word: &str| {
            if let Some(&id) = self.words.get(word) {
                return id;
            }
            let id = self.words.len() as u32;
            self.words.insert(word.to_owned(), id);
            id
        };
        text.split_whitespace().map(&mut id).collect()
    }
}

/// Opens a file of text, compressed or not; `-` is standard input.
pub(crate) fn open_file_or_input(path: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::BufReader::new(std::io::stdin())));
    }
    Ok(open_text(path)?)
}

/// The lines of a file, without line breaks and a byte order mark, and their numbers from 1.
pub(crate) fn lines(path: &Path, text: impl BufRead) -> Result<(Vec<usize>, Vec<String>), Failure> {
    let read = |(number, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => {
                Failure::data(format!("{}: this is not UTF-8", line_of(path, number)))
                    .advise("convert the file to UTF-8")
            }
            ErrorKind::FileTooLarge => {
                Failure::new(Kind::Device, format!("{}: {error}", line_of(path, number)))
                    .advise("give one text a line, and large files in parts")
            }
            _ if is_packed(path) => Failure::data(format!(
                "{}: the compressed data is cut short or damaged: {error}",
                path.display()
            ))
            .advise("fetch or pack the file again"),
            _ => Failure::data(format!("cannot read {}: {error}", line_of(path, number)))
                .advise("check that it is a file and may be read"),
        })?;
        Ok((number, line))
    };
    (1..).zip(BoundedLines::of_file(text)).map(read).collect()
}

const PACKED: [&str; 3] = [".gz", ".zst", ".zstd"];

fn lower_case_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn is_packed(path: &Path) -> bool {
    PACKED.iter().any(|ending| lower_case_name(path).ends_with(ending))
}

/// Whether a file is JSON Lines by its name, compressed or not.
pub(crate) fn is_json(path: &Path) -> bool {
    let name = lower_case_name(path);
    let name =
        PACKED.iter().fold(name.as_str(), |name, packed| name.strip_suffix(packed).unwrap_or(name));
    [".jsonl", ".ndjson", ".json"].iter().any(|ending| name.ends_with(ending))
}

/// The texts of JSON Lines. The first line decides between ids and text; if it has both, text is
/// taken if a way to split it was requested.
fn parse_json(
    path: &Path,
    numbers: Vec<usize>,
    lines: Vec<String>,
    prefer_text: bool,
) -> Result<Parsed, Failure> {
    let parse = |(number, line): (usize, String)| {
        let parsed = serde_json::from_str::<JsonLine>(&line).map_err(|error| {
            let reason = error.to_string().replace(" at line 1 column", " at column");
            Failure::data(format!("{}: {reason}", line_of(path, number)))
                .advise("each line must be an object with `ids` or `text`")
        })?;
        Ok((number, parsed))
    };
    let filled = numbers.into_iter().zip(lines).filter(|(_, line)| !line.trim().is_empty());
    let records: Vec<(usize, JsonLine)> = filled.map(parse).collect::<Result<_, Failure>>()?;
    let prompt = |(_, each): &(usize, JsonLine)| each.prompt.as_ref()?.as_str().map(str::to_owned);
    let prompts = records.iter().map(prompt).collect();
    let as_text = records.first().is_some_and(|(_, first)| match (&first.ids, &first.text) {
        (Some(_), Some(_)) => prefer_text,
        (ids, _) => ids.is_none(),
    });
    let numbers: Vec<usize> = records.iter().map(|&(number, _)| number).collect();
    let first = numbers.first().copied().unwrap_or(1);
    let mut strings = None;
    let content = if as_text {
        let text = |(number, each): (usize, JsonLine)| {
            each.text.ok_or_else(|| lacks(path, number, first, "text"))
        };
        Content::Text(records.into_iter().map(text).collect::<Result<_, _>>()?)
    } else {
        strings = records.iter().map(|(_, each)| each.text.clone()).collect();
        let ids = |(number, each): (usize, JsonLine)| {
            each.ids.ok_or_else(|| lacks(path, number, first, "ids"))
        };
        Content::Ids(records.into_iter().map(ids).collect::<Result<_, _>>()?)
    };
    Ok(Parsed { numbers, content, strings, prompts })
}

fn lacks(path: &Path, line: usize, first: usize, field: &str) -> Failure {
    let reason = if line == first {
        "there is neither `ids` nor `text`".to_owned()
    } else {
        format!("there is no `{field}`, which the lines before it have")
    };
    Failure::data(format!("{}: {reason}", line_of(path, line)))
        .advise("a file holds either `ids` in every line or `text` in every line")
}

pub(crate) fn line_of(path: &Path, line: usize) -> String {
    format!("{}, line {line}", path.display())
}
