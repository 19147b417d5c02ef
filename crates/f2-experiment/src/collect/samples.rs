//! Continuations of the same prefixes by all models.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use f2_corpus::{Corpus, Tokenizer, names};
use f2_files::{ReadError, regular_file};
use f2_metrics::Bands;
use f2_report::results::{Decoding, SampleResult, SampleText, SampleToken};
use serde::Deserialize;

use super::Made;
use crate::stages::layout::files;
use crate::stages::{Purpose, Subject};
use crate::{Error, Plan};

/// The fields used from a line of `f2 generate`.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    prompt: String,
    ids: Vec<u32>,
    #[serde(default)]
    classes: Option<Vec<u32>>,
    #[serde(default)]
    log_probabilities: Option<Vec<f64>>,
}

impl Made<'_> {
    /// The first prefixes of the test split and others spread over it, with the continuations by
    /// human and by the models of the main table.
    pub(super) fn samples(self, plan: &Plan, corpus: &Corpus) -> Result<Vec<SampleResult>, Error> {
        let decoding = Decoding::TopK { k: plan.generation.k };
        let mut writers = Vec::new();
        let mut human = None;
        for model in &plan.models {
            let subject = Subject::Model(*model);
            let Some(folder) = self.folder(&Purpose::Generate(subject, decoding)) else { continue };
            writers.push((subject.title(decoding), lines(&folder.join(files::TEXTS))?));
            human.get_or_insert(lines(&folder.join(files::REFERENCES))?);
        }
        let Some(human) = human else { return Ok(Vec::new()) };
        let reader = Reader::new(corpus)?;
        let mut samples = Vec::new();
        for place in places(plan, human.len()) {
            let mut continuations = vec![reader.read("Human", &human[place])?];
            let mut prefix = String::new();
            for (name, texts) in &writers {
                let Some(line) = texts.get(place) else { continue };
                prefix.clone_from(&line.prompt);
                continuations.push(reader.read(name, line)?);
            }
            samples.push(SampleResult { place: Some(place + 1), prefix, continuations });
        }
        Ok(samples)
    }
}

/// The indices of the prefixes to show, ascending.
fn places(plan: &Plan, all: usize) -> BTreeSet<usize> {
    let first = 0..plan.evaluation.first_samples.min(all);
    let spread = plan.evaluation.samples.min(all);
    first.chain((0..spread).map(|number| (2 * number + 1) * all / (2 * spread))).collect()
}

fn lines(path: &Path) -> Result<Vec<Line>, Error> {
    let file = BufReader::new(File::open(regular_file(path)?).map_err(ReadError::of(path))?);
    let parse = |(number, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(ReadError::of(path))?;
        serde_json::from_str(&line)
            .map_err(|error| Error::damaged(path, &format!("line {}: {error}", number + 1)))
    };
    file.lines().enumerate().map(parse).collect()
}

/// Converts ids to text tokens with their bands.
struct Reader {
    tokenizer: Tokenizer,
    bands: Bands,
    /// The tokenizer's ids by rank, if they differ.
    id_of_rank: Option<Vec<u32>>,
}

impl Reader {
    fn new(corpus: &Corpus) -> Result<Self, Error> {
        let counts = corpus.counts()?.counts;
        let bands = Bands::from_counts(&counts)
            .map_err(|error| Error::damaged(&corpus.folder().join(names::COUNTS), &error))?;
        let id_of_rank = corpus.ranks()?.map(|ranks| ranks.id_of_rank);
        Ok(Self { tokenizer: corpus.tokenizer()?, bands, id_of_rank })
    }

    fn read(&self, name: &str, line: &Line) -> Result<SampleText, Error> {
        let pieces = self.pieces(&line.ids)?;
        let of = |list: &Option<Vec<f64>>, place: usize| list.as_ref()?.get(place).copied();
        let token = |(place, (&rank, text))| SampleToken {
            text,
            band: self.bands.band(rank) as u8,
            class: line.classes.as_ref().and_then(|list| list.get(place).copied()),
            probability: of(&line.log_probabilities, place).map(f64::exp),
        };
        let tokens = line.ids.iter().zip(pieces).enumerate().map(token);
        Ok(SampleText { name: name.to_owned(), tokens: tokens.collect() })
    }

    /// The text that each token adds. If a character consists of several tokens, the last of them
    /// adds it and the others add nothing.
    fn pieces(&self, ranks: &[u32]) -> Result<Vec<String>, Error> {
        let id = |rank: &u32| self.id_of_rank.as_ref().map_or(*rank, |ids| ids[*rank as usize]);
        let ids: Vec<u32> = ranks.iter().map(id).collect();
        let mut shown = String::new();
        let mut pieces = Vec::new();
        for end in 1..=ids.len() {
            let text = self.tokenizer.decode(&ids[..end])?;
            let whole = !text.ends_with('\u{fffd}') || end == ids.len();
            let piece = if whole { text.get(shown.len()..).unwrap_or_default() } else { "" };
            pieces.push(piece.to_owned());
            shown.push_str(&pieces[end - 1]);
        }
        Ok(pieces)
    }
}
