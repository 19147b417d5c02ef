use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use f2_engine::{Device, Layout, Moments};
use f2_files::StagedFolder;

use super::tensors::{self, WriteFailure};
use super::{FileRecord, MODEL, OPTIMISER, STATE, TrainingState, path};
use crate::Error;

/// What goes into a checkpoint.
pub struct Contents<'a, D: Device> {
    /// Holds the numbers.
    pub device: &'a D,
    /// Names them.
    pub layout: &'a Layout,
    /// The parameters.
    pub weights: &'a D::Weights,
    /// Adam's moments.
    pub moments: &'a Moments<D>,
    /// Where training stands. Files and checksum are filled in here.
    pub state: &'a TrainingState,
    /// Further files by name, such as the tokenizer.
    pub attachments: &'a [(String, Vec<u8>)],
}

/// Writes the checkpoint of `contents.state.step`. On any failure the disk is as it was.
pub fn save<D: Device>(checkpoints: &Path, contents: &Contents<'_, D>) -> Result<(), Error> {
    let destination = path(checkpoints, contents.state.step);
    let failed = |source| Error::WriteFile { path: destination.clone(), source };
    let staged = StagedFolder::create(&destination).map_err(failed)?;
    write_tensors(staged.path(), contents).map_err(|failure| match failure {
        WriteFailure::Disk(source) => failed(source),
        WriteFailure::Device(error) => Error::Engine(error),
    })?;
    write_rest(staged.path(), contents).map_err(failed)?;
    staged.publish().map_err(failed)
}

fn write_tensors<D: Device>(folder: &Path, contents: &Contents<'_, D>) -> Result<(), WriteFailure> {
    let Contents { device, layout, weights, moments, .. } = *contents;
    // One entry only: the order of several is not fixed, and equal runs must be equal files.
    let about = HashMap::from([("format".to_owned(), "f2".to_owned())]);
    let fetch = |named: &f2_engine::NamedParameter, to: &mut [f32]| {
        device.read_weights(weights, named.parameter, to)
    };
    tensors::write(&folder.join(MODEL), vec![("", layout, fetch)], about.clone())?;
    let fetch = |from| {
        move |named: &f2_engine::NamedParameter, to: &mut [f32]| {
            device.read_floats(from, named.parameter.offset, to)
        }
    };
    let both =
        vec![(FIRST, layout, fetch(&moments.first)), (SECOND, layout, fetch(&moments.second))];
    tensors::write(&folder.join(OPTIMISER), both, about)
}

/// What the names of first moments begin with.
pub(super) const FIRST: &str = "first.";
/// What the names of second moments begin with.
pub(super) const SECOND: &str = "second.";

fn write_rest<D: Device>(folder: &Path, contents: &Contents<'_, D>) -> io::Result<()> {
    let mut state = contents.state.clone();
    state.files.clear();
    for (name, content) in contents.attachments {
        fs::write(folder.join(name), content)?;
    }
    let attached = contents.attachments.iter().map(|(name, _)| name.as_str());
    for name in [MODEL, OPTIMISER].into_iter().chain(attached) {
        state.files.insert(name.to_owned(), FileRecord::of(&folder.join(name))?);
    }
    fs::write(folder.join(STATE), state.to_json())
}
