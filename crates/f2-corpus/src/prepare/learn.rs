use super::documents::Batches;
use super::encode;
use super::inputs::Planned;
use super::observer::Observer;
use super::options::Options;
use crate::error::{Error, Result};
use crate::parallel;
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Tokenizer, WordCounts, train};

/// Learns a byte-level BPE from the documents of the training split.
pub(crate) fn learn(
    options: &Options,
    vocabulary_size: usize,
    plan: &[Planned],
    observer: &dyn Observer,
) -> Result<Tokenizer> {
    let specials = usize::from(options.end_of_text);
    if vocabulary_size < 256 + specials {
        return Err(Error::VocabularyTooSmall { asked: vocabulary_size });
    }
    let words = count_words(options, plan, observer)?;
    if words.is_empty() {
        return Err(Error::Empty { inputs: options.inputs.describe() });
    }
    observer.stage("learning the vocabulary", None);
    let tokenizer = train(words, vocabulary_size - specials)?;
    if options.end_of_text { tokenizer.with_special_token(END_OF_TEXT) } else { Ok(tokenizer) }
}

fn count_words(options: &Options, plan: &[Planned], observer: &dyn Observer) -> Result<WordCounts> {
    let relevant = |planned: &&Planned| planned.split.is_none_or(|split| split == Split::Train);
    let plan: Vec<Planned> = plan.iter().filter(relevant).cloned().collect();
    observer.stage("counting words", encode::total_bytes(&plan)?);
    let mut digests = Vec::new();
    let counts = parallel::in_order(
        options.threads,
        Batches::new(options, &plan, true, observer, &mut digests),
        WordCounts::default,
        |words, batch| {
            let training = batch.iter().filter(|part| part.split == Split::Train);
            training.for_each(|part| words.add(&part.text));
            Ok(())
        },
        Ok,
    )?;
    let merged = counts.into_iter().reduce(|mut all, counts| {
        all.merge(counts);
        all
    });
    Ok(merged.unwrap_or_default())
}
