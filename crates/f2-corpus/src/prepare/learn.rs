//! Learning the tokenizer from the training split.

use super::documents::Batches;
use super::encode;
use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use super::recorded_inputs;
use super::spread::Spreading;
use crate::error::{Error, Result};
use crate::manifest::Input;
use crate::parallel;
use crate::split::Split;
use crate::tokenizer::{Tokenizer, WordCounts, train};

/// A tokenizer, and the files it was learned from if it was.
pub(crate) struct Learned {
    pub(crate) tokenizer: Tokenizer,
    /// The number that word counts were divided by; see [`WordCounts::fit`].
    pub(crate) divisor: u64,
    /// The files, with their digests when they were read.
    pub(crate) inputs: Vec<Input>,
}

/// Learns a byte-level BPE from the documents of the training split.
pub(crate) fn learn(
    options: &Options,
    vocabulary_size: usize,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<Learned> {
    check_size(options, vocabulary_size)?;
    let (words, inputs) = count_words(options, plan, spreading, observer)?;
    let (tokenizer, divisor) = learn_from(words, options, vocabulary_size, observer)?;
    Ok(Learned { tokenizer, divisor, inputs })
}

/// Checks that the vocabulary has room for the bytes and the special tokens.
pub(crate) fn check_size(options: &Options, vocabulary_size: usize) -> Result<()> {
    if vocabulary_size < 256 + options.special_tokens().len() {
        return Err(Error::VocabularyTooSmall { asked: vocabulary_size });
    }
    Ok(())
}

/// Learns a tokenizer from words; also returns the number their counts were divided by.
pub(crate) fn learn_from(
    mut words: WordCounts,
    options: &Options,
    vocabulary_size: usize,
    observer: &dyn Observer,
) -> Result<(Tokenizer, u64)> {
    observer.stage("learning the vocabulary", None);
    let divisor = words.fit();
    let specials = options.special_tokens();
    let size = vocabulary_size - specials.len();
    let tokenizer = train(words, size, &|| observer.interrupted())?;
    let tokenizer = specials.into_iter().try_fold(tokenizer, Tokenizer::with_special_token)?;
    Ok((tokenizer, divisor))
}

fn count_words(
    options: &Options,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<(WordCounts, Vec<Input>)> {
    let Counted { words, documents, inputs } = count(options, plan, spreading, observer)?;
    check_words(&words, documents, options)?;
    Ok((words, inputs))
}

/// Checks that the training split is not empty.
pub(crate) fn check_words(words: &WordCounts, documents: u64, options: &Options) -> Result<()> {
    match documents {
        _ if !words.is_empty() => Ok(()),
        0 => Err(Error::Empty { inputs: options.inputs.describe() }),
        _ => Err(empty_split(options, Split::Train, documents)),
    }
}

/// The error for a split that should have documents and has none.
pub(crate) fn empty_split(options: &Options, split: Split, documents: u64) -> Error {
    let split = split.name();
    match options.pairs {
        Some(_) => Error::TooFewPairs { split, pairs: documents },
        None => Error::EmptySplit { split, documents },
    }
}

/// The words of the training split, and the files they come from.
pub(crate) struct Counted {
    pub(crate) words: WordCounts,
    /// Documents of all splits.
    pub(crate) documents: u64,
    pub(crate) inputs: Vec<Input>,
}

/// Whether a file may have training text.
pub(crate) fn is_counted(planned: &Planned) -> bool {
    planned.split.is_none_or(|split| split == Split::Train)
}

/// Counts the words of the documents in the training split.
pub(crate) fn count(
    options: &Options,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<Counted> {
    let plan: Vec<Planned> = plan.iter().filter(|file| is_counted(file)).cloned().collect();
    observer.stage("counting words", encode::total_bytes(&plan)?);
    let mut digests = Vec::new();
    let mut documents = 0;
    let counts = parallel::in_order(
        options.threads,
        Batches::new(options, &plan, spreading.clone(), true, observer, &mut digests),
        WordCounts::default,
        |words, batch| {
            let training = batch.iter().filter(|part| part.split == Split::Train);
            training.for_each(|part| match &options.pairs {
                Some(pairs) => pairs.sides(&part.text).into_iter().for_each(|side| words.add(side)),
                None => words.add(&part.text),
            });
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
    let inputs = recorded_inputs(&plan, digests);
    Ok(Counted { words: merged.unwrap_or_default(), documents, inputs })
}
