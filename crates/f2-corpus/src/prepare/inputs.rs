use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use f2_files::WriteError;

use super::options::Inputs;
use crate::error::Result;
use crate::input::{Source, resolve};
use crate::split::Split;

/// Standard input is read twice, so it is kept in this file meanwhile.
const SPOOL: &str = "standard-input.txt";

/// One file to read, and where its documents go.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) source: Source,
    /// `None` where its documents are spread over the splits.
    pub(crate) split: Option<Split>,
    /// What the user called it.
    pub(crate) shown: String,
}

impl Planned {
    /// All files behind the inputs, in order.
    pub(crate) fn all(inputs: &Inputs, folder: &Path) -> Result<Vec<Self>> {
        if let Some(fractions) = inputs.fractions() {
            fractions.check()?;
        }
        let mut plan = Vec::new();
        for (split, path) in inputs.paths() {
            if path.as_os_str() == "-" {
                let source = Source::file(&spool_standard_input(folder)?);
                plan.push(Self { source, split, shown: "-".to_owned() });
                continue;
            }
            for source in resolve(std::slice::from_ref(path))? {
                let shown = source.path.display().to_string();
                plan.push(Self { source, split, shown });
            }
        }
        Ok(plan)
    }
}

fn spool_standard_input(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(SPOOL);
    let mut spool = File::create_new(&path).map_err(WriteError::of(&path))?;
    io::copy(&mut io::stdin().lock(), &mut spool).map_err(WriteError::of(&path))?;
    Ok(path)
}

/// The published folder holds the corpus and nothing else.
pub(crate) fn remove_spool(folder: &Path) -> Result<()> {
    let path = folder.join(SPOOL);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::of(&path)(error).into())
        }
        _ => Ok(()),
    }
}
