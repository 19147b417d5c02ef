//! Names of repositories: `gpt2`, `openai-community/gpt2@main`,
//! `hf://datasets/Salesforce/wikitext`.

use std::fmt;

use crate::Error;

/// The kind of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Weights, settings and a tokenizer.
    Model,
    /// Text.
    Dataset,
}

/// A repository of the hub, at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its kind.
    pub kind: Kind,
    /// `name` or `owner/name`.
    pub id: String,
    /// A branch, a tag or a commit.
    pub revision: String,
}

/// Whether the hub allows this as an owner or as the name of a repository.
fn is_part(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: char| matches!(c, '-' | '.');
    !text.is_empty()
        && text.len() <= 96
        && text.chars().all(known)
        && !text.starts_with(ends)
        && !text.ends_with(ends)
        && !text.contains("--")
        && !text.contains("..")
}

fn is_revision(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(known) && !text.starts_with('.')
}

impl Repository {
    /// Parses the name of a model: `name` or `owner/name`, optionally followed by `@revision` and
    /// preceded by `hf://`.
    ///
    /// ```
    /// let gpt2 = f2_hub::Repository::model("openai-community/gpt2@e7da7f2")?;
    /// assert_eq!(gpt2.id, "openai-community/gpt2");
    /// assert_eq!(gpt2.revision, "e7da7f2");
    /// # Ok::<(), f2_hub::Error>(())
    /// ```
    pub fn model(name: &str) -> Result<Self, Error> {
        let (repository, inside) = Self::read(Kind::Model, name, name.trim_start_matches("hf://"))?;
        match inside {
            "" => Ok(repository),
            _ => Err(wrong(name, "a model is called `name` or `owner/name`")),
        }
    }

    /// Parses `hf://datasets/owner/name`, optionally followed by `@revision` and by the path of a
    /// file or folder inside, which is returned with it. `None` if the text is no such address.
    ///
    /// ```
    /// use f2_hub::Repository;
    /// let address = "hf://datasets/Salesforce/wikitext/raw";
    /// let (wikitext, inside) = Repository::dataset(address)?.unwrap();
    /// assert_eq!((wikitext.id.as_str(), inside), ("Salesforce/wikitext", "raw"));
    /// assert!(Repository::dataset("novels/")?.is_none());
    /// # Ok::<(), f2_hub::Error>(())
    /// ```
    pub fn dataset(address: &str) -> Result<Option<(Self, &str)>, Error> {
        let Some(rest) = address.strip_prefix("hf://") else { return Ok(None) };
        let Some(name) = rest.strip_prefix("datasets/") else {
            return Err(wrong(address, "a dataset is called `hf://datasets/owner/name`"));
        };
        Self::read(Kind::Dataset, address, name.trim_end_matches('/')).map(Some)
    }

    fn read<'a>(kind: Kind, given: &str, name: &'a str) -> Result<(Self, &'a str), Error> {
        let (id, rest) = split_id(name);
        let (revision, inside) = match rest.strip_prefix('@') {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("main", rest.strip_prefix('/').unwrap_or(rest)),
        };
        if !id.split('/').all(is_part) {
            return Err(wrong(given, "a name on the hub has letters, digits, `-`, `_` and `.`"));
        }
        if !is_revision(revision) {
            return Err(wrong(given, "what follows `@` is a branch, a tag or a commit"));
        }
        let (id, revision) = (id.to_owned(), revision.to_owned());
        Ok((Self { kind, id, revision }, inside))
    }

    /// The name of its folder in the cache.
    pub(crate) fn folder(&self) -> String {
        let kind = match self.kind {
            Kind::Model => "models",
            Kind::Dataset => "datasets",
        };
        format!("{kind}--{}", self.id.replace('/', "--"))
    }
}

/// Splits an address into `owner/name` or `name` at its beginning, and the rest.
fn split_id(text: &str) -> (&str, &str) {
    let end = |from: usize| text[from..].find(['/', '@']).map_or(text.len(), |at| from + at);
    let owner = end(0);
    let id = if text[owner..].starts_with('/') { end(owner + 1) } else { owner };
    text.split_at(id)
}

fn wrong(name: &str, reason: &'static str) -> Error {
    Error::Name { name: name.to_owned(), reason }
}

impl fmt::Display for Repository {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Model => "the model",
            Kind::Dataset => "the dataset",
        };
        write!(out, "{kind} {}", self.id)?;
        if self.revision == "main" { Ok(()) } else { write!(out, " at {}", self.revision) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_hub_writes_them() {
        let read = |name: &str| Repository::model(name).map(|model| (model.id, model.revision));
        assert_eq!(read("gpt2").unwrap(), ("gpt2".to_owned(), "main".to_owned()));
        assert_eq!(read("hf://a/b@refs").unwrap(), ("a/b".to_owned(), "refs".to_owned()));
        for wrong in ["", "a/b/c", "../x", "a//b", "/etc", "a b", "a@", "a--b", "x.", "a@../b", "~"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_dataset_has_things_inside() {
        let read = |address| Repository::dataset(address).unwrap().unwrap();
        let (plain, inside) = read("hf://datasets/imdb");
        assert_eq!(
            (plain.id.as_str(), inside, plain.folder().as_str()),
            ("imdb", "", "datasets--imdb")
        );
        let (owned, inside) = read("hf://datasets/a/b@v1/data/train.txt");
        assert_eq!(
            (owned.id.as_str(), owned.revision.as_str(), inside),
            ("a/b", "v1", "data/train.txt")
        );
        assert_eq!(owned.folder(), "datasets--a--b");
        assert!(Repository::dataset("hf://gpt2").is_err());
        assert_eq!(Repository::dataset("novels").unwrap(), None);
    }
}
