//! Learning the tokenizer from the training split.

use super::documents::Batches;
use super::encode;
use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use super::spread::Spreading;
use crate::error::{Error, Result};
use crate::input::Digest;
use crate::parallel;
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Tokenizer, WordCounts, train};

/// A tokenizer and the files it was learned from.
pub(crate) struct Learned {
    pub(crate) tokenizer: Tokenizer,
    /// Digests of the files, taken while they were read.
    pub(crate) digests: Vec<Digest>,
}

/// Learns a byte-level BPE from the documents of the training split.
pub(crate) fn learn(
    options: &Options,
    vocabulary_size: usize,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<Learned> {
    let specials = usize::from(options.marks_documents());
    if vocabulary_size < 256 + specials {
        return Err(Error::VocabularyTooSmall { asked: vocabulary_size });
    }
    let (words, digests) = count_words(options, plan, spreading, observer)?;
    observer.stage("learning the vocabulary", None);
    let interrupted = || observer.interrupted();
    let tokenizer = train(words, vocabulary_size - specials, &interrupted)?;
    let tokenizer = match specials {
        0 => tokenizer,
        _ => tokenizer.with_special_token(END_OF_TEXT)?,
    };
    Ok(Learned { tokenizer, digests })
}

fn count_words(
    options: &Options,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<(WordCounts, Vec<Digest>)> {
    let relevant = |planned: &&Planned| planned.split.is_none_or(|split| split == Split::Train);
    let plan: Vec<Planned> = plan.iter().filter(relevant).cloned().collect();
    observer.stage("counting words", encode::total_bytes(&plan)?);
    let mut digests = Vec::new();
    let mut documents = 0;
    let counts = parallel::in_order(
        options.threads,
        Batches::new(options, &plan, spreading.clone(), true, observer, &mut digests),
        WordCounts::default,
        |words, batch| {
            let training = batch.iter().filter(|part| part.split == Split::Train);
            training.for_each(|part| words.add(&part.text));
            Ok(batch.iter().filter(|part| part.begins_document).count() as u64)
        },
        |begun| {
            documents += begun;
            Ok(())
        },
    )?;
    let merged = counts.into_iter().reduce(|mut all, counts| {
        all.merge(counts);
        all
    });
    match merged {
        Some(words) if !words.is_empty() => Ok((words, digests)),
        _ if documents > 0 => Err(Error::EmptySplit { split: Split::Train.name(), documents }),
        _ => Err(Error::Empty { inputs: options.inputs.describe() }),
    }
}
