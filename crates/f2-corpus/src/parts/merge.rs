//! From the parts of a text to its corpus.

use std::collections::HashMap;
use std::path::Path;

use super::content::Kind;
use super::folder::{Done, PartsFolder};
use super::job::Job;
use super::join::join;
use super::learn::{divisor, learned_tokenizer, obtain};
use super::record::Step;
use crate::error::{Error, Result};
use crate::manifest::Input;
use crate::prepare::learn::Learned;
use crate::prepare::spread::Spreading;
use crate::prepare::{check_unchanged, encode_and_write, given_tokenizer, publish, write_folder};
use crate::{Observer, Options, Summary};

/// A corpus assembled from parts.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The size of the corpus.
    pub summary: Summary,
    /// The options of its parts.
    pub options: Options,
}

/// Assembles the corpus from the parts in a folder.
///
/// If the parts are encoded, they are joined. If none is, the vocabulary is learned and the text is
/// encoded here. The corpus is the one that [`prepare`](crate::prepare) makes from the same text
/// with the same options.
pub fn merge(
    parts: &Path,
    out: &Path,
    replace: bool,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Merged> {
    let folder = PartsFolder::at(parts)?;
    let job = folder.job()?;
    job.check_program(parts)?;
    folder.check_all(&job)?;
    let (out, options) = (out.to_path_buf(), job.options.clone());
    let options = Options { out, replace, threads, ..options };
    let to_learn = job.vocabulary_to_learn();
    let encoded = match to_learn {
        Some(_) if !folder.any(Kind::Encoded)? => None,
        _ => Some(folder.all(&job, Kind::Encoded)?),
    };
    let summary = publish(&options, |staging| {
        let (learned, vocabulary) = match to_learn {
            Some(size) => learn_from_parts(&folder, &job, size, observer)?,
            None => (given(&job, &options)?, None),
        };
        match &encoded {
            Some(parts) => {
                check_vocabulary(parts, vocabulary.as_deref())?;
                let inputs = inputs_of(&job, parts)?;
                check_unchanged(&learned.inputs, &inputs)?;
                let encoded = join(&options, parts, &learned.tokenizer, staging, observer)?;
                let summary = write_folder(&options, inputs, &learned.tokenizer, encoded, staging)?;
                Ok(Summary { counts_divided_by: learned.divisor, ..summary })
            }
            None => {
                let mut plan = job.plan()?;
                let spreading = Spreading::of(&options, &mut plan, observer)?;
                encode_and_write(&options, &plan, spreading, &learned, staging, observer)
            }
        }
    })?;
    Ok(Merged { summary, options })
}

/// The vocabulary of all parts, and the SHA-256 of its file.
fn learn_from_parts(
    folder: &PartsFolder,
    job: &Job,
    size: usize,
    observer: &dyn Observer,
) -> Result<(Learned, Option<String>)> {
    let counted = folder.all(job, Kind::Counted)?;
    let inputs = read_by(&counted)?.into_values().collect();
    let (done, _) = obtain(folder, job, size, observer)?;
    let (tokenizer, sha256) = learned_tokenizer(&done)?;
    Ok((Learned { tokenizer, divisor: divisor(&done.record), inputs }, Some(sha256)))
}

/// The given tokenizer, provided that it is still the one the parts were encoded with.
fn given(job: &Job, options: &Options) -> Result<Learned> {
    job.check_tokenizer()?;
    Ok(Learned { tokenizer: given_tokenizer(options)?, divisor: 1, inputs: Vec::new() })
}

/// Checks that every part was encoded with the current vocabulary.
fn check_vocabulary(parts: &[Done], current: Option<&str>) -> Result<()> {
    for part in parts {
        match &part.record.step {
            Step::Encoded { vocabulary, .. } if vocabulary.as_deref() == current => {}
            _ => return Err(part.bad("it was encoded with another vocabulary than the one there")),
        }
    }
    Ok(())
}

/// The files that parts have read. A file read by several must have been the same for all.
fn read_by(parts: &[Done]) -> Result<HashMap<String, Input>> {
    let mut found: HashMap<String, Input> = HashMap::new();
    for input in parts.iter().flat_map(|part| &part.record.inputs) {
        let path = &input.digest.path;
        let before = found.entry(path.clone()).or_insert_with(|| input.clone());
        if before.digest != input.digest {
            return Err(Error::InputChanged { path: path.clone() });
        }
    }
    Ok(found)
}

/// All inputs of a job, in order, as its parts have read them.
fn inputs_of(job: &Job, parts: &[Done]) -> Result<Vec<Input>> {
    let found = read_by(parts)?;
    let input = |file: &super::job::JobFile| match found.get(&file.path) {
        Some(input) => Ok(Input { split: file.split, digest: input.digest.clone() }),
        None => Err(parts[0].bad(format!("no part has read {}", file.path))),
    };
    job.files.iter().map(input).collect()
}
