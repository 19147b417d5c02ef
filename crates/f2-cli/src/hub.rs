//! Models and datasets by their name on the Hugging Face hub, found in the local cache or fetched
//! into it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use f2_corpus::names::{CLASSES, COUNTS, MERGES, TOKENIZER, VOCABULARY};
use f2_hub::{Environment, Hub, Observer, Repository, Snapshot};

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, Unit};

/// Whether a file belongs to a model: configuration, weights (whole or in shards) or tokenizer.
fn is_of_a_model(name: &str) -> bool {
    let weights = name.starts_with("model") && name.ends_with(".safetensors");
    let others = [
        "config.json",
        "model.safetensors.index.json",
        TOKENIZER,
        VOCABULARY,
        MERGES,
        CLASSES,
        COUNTS,
    ];
    weights || others.contains(&name)
}

/// Whether `f2 prepare` reads a file of this name.
fn is_text(name: &str) -> bool {
    let name = name.to_lowercase();
    let packed = [".gz", ".zst", ".zstd"];
    let inner = packed.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let plain = [".txt", ".text", ".raw", ".tokens", ".jsonl", ".ndjson"];
    plain.iter().any(|end| inner.ends_with(end)) || name.ends_with(".parquet")
}

/// The folder of a model: `named` itself, or the cached one of a model on the hub. `opens` says
/// whether a folder of the cache is complete.
pub(crate) fn model_folder(
    named: &Path,
    opens: impl Fn(&Path) -> bool,
) -> Result<PathBuf, Failure> {
    let folder = named.to_path_buf();
    let Some(name) = named.to_str().filter(|_| !named.exists()) else { return Ok(folder) };
    // A name that the hub cannot have was meant as a folder: the caller reports it as missing.
    let Ok(repository) = Repository::model(name) else { return Ok(folder) };
    let hub = Hub::new(Environment::of_process());
    if let Some(Snapshot { folder, .. }) = hub.cached(&repository, &is_of_a_model)
        && opens(&folder)
    {
        return Ok(folder);
    }
    let no_folder = |error: f2_hub::Error| {
        Failure::from(error).before(&format!("there is no folder {}, and ", named.display()))
    };
    Ok(hub.fetch(&repository, &is_of_a_model, &Bar::default()).map_err(no_folder)?.folder)
}

/// The text files that `hf://datasets/…` names; `None` for an ordinary path.
pub(crate) fn dataset_files(address: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let Some(text) = address.to_str() else { return Ok(None) };
    let Some((repository, inside)) = Repository::dataset(text)? else { return Ok(None) };
    let wanted = |name: &str| is_text(name) && lies_in(name, inside);
    let hub = Hub::new(Environment::of_process());
    let snapshot = hub.fetch(&repository, &wanted, &Bar::default())?;
    let path = |name: &String| snapshot.folder.join(name);
    Ok(Some(snapshot.files.iter().map(path).collect()))
}

/// Whether a file is `place` or lies in it; `*` matches any part of a name.
fn lies_in(name: &str, place: &str) -> bool {
    let mut names = name.split('/');
    place.split('/').filter(|part| !part.is_empty()).all(|part| {
        let name = names.next().unwrap_or_default();
        matches(name, part)
    })
}

fn matches(name: &str, pattern: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return name == pattern };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(start, _)| start).chain([rest.len()]);
    starts.into_iter().any(|start| matches(&rest[start..], after))
}

/// Shows the progress of a download.
#[derive(Default)]
struct Bar(Mutex<Option<Progress>>);

impl Observer for Bar {
    fn begin(&self, repository: &Repository, bytes: u64) {
        let label = format!("fetching {}", repository.id);
        *self.0.lock().expect("no bar panics") =
            Some(Progress::new(&label, Some(bytes), Unit::Bytes));
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = &*self.0.lock().expect("no bar panics") {
            bar.advance(bytes);
        }
    }

    fn remark(&self, words: &str) {
        remark!("note: {words}");
    }

    fn interrupted(&self) -> bool {
        interrupt::asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_dataset_are_files_folders_and_patterns() {
        let name = "raw/train-00000.parquet";
        for place in ["", "raw", "raw/", name, "raw/train*", "raw/*.parquet", "r*/t*0*"] {
            assert!(lies_in(name, place), "{place}");
        }
        for place in ["ra", "raw/test*", "raw/train", "train*", "raw/*.txt"] {
            assert!(!lies_in(name, place), "{place}");
        }
    }

    #[test]
    fn text_is_recognised_by_its_name() {
        assert!(["a.TXT", "b/c.jsonl.gz", "d.parquet", "e.tokens.zst"].into_iter().all(is_text));
        assert!(["README.md", "a.json", "b.parquet.gz", "c.zip"].into_iter().all(|n| !is_text(n)));
    }
}
