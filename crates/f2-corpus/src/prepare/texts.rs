//! The text of a split, written beside its shard.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use f2_files::{OutputFile, WriteError};

use super::documents::DocumentPart;
use super::options::Options;
use super::place;
use crate::error::Result;
use crate::names;
use crate::pairs::Pairs;
use crate::split::Split;

/// Writes the documents of some splits as JSON Lines, in the order of their shards.
pub(crate) struct TextWriter {
    /// One for each split whose text was requested.
    files: [Option<TextFile>; Split::ALL.len()],
    /// If documents are pairs: the fields they were read from and are written to.
    pairs: Option<Pairs>,
}

struct TextFile {
    out: BufWriter<OutputFile>,
    path: PathBuf,
    /// The current document, collected part by part.
    document: String,
}

impl TextWriter {
    pub(crate) fn create(options: &Options, folder: &Path) -> Result<Self> {
        let mut files = [const { None }; Split::ALL.len()];
        for split in options.written_texts() {
            let path = folder.join(names::text(split));
            let file = OutputFile::create(&path).map_err(WriteError::of(&path))?;
            let out = BufWriter::with_capacity(1 << 20, file);
            files[place(split)] = Some(TextFile { out, path, document: String::new() });
        }
        Ok(Self { files, pairs: options.pairs.clone() })
    }

    pub(crate) fn take(&mut self, part: &DocumentPart) -> Result<()> {
        let Some(file) = &mut self.files[place(part.split)] else { return Ok(()) };
        file.document.push_str(&part.text);
        if part.ends_document {
            let record = match &self.pairs {
                Some(pairs) => {
                    let [source, target] = pairs.sides(&file.document);
                    serde_json::json!({ &pairs.source: source, &pairs.target: target })
                }
                None => serde_json::json!({ "text": file.document }),
            };
            writeln!(file.out, "{record}").map_err(WriteError::of(&file.path))?;
            file.document.clear();
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        for TextFile { mut out, path, .. } in self.files.into_iter().flatten() {
            out.flush().map_err(WriteError::of(&path))?;
        }
        Ok(())
    }
}
