//! `prepare`: from files of text to a corpus folder.

mod documents;
pub(crate) mod encode;
pub(crate) mod inputs;
pub(crate) mod learn;
mod observer;
mod options;
pub(crate) mod spread;
mod texts;

use std::collections::HashMap;
use std::path::Path;

use f2_files::{Lock, ReadError, StagedFolder};

use crate::error::{Error, Result};
use crate::input::Digest;
use crate::manifest::{Input, Manifest, Recorded, SplitSize, made_by};
use crate::names;
use crate::sealed::{Sealed as _, recorded_files};
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Tokenizer};

use encode::Encoded;
use inputs::Planned;
use learn::Learned;
use spread::Spreading;

pub use documents::documents;
pub use observer::{Observer, Silent};
pub use options::{Inputs, LONGEST_DOCUMENT, Options, SHARD_TOKENS, TokenizerChoice};

/// The size of a prepared corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The size of each split, in the order of [`Split::ALL`].
    pub splits: Vec<SplitSize>,
    /// Size of the vocabulary; smaller than requested if the text has no more pairs to merge.
    pub vocabulary_size: usize,
    /// The number that word counts were divided by before the vocabulary was learned: 1 unless the
    /// text has more pairs than the trainer can count.
    pub counts_divided_by: u64,
}

/// Makes a corpus folder from text.
///
/// Everything is written into a staging folder beside [`Options::out`], which is renamed once it is
/// complete, and removed on any error or interruption.
pub fn prepare(options: &Options, observer: &dyn Observer) -> Result<Summary> {
    check_separator(options)?;
    publish(options, |folder| {
        let mut plan = Planned::all(options, Some(folder), observer)?;
        let spreading = Spreading::of(options, &mut plan, observer)?;
        let learned = obtain_tokenizer(options, &plan, &spreading, observer)?;
        let written = encode_and_write(options, &plan, spreading, &learned, folder, observer)?;
        inputs::remove_spools(folder)?;
        Ok(written)
    })
}

/// Writes a corpus into a staging folder and renames it to [`Options::out`].
pub(crate) fn publish(
    options: &Options,
    write: impl FnOnce(&Path) -> Result<Summary>,
) -> Result<Summary> {
    let _lock = Lock::beside(&options.out)?;
    check_output(&options.out, options.replace)?;
    let staged = StagedFolder::create(&options.out)?;
    let summary = write(staged.path())?;
    // Hours may have passed.
    check_output(&options.out, options.replace)?;
    staged.publish()?;
    Ok(summary)
}

/// Encodes all files and writes the corpus. The files must not have changed since the tokenizer was
/// learned from them.
pub(crate) fn encode_and_write(
    options: &Options,
    plan: &[Planned],
    spreading: Spreading,
    learned: &Learned,
    folder: &Path,
    observer: &dyn Observer,
) -> Result<Summary> {
    let tokenizer = &learned.tokenizer;
    let mut encoded = encode::encode(options, plan, spreading, tokenizer, folder, observer)?;
    let inputs = recorded_inputs(plan, std::mem::take(&mut encoded.digests));
    check_unchanged(&learned.inputs, &inputs)?;
    let summary = write_folder(options, inputs, tokenizer, encoded, folder)?;
    Ok(Summary { counts_divided_by: learned.divisor, ..summary })
}

/// Refuses a separator that is empty or contains white space.
pub(crate) fn check_separator(options: &Options) -> Result<()> {
    let separator = options.pairs.as_ref().map(|pairs| &pairs.separator);
    match separator.filter(|token| token.is_empty() || token.contains(char::is_whitespace)) {
        Some(separator) => Err(Error::BadSeparator { separator: separator.clone() }),
        None => Ok(()),
    }
}

/// Checks the output folder: only an empty one, or one with nothing but a corpus, is replaced.
fn check_output(out: &Path, replace: bool) -> Result<()> {
    let is_free = || out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if !out.exists() || is_free() {
        return Ok(());
    }
    let path = out.to_path_buf();
    match (Manifest::load(&out.join(names::MANIFEST)), replace) {
        (Err(_), _) => Err(Error::NotACorpus { path }),
        (Ok(_), false) => Err(Error::Exists { path }),
        (Ok(_), true) => match foreign_entry(out)? {
            Some(name) => Err(Error::Foreign { path, name }),
            None => Ok(()),
        },
    }
}

/// An entry of a corpus folder that `f2` does not write. Hidden leftovers of killed writers are not
/// foreign.
fn foreign_entry(folder: &Path) -> Result<Option<String>> {
    let mut foreign = Vec::new();
    for entry in folder.read_dir().map_err(ReadError::of(folder))? {
        let name = entry.map_err(ReadError::of(folder))?.file_name();
        let name = name.to_string_lossy().into_owned();
        let leftover = name.starts_with('.') && name.ends_with(".partial");
        if !leftover && !names::is_own(&name) {
            foreign.push(name);
        }
    }
    Ok(foreign.into_iter().min())
}

fn obtain_tokenizer(
    options: &Options,
    plan: &[Planned],
    spreading: &Spreading,
    observer: &dyn Observer,
) -> Result<Learned> {
    if let TokenizerChoice::Train { vocabulary_size } = options.tokenizer {
        return learn::learn(options, vocabulary_size, plan, spreading, observer);
    }
    Ok(Learned { tokenizer: given_tokenizer(options)?, divisor: 1, inputs: Vec::new() })
}

/// The tokenizer given by the user.
pub(crate) fn given_tokenizer(options: &Options) -> Result<Tokenizer> {
    match &options.tokenizer {
        TokenizerChoice::File(path) => Tokenizer::load(path),
        TokenizerChoice::VocabularyAndMerges { vocabulary, merges } => {
            Tokenizer::load_vocabulary_and_merges(vocabulary, merges)
        }
        TokenizerChoice::Train { .. } => unreachable!("it is learned"),
    }
}

/// Checks that the encoded files have not changed since the tokenizer was learned from them.
pub(crate) fn check_unchanged(learned: &[Input], encoded: &[Input]) -> Result<()> {
    let before: HashMap<&str, &Digest> =
        learned.iter().map(|Input { digest, .. }| (digest.path.as_str(), digest)).collect();
    let changed = |now: &&Digest| before.get(now.path.as_str()).is_some_and(|before| before != now);
    match encoded.iter().map(|input| &input.digest).find(changed) {
        Some(now) => Err(Error::InputChanged { path: now.path.clone() }),
        None => Ok(()),
    }
}

/// Checks that every split that should have documents has some.
fn check_splits(options: &Options, sizes: &[SplitSize]) -> Result<()> {
    let documents = sizes.iter().map(|size| size.documents).sum();
    if documents == 0 {
        return Err(Error::Empty { inputs: options.inputs.describe() });
    }
    for size in sizes {
        if size.documents == 0 && options.inputs.expects(size.split) {
            return Err(learn::empty_split(options, size.split, documents));
        }
    }
    Ok(())
}

/// Renames ids to ranks and writes all files of the corpus.
pub(crate) fn write_folder(
    options: &Options,
    inputs: Vec<Input>,
    tokenizer: &Tokenizer,
    encoded: Encoded,
    folder: &Path,
) -> Result<Summary> {
    check_splits(options, &encoded.sizes)?;
    let (ranks, counts) = crate::Ranks::by_count(&encoded.count_of_id);
    counts.save(&folder.join(names::COUNTS))?;
    let rank_of_id = ranks.rank_of_id();
    let renaming = (!options.keep_ids).then_some(rank_of_id.as_slice());
    let mut shards = Vec::new();
    for writer in encoded.writers {
        shards.extend(writer.finish(renaming)?);
    }
    let tokenizer = match renaming {
        Some(rank_of_id) => tokenizer.renamed(rank_of_id)?.to_json(),
        None => {
            ranks.save(&folder.join(names::RANKS))?;
            tokenizer.to_json()
        }
    };
    f2_files::write_text_atomically(&folder.join(names::TOKENIZER), &tokenizer)?;
    let vocabulary_size = encoded.count_of_id.len();
    let files = recorded_files(folder, files_of(options, shards))?;
    let manifest = Manifest {
        version: Manifest::version_of(&files, options.pairs.is_some()),
        made_by: made_by(),
        inputs,
        options: recorded_options(options),
        vocabulary_size,
        splits: encoded.sizes.clone(),
        files,
        checksum: String::new(),
    };
    manifest.save(&folder.join(names::MANIFEST))?;
    Ok(Summary { splits: encoded.sizes, vocabulary_size, counts_divided_by: 1 })
}

/// The names of all files of the corpus except its manifest.
fn files_of(options: &Options, shards: Vec<String>) -> impl Iterator<Item = String> {
    let texts = options.written_texts().map(names::text);
    let ranks = options.keep_ids.then(|| names::RANKS.to_owned());
    let others = [names::TOKENIZER, names::COUNTS].map(str::to_owned);
    shards.into_iter().chain(texts).chain(others).chain(ranks)
}

/// The files that were read, by the names the user gave.
pub(crate) fn recorded_inputs(plan: &[Planned], digests: Vec<Digest>) -> Vec<Input> {
    let record = |(planned, digest): (&Planned, Digest)| Input {
        split: planned.split,
        digest: Digest { path: planned.shown.clone(), ..digest },
    };
    plan.iter().zip(digests).map(record).collect()
}

pub(crate) fn recorded_options(options: &Options) -> Recorded {
    Recorded {
        documents: options.documents,
        field: options.field.clone(),
        lossy: options.lossy,
        fractions: options.inputs.fractions(),
        in_order: options.in_order && options.inputs.fractions().is_some(),
        tokenizer: options.tokenizer.describe(),
        keep_ids: options.keep_ids,
        end_of_text: options.ends_documents().then(|| END_OF_TEXT.to_owned()),
        start_of_text: options.starts_documents().then(|| END_OF_TEXT.to_owned()),
        pairs: options.pairs.clone(),
    }
}

/// The index of a split in arrays in the order of [`Split::ALL`].
pub(crate) fn place(split: Split) -> usize {
    split as usize
}
