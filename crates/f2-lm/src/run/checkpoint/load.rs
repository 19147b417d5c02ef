//! Reading a checkpoint.

use std::io;
use std::ops::Range;
use std::path::Path;

use f2_engine::{Device, Layout, Moments, NamedParameter};
use f2_files::{FileRecord, ReadError, read_text, regular_file};

use super::save::{FIRST, SECOND};
use super::tensors::Tensors;
use super::{MODEL, OPTIMISER, STATE, TrainingState};
use crate::Error;
use crate::model::Model;
use crate::tensor_file::TensorFile;

/// Reads a checkpoint's training state, after verifying every file in it.
pub fn open(folder: &Path) -> Result<TrainingState, Error> {
    let state = read_state(folder)?;
    for (name, expected) in &state.files {
        check_file(&folder.join(name), expected)?;
    }
    Ok(state)
}

/// Reads a checkpoint's training state without verifying the other files.
pub(crate) fn read_state(folder: &Path) -> Result<TrainingState, Error> {
    let path = folder.join(STATE);
    let text = regular_file(&path).and_then(read_text);
    let text = text.map_err(|error| unreadable(&path, error.source))?;
    TrainingState::from_json(&text).map_err(|reason| Error::BadCheckpoint { path, reason })
}

/// Refuses a file that has changed since it was written.
pub(in crate::run) fn check_file(path: &Path, expected: &FileRecord) -> Result<(), Error> {
    let difference = expected.difference_at(path);
    match difference.map_err(|source| unreadable(path, source))? {
        None => Ok(()),
        Some(reason) => Err(Error::BadCheckpoint { path: path.to_path_buf(), reason }),
    }
}

/// A missing file is an error of the checkpoint, any other failure one of the disk.
fn unreadable(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => Error::BadCheckpoint { path, reason: "it is missing".into() },
        _ => ReadError { path, source }.into(),
    }
}

/// Reads the parameters of a checkpoint into a model.
pub fn load_model<D: Device>(folder: &Path, model: &mut Model<D>) -> Result<(), Error> {
    let Model { device, decoder, weights } = model;
    read_model(folder, &decoder.layout, |named, values| {
        device.write_weights(values, named.parameter, weights);
    })
}

/// Hands the parameters of a checkpoint to `put`, one by one.
pub(crate) fn read_model(
    folder: &Path,
    layout: &Layout,
    put: impl FnMut(&NamedParameter, &[f32]),
) -> Result<(), Error> {
    Tensors::open(&folder.join(MODEL))?.read("", layout, TensorFile::parameter, put)
}

/// Checks that a checkpoint holds the parameters of a layout, before memory is allocated for them.
pub(in crate::run) fn check_model(folder: &Path, layout: &Layout) -> Result<(), Error> {
    Tensors::open(&folder.join(MODEL))?.check("", layout)
}

/// Reads Adam's moments of a checkpoint, for some pieces of the flat buffer, each with its offset
/// in `moments`.
pub fn load_moments<D: Device>(
    folder: &Path,
    model: &Model<D>,
    pieces: &[(usize, Range<usize>)],
    moments: &mut Moments<D>,
) -> Result<(), Error> {
    let path = folder.join(OPTIMISER);
    let tensors = Tensors::open(&path)?;
    for (prefix, to) in [(FIRST, &mut moments.first), (SECOND, &mut moments.second)] {
        tensors.read(prefix, &model.decoder.layout, TensorFile::floats, |named, values| {
            let range = named.parameter.range();
            for (at, piece) in pieces {
                let (start, end) = (range.start.max(piece.start), range.end.min(piece.end));
                if start < end {
                    let values = &values[start - range.start..end - range.start];
                    model.device.write_floats(values, at + start - piece.start, to);
                }
            }
        })?;
    }
    Ok(())
}
