//! The files behind the inputs that the user named, including standard input and pipes.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use f2_files::{OutputFile, ReadError, WriteError, disk};

use super::observer::Observer;
use super::options::Options;
use crate::error::{Error, Result};
use crate::input::{InputFile, resolve};
use crate::split::Split;

/// The folder for copies of inputs that can be read only once, such as pipes. The copies have no
/// text extension, so they are not read as inputs even if an input folder contains this one.
const SPOOL: &str = "spool";

/// One file to read, and the split of its documents.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) source: InputFile,
    /// `None` if its documents are spread over the splits.
    pub(crate) split: Option<Split>,
    /// Its name as the user gave it.
    pub(crate) shown: String,
    /// The documents to process: those that begin in this range of the file's text.
    pub(crate) range: Range<u64>,
    /// Position and length of the text, if it was measured.
    pub(crate) measured: Option<Measured>,
}

/// Bytes of text in the files before a file, and in the file itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) before: u64,
    pub(crate) length: u64,
}

impl Planned {
    /// All files behind the inputs, in order. Inputs that can be read only once are copied to
    /// `folder`, or refused if there is none.
    pub(crate) fn all(
        options: &Options,
        folder: Option<&Path>,
        observer: &dyn Observer,
    ) -> Result<Vec<Self>> {
        if let Some(fractions) = options.inputs.fractions() {
            fractions.check()?;
        }
        let folder = folder.map(|folder| folder.join(SPOOL));
        let mut spools = Spools { folder, count: 0, options, observer };
        let mut plan = Vec::new();
        for (split, path) in options.inputs.paths() {
            if path.as_os_str() == "-" {
                let source = spools.keep(path, io::stdin().lock())?;
                plan.push(Self::whole(source, split, "-".to_owned()));
                continue;
            }
            for source in resolve(std::slice::from_ref(path))? {
                let shown = source.path.display().to_string();
                // Pipes, as from `prepare <(command)`, and terminals.
                let once = fs::metadata(&source.path).is_ok_and(|found| !found.is_file());
                let source = if once {
                    let pipe = File::open(&source.path).map_err(ReadError::of(&source.path))?;
                    InputFile { path: spools.keep(&source.path, pipe)?.path, ..source }
                } else {
                    source
                };
                plan.push(Self::whole(source, split, shown));
            }
        }
        Ok(plan)
    }

    fn whole(source: InputFile, split: Option<Split>, shown: String) -> Self {
        Self { source, split, shown, range: 0..u64::MAX, measured: None }
    }
}

/// Copies of inputs that can be read only once.
struct Spools<'a> {
    folder: Option<PathBuf>,
    count: usize,
    options: &'a Options,
    observer: &'a dyn Observer,
}

impl Spools<'_> {
    fn keep(&mut self, from: &Path, mut stream: impl Read) -> Result<InputFile> {
        let only_once = || Error::ReadOnce { path: from.to_path_buf() };
        let folder = self.folder.as_deref().ok_or_else(only_once)?;
        disk::create_folders(folder).map_err(WriteError::of(folder))?;
        self.count += 1;
        let path = folder.join(self.count.to_string());
        let mut spool = OutputFile::create_new(&path).map_err(WriteError::of(&path))?;
        let mut chunk = vec![0; 1 << 20];
        let mut line = 0;
        loop {
            let read = match stream.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(ReadError::of(from))?,
            };
            if read == 0 {
                return Ok(InputFile::file(&path));
            }
            // Without this check, /dev/zero would fill the disk.
            let after_break = chunk[..read].iter().rev().position(|byte| *byte == b'\n');
            line = after_break.map_or(line + read as u64, |length| length as u64);
            if line > self.options.longest_document {
                let (path, longest) = (from.to_path_buf(), self.options.longest_document);
                return Err(Error::DocumentTooLong { path, longest });
            }
            if self.observer.interrupted() {
                return Err(Error::Interrupted);
            }
            spool.write_all(&chunk[..read]).map_err(WriteError::of(&path))?;
        }
    }
}

/// Removes the copies, so that the published folder holds nothing but the corpus.
pub(crate) fn remove_spools(folder: &Path) -> Result<()> {
    let path = folder.join(SPOOL);
    if path.exists() {
        disk::remove_folder(&path).map_err(WriteError::of(&path))?;
    }
    Ok(())
}
