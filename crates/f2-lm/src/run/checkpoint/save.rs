//! Writing a checkpoint.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use f2_engine::{Device, Moments, Parameter};
use f2_files::{FileRecord, StagedFolder, WriteError, disk};

use super::tensors::{self, WriteFailure};
use super::{MODEL, OPTIMISER, SHAPE, STATE, TrainingState, path};
use crate::Error;
use crate::model::Model;
use crate::run::model_file::ModelFile;

/// The contents of a checkpoint.
pub struct Contents<'a, D: Device> {
    /// The model.
    pub model: &'a Model<D>,
    /// Adam's moments.
    pub moments: SavedMoments<'a, D>,
    /// The training state. Files and checksum are filled in here.
    pub state: &'a TrainingState,
    /// Further files by name, such as the tokenizer.
    pub attachments: &'a [(String, Vec<u8>)],
}

/// Where Adam's moments are, in the flat layout of the parameters.
pub enum SavedMoments<'a, D: Device> {
    /// On the device.
    Device(&'a Moments<D>),
    /// On the host, gathered from all ranks: first and second.
    Host(&'a [Vec<f32>; 2]),
}

impl<D: Device> SavedMoments<'_, D> {
    /// Reads those of a parameter: the first, or the second.
    fn read(
        &self,
        device: &D,
        second: bool,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error> {
        match self {
            Self::Device(moments) => {
                let from = if second { &moments.second } else { &moments.first };
                device.read_floats(from, parameter.offset, to)?;
            }
            Self::Host(moments) => {
                to.copy_from_slice(&moments[usize::from(second)][parameter.range()]);
            }
        }
        Ok(())
    }
}

/// Writes the checkpoint of `contents.state.step`. On any failure, and if a parameter is not
/// finite, the disk is left as it was.
pub fn save<D: Device>(checkpoints: &Path, contents: &Contents<'_, D>) -> Result<(), Error> {
    let destination = path(checkpoints, contents.state.step);
    let staged = StagedFolder::create(&destination)?;
    save_model(staged.path(), contents.model)?;
    write_moments(staged.path(), contents).map_err(|failure| named(&destination, failure))?;
    write_rest(staged.path(), contents).map_err(WriteError::of(&destination))?;
    Ok(staged.publish()?)
}

/// Writes a model's own two files, parameters and shape, into a staged folder: a failure leaves it
/// incomplete.
pub fn save_model<D: Device>(folder: &Path, model: &Model<D>) -> Result<(), Error> {
    let Model { device, decoder, weights } = model;
    let fetch = |named: &f2_engine::NamedParameter, to: &mut [f32]| {
        device.read_weights(weights, named.parameter, to)?;
        if to.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(Error::ParametersNotFinite { name: named.name.clone() })
    };
    tensors::write(&folder.join(MODEL), vec![("", &decoder.layout, fetch)], about())
        .and_then(|()| ModelFile::new(&decoder.shape).write(folder).map_err(WriteFailure::Disk))
        .map_err(|failure| named(folder, failure))
}

/// The metadata in the headers of tensor files. A single entry: the order of several is not fixed,
/// and equal runs must give equal files.
fn about() -> HashMap<String, String> {
    HashMap::from([("format".to_owned(), "f2".to_owned())])
}

fn named(path: &Path, failure: WriteFailure) -> Error {
    match failure {
        WriteFailure::Disk(source) => WriteError::of(path)(source).into(),
        WriteFailure::Fetch(error) => error,
    }
}

fn write_moments<D: Device>(folder: &Path, contents: &Contents<'_, D>) -> Result<(), WriteFailure> {
    let Contents { model, moments, .. } = contents;
    let (device, layout) = (&model.device, &model.decoder.layout);
    let fetch = |second| {
        move |named: &f2_engine::NamedParameter, to: &mut [f32]| {
            moments.read(device, second, named.parameter, to)
        }
    };
    let both = vec![(FIRST, layout, fetch(false)), (SECOND, layout, fetch(true))];
    tensors::write(&folder.join(OPTIMISER), both, about())
}

/// The prefix of first moments.
pub(super) const FIRST: &str = "first.";
/// The prefix of second moments.
pub(super) const SECOND: &str = "second.";

fn write_rest<D: Device>(folder: &Path, contents: &Contents<'_, D>) -> io::Result<()> {
    let mut state = contents.state.clone();
    state.files.clear();
    for (name, content) in contents.attachments {
        disk::write(&folder.join(name), content)?;
    }
    let attached = contents.attachments.iter().map(|(name, _)| name.as_str());
    for name in [MODEL, SHAPE, OPTIMISER].into_iter().chain(attached) {
        state.files.insert(name.to_owned(), FileRecord::of(&folder.join(name))?);
    }
    disk::write(&folder.join(STATE), state.to_json())
}
