//! Learning the vocabulary from the word counts of all parts.

use std::path::Path;

use super::content::Kind;
use super::folder::{Done, PartsFolder};
use super::job::Job;
use super::record::{Record, Step, WORDS};
use crate::Observer;
use crate::error::{Error, Result};
use crate::names;
use crate::prepare::learn::{check_words, learn_from};
use crate::tokenizer::{Tokenizer, WordCounts};

/// A vocabulary that was learned from all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedVocabulary {
    /// Tokens.
    pub size: usize,
    /// Tokens that were requested.
    pub asked: usize,
    /// The number that word counts were divided by before learning.
    pub counts_divided_by: u64,
    /// Whether it had been learned before.
    pub was_there: bool,
}

/// Learns the vocabulary from the word counts of all parts in a folder, and publishes it there.
pub fn learn_vocabulary(parts: &Path, observer: &dyn Observer) -> Result<LearnedVocabulary> {
    let folder = PartsFolder::at(parts)?;
    let job = folder.job()?;
    job.check_program(parts)?;
    folder.check_all(&job)?;
    let Some(asked) = job.vocabulary_to_learn() else {
        return Err(Error::NothingToLearn { path: parts.to_path_buf() });
    };
    let (done, was_there) = obtain(&folder, &job, asked, observer)?;
    let size = learned_tokenizer(&done)?.0.vocabulary_size();
    Ok(LearnedVocabulary { size, asked, counts_divided_by: divisor(&done.record), was_there })
}

/// The vocabulary for the word counts of all parts: the existing one, or a new one.
pub(super) fn obtain(
    folder: &PartsFolder,
    job: &Job,
    vocabulary_size: usize,
    observer: &dyn Observer,
) -> Result<(Done, bool)> {
    let _lock = folder.lock_vocabulary()?;
    let counted = folder.all(job, Kind::Counted)?;
    let sha256 = |done: &Done| done.record.sha256(WORDS).unwrap_or_default().to_owned();
    let from: Vec<String> = counted.iter().map(sha256).collect();
    if let Some(done) = folder.vocabulary(job)? {
        return match &done.record.step {
            Step::Learned { from: before, .. } if *before == from => Ok((done, true)),
            _ => Err(done.bad("it was learned from other word counts than those there")),
        };
    }
    let (words, documents) = words_of(&counted, observer)?;
    check_words(&words, documents, &job.options)?;
    let (tokenizer, counts_divided_by) =
        learn_from(words, &job.options, vocabulary_size, observer)?;
    folder.publish_vocabulary(|staging| {
        let json = tokenizer.to_json();
        f2_files::write_text_atomically(&staging.join(names::TOKENIZER), &json)?;
        let step = Step::Learned { from, counts_divided_by };
        Record::of(staging, [names::TOKENIZER.to_owned()], None, job.clone(), step, Vec::new())
    })?;
    match folder.vocabulary(job)? {
        Some(done) => Ok((done, false)),
        None => unreachable!("it was published"),
    }
}

/// The word counts of all parts, and their number of documents.
fn words_of(counted: &[Done], observer: &dyn Observer) -> Result<(WordCounts, u64)> {
    let bytes = |done: &Done| done.record.files.get(WORDS).map_or(0, |file| file.bytes);
    observer.stage("adding up words", Some(counted.iter().map(bytes).sum()));
    let (mut words, mut documents) = (WordCounts::default(), 0);
    for done in counted {
        done.record.check_file(&done.path, WORDS)?;
        words.merge(WordCounts::load(&done.path.join(WORDS))?);
        if let Step::Counted { documents: more } = done.record.step {
            documents += more;
        }
        observer.advance(bytes(done));
        if observer.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok((words, documents))
}

/// The learned tokenizer, and the SHA-256 of its file.
pub(super) fn learned_tokenizer(done: &Done) -> Result<(Tokenizer, String)> {
    done.record.check_file(&done.path, names::TOKENIZER)?;
    let tokenizer = Tokenizer::load(&done.path.join(names::TOKENIZER))?;
    Ok((tokenizer, done.record.sha256(names::TOKENIZER).unwrap_or_default().to_owned()))
}

/// The number that word counts were divided by.
pub(super) fn divisor(record: &Record) -> u64 {
    match record.step {
        Step::Learned { counts_divided_by, .. } => counts_divided_by,
        _ => 1,
    }
}
