//! The steps of one part: counting its words, or encoding its documents.

use super::Part;
use super::content::Kind;
use super::folder::{Done, PartsFolder};
use super::job::Job;
use super::learn::learned_tokenizer;
use super::record::{Record, Step, WORDS};
use super::share::share;
use crate::error::Result;
use crate::manifest::SplitSize;
use crate::names;
use crate::prepare::inputs::Planned;
use crate::prepare::learn::Counted;
use crate::prepare::spread::Spreading;
use crate::prepare::{
    check_separator, check_unchanged, encode, given_tokenizer, learn, recorded_inputs,
};
use crate::{Observer, Options};

/// The result of a part's step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartDone {
    /// Its words are counted.
    Counted {
        /// Documents of the part, in all splits.
        documents: u64,
    },
    /// Its documents are encoded.
    Encoded {
        /// The size of each split.
        splits: Vec<SplitSize>,
    },
}

/// Performs the next step for a part of the text, in the folder of parts [`Options::out`]: counts
/// its words or, once the vocabulary is learned or if a tokenizer is given, encodes its documents.
/// A finished step is not repeated; the flag is true if it was finished before.
pub fn prepare_part(
    options: &Options,
    part: Part,
    observer: &dyn Observer,
) -> Result<(PartDone, bool)> {
    check_separator(options)?;
    let folder = PartsFolder::at(&options.out)?;
    let (job, plan) = Job::new(options, part.of)?;
    if let Some(size) = job.vocabulary_to_learn() {
        learn::check_size(options, size)?;
    }
    let _lock = folder.lock(part)?;
    folder.check_first(&job)?;
    let work = Work { folder, job, plan, options, part, observer };
    if work.job.vocabulary_to_learn().is_none() {
        return work.encode(None);
    }
    let counted = work.folder.done(&work.job, Kind::Counted, part)?;
    match (counted, work.folder.vocabulary(&work.job)?) {
        (Some(counted), Some(vocabulary)) => work.encode(Some((counted, vocabulary))),
        // If the word counts were lost after the vocabulary was learned, count them again.
        (counted, _) => work.count(counted),
    }
}

struct Work<'a> {
    folder: PartsFolder,
    job: Job,
    plan: Vec<Planned>,
    options: &'a Options,
    part: Part,
    observer: &'a dyn Observer,
}

impl Work<'_> {
    fn count(mut self, done: Option<Done>) -> Result<(PartDone, bool)> {
        if let Some(Step::Counted { documents }) = done.map(|done| done.record.step) {
            return Ok((PartDone::Counted { documents }, true));
        }
        let (share, spreading) = self.share(learn::is_counted)?;
        let Counted { words, documents, inputs } =
            learn::count(self.options, &share, &spreading, self.observer)?;
        self.folder.publish(Kind::Counted, self.part, |staging| {
            words.save(&staging.join(WORDS))?;
            let step = Step::Counted { documents };
            Record::of(staging, [WORDS.to_owned()], Some(self.part), self.job.clone(), step, inputs)
        })?;
        Ok((PartDone::Counted { documents }, false))
    }

    /// Encodes the documents with the learned vocabulary, or with the given tokenizer. The files
    /// must be those whose words were counted.
    fn encode(mut self, learned: Option<(Done, Done)>) -> Result<(PartDone, bool)> {
        let (tokenizer, vocabulary, before) = match learned {
            Some((counted, learned)) => {
                let (tokenizer, sha256) = learned_tokenizer(&learned)?;
                (tokenizer, Some(sha256), counted.record.inputs)
            }
            None => (given_tokenizer(self.options)?, None, Vec::new()),
        };
        if let Some(done) = self.folder.done(&self.job, Kind::Encoded, self.part)?
            && let Step::Encoded { vocabulary: with, splits } = done.record.step
            && with == vocabulary
        {
            return Ok((PartDone::Encoded { splits }, true));
        }
        let (share, spreading) = self.share(|_| true)?;
        let mut splits = Vec::new();
        self.folder.publish(Kind::Encoded, self.part, |staging| {
            let (options, observer) = (self.options, self.observer);
            let encoded =
                encode::encode(options, &share, spreading, &tokenizer, staging, observer)?;
            let inputs = recorded_inputs(&share, encoded.digests);
            check_unchanged(&before, &inputs)?;
            let mut names: Vec<String> = options.written_texts().map(names::text).collect();
            for writer in encoded.writers {
                names.extend(writer.finish(None)?);
            }
            splits.clone_from(&encoded.sizes);
            let step = Step::Encoded { vocabulary, splits: encoded.sizes };
            Record::of(staging, names, Some(self.part), self.job.clone(), step, inputs)
        })?;
        Ok((PartDone::Encoded { splits }, false))
    }

    /// The files this part reads, and how their documents are spread over the splits.
    fn share(&mut self, wanted: fn(&Planned) -> bool) -> Result<(Vec<Planned>, Spreading)> {
        let spreading = Spreading::of(self.options, &mut self.plan, self.observer)?;
        let share = share(self.options, &self.plan, self.part, wanted, self.observer)?;
        Ok((share, spreading))
    }
}
