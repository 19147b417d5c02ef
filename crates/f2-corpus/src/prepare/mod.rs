//! `prepare`: from files of text to a corpus folder.

mod documents;
mod encode;
mod inputs;
mod learn;
mod observer;
mod options;
mod spread;
mod texts;

use std::collections::BTreeMap;
use std::path::Path;

use f2_files::{FileRecord, Lock, ReadError, StagedFolder};

use crate::error::{Error, Result};
use crate::input::Digest;
use crate::manifest::{self, Input, Manifest, Recorded, SplitSize};
use crate::names;
use crate::split::Split;
use crate::tokenizer::{END_OF_TEXT, Tokenizer};

use encode::Encoded;
use inputs::Planned;
use learn::Learned;
use spread::Spreading;

pub use documents::documents;
pub use observer::{Observer, Silent};
pub use options::{Inputs, LONGEST_DOCUMENT, Options, TokenizerChoice};

/// The size of a prepared corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The size of each split, in the order of [`Split::ALL`].
    pub splits: Vec<SplitSize>,
    /// Size of the vocabulary; smaller than requested where the text has no more pairs to merge.
    pub vocabulary_size: usize,
}

/// Makes a corpus folder out of text.
///
/// Everything is written into a staging folder beside [`Options::out`], which gets its name only
/// once it is complete; on any error, and when interrupted, it is removed.
pub fn prepare(options: &Options, observer: &dyn Observer) -> Result<Summary> {
    let _lock = Lock::beside(&options.out)?;
    check_output(&options.out, options.replace)?;
    let staged = StagedFolder::create(&options.out)?;
    let plan = Planned::all(options, staged.path(), observer)?;
    let spreading = Spreading::of(options, &plan, observer)?;
    let Learned { tokenizer, digests } = obtain_tokenizer(options, &plan, &spreading, observer)?;
    let encoded = encode::encode(options, &plan, spreading, &tokenizer, staged.path(), observer)?;
    check_unchanged(&plan, &digests, &encoded.digests)?;
    check_splits(options, &encoded.sizes)?;
    let summary = write_folder(options, &plan, &tokenizer, encoded, staged.path())?;
    inputs::remove_spools(staged.path())?;
    // Hours may have passed.
    check_output(&options.out, options.replace)?;
    staged.publish()?;
    Ok(summary)
}

/// Only a corpus with nothing else in it, or an empty folder, is ever replaced.
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

/// Something in a corpus folder that `f2` did not put there. Hidden leftovers of killed writers
/// are its own.
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
    let tokenizer = match &options.tokenizer {
        TokenizerChoice::Train { vocabulary_size } => {
            return learn::learn(options, *vocabulary_size, plan, spreading, observer);
        }
        TokenizerChoice::File(path) => Tokenizer::load(path)?,
        TokenizerChoice::VocabularyAndMerges { vocabulary, merges } => {
            Tokenizer::load_vocabulary_and_merges(vocabulary, merges)?
        }
    };
    Ok(Learned { tokenizer, digests: Vec::new() })
}

/// Checks that the files encoded are those the tokenizer was learned from.
fn check_unchanged(plan: &[Planned], learned: &[Digest], encoded: &[Digest]) -> Result<()> {
    for (planned, now) in plan.iter().zip(encoded) {
        let before = learned.iter().find(|digest| digest.path == now.path);
        if before.is_some_and(|before| before != now) {
            return Err(Error::InputChanged { path: planned.shown.clone() });
        }
    }
    Ok(())
}

/// Every split that should have documents must have some.
fn check_splits(options: &Options, sizes: &[SplitSize]) -> Result<()> {
    let documents = sizes.iter().map(|size| size.documents).sum();
    if documents == 0 {
        return Err(Error::Empty { inputs: options.inputs.describe() });
    }
    for size in sizes {
        if size.documents == 0 && options.inputs.expects(size.split) {
            return Err(Error::EmptySplit { split: size.split.name(), documents });
        }
    }
    Ok(())
}

/// Renames ids to ranks and writes all files of the corpus.
fn write_folder(
    options: &Options,
    plan: &[Planned],
    tokenizer: &Tokenizer,
    encoded: Encoded,
    folder: &Path,
) -> Result<Summary> {
    let (ranks, counts) = crate::Ranks::by_count(&encoded.count_of_id);
    counts.save(&folder.join(names::COUNTS))?;
    let rank_of_id = ranks.rank_of_id();
    let renaming = (!options.keep_ids).then_some(rank_of_id.as_slice());
    for writer in encoded.writers {
        writer.finish(renaming)?;
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
    let manifest = Manifest {
        version: manifest::VERSION,
        made_by: format!("f2 {}", env!("CARGO_PKG_VERSION")),
        inputs: recorded_inputs(plan, encoded.digests),
        options: recorded_options(options),
        vocabulary_size,
        splits: encoded.sizes.clone(),
        files: recorded_files(folder, options)?,
        checksum: String::new(),
    };
    manifest.save(&folder.join(names::MANIFEST))?;
    Ok(Summary { splits: encoded.sizes, vocabulary_size })
}

/// Binds the files of the corpus together.
fn recorded_files(folder: &Path, options: &Options) -> Result<BTreeMap<String, FileRecord>> {
    let shards = Split::ALL.map(names::shard).into_iter();
    let texts = options.text_of.iter().map(|&split| names::text(split));
    let ranks = options.keep_ids.then(|| names::RANKS.to_owned());
    let others = [names::TOKENIZER, names::COUNTS].map(str::to_owned);
    let record = |name: String| {
        let path = folder.join(&name);
        let record = FileRecord::of(&path).map_err(ReadError::of(&path))?;
        Ok((name, record))
    };
    shards.chain(texts).chain(others).chain(ranks).map(record).collect()
}

fn recorded_inputs(plan: &[Planned], digests: Vec<Digest>) -> Vec<Input> {
    let record = |(planned, digest): (&Planned, Digest)| Input {
        split: planned.split,
        digest: Digest { path: planned.shown.clone(), ..digest },
    };
    plan.iter().zip(digests).map(record).collect()
}

fn recorded_options(options: &Options) -> Recorded {
    Recorded {
        documents: options.documents,
        field: options.field.clone(),
        lossy: options.lossy,
        fractions: options.inputs.fractions(),
        in_order: options.in_order && options.inputs.fractions().is_some(),
        tokenizer: options.tokenizer.describe(),
        keep_ids: options.keep_ids,
        end_of_text: options.end_of_text.then(|| END_OF_TEXT.to_owned()),
        start_of_text: options.start_of_text.then(|| END_OF_TEXT.to_owned()),
    }
}

/// The splits as an array index.
fn place(split: Split) -> usize {
    split as usize
}
