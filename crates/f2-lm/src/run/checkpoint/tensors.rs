//! The parameters of a layout in a file of tensors, under their names there.

use std::collections::HashMap;
use std::path::Path;

use f2_engine::{Layout, NamedParameter};
use f2_files::ReadError;
use safetensors::tensor::Dtype;

use crate::Error;
use crate::tensor_file::{self, Planned, TensorFile, TensorFileError, float_bytes};

/// A failure to write parameters.
pub(super) type WriteFailure = tensor_file::WriteFailure<Error>;

/// Writes every parameter of some layouts under a prefix and its name.
pub(super) fn write<Fetch>(
    path: &Path,
    mut parts: Vec<(&'static str, &Layout, Fetch)>,
    about: HashMap<String, String>,
) -> Result<(), WriteFailure>
where
    Fetch: FnMut(&NamedParameter, &mut [f32]) -> Result<(), Error>,
{
    let mut planned = Vec::new();
    let mut sources = Vec::new();
    for (part, (prefix, layout, _)) in parts.iter().enumerate() {
        for named in layout.parameters() {
            let (name, shape) = (format!("{prefix}{}", named.name), named.shape.clone());
            planned.push(Planned { name, shape, dtype: Dtype::F32 });
            sources.push((part, named));
        }
    }
    tensor_file::write(path, &planned, about, |index| {
        let (part, named) = sources[index];
        let mut values = vec![0.0; named.parameter.len()];
        (parts[part].2)(named, &mut values)?;
        Ok(float_bytes(&values))
    })
}

/// A checkpoint's file of tensors.
pub(super) struct Tensors<'a> {
    path: &'a Path,
    file: TensorFile,
}

impl<'a> Tensors<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, Error> {
        let file = TensorFile::open(path).map_err(|error| named(path, error))?;
        Ok(Self { path, file })
    }

    /// Fails if a parameter of a layout is missing or misshapen under `prefix` and its name, or if
    /// a tensor belongs to no parameter.
    pub(super) fn check(&self, prefix: &str, layout: &Layout) -> Result<(), Error> {
        let bad = |reason| Err(Error::BadCheckpoint { path: self.path.to_path_buf(), reason });
        for named in layout.parameters() {
            let (name, needed) = (format!("{prefix}{}", named.name), &named.shape);
            match self.file.shape(&name) {
                None => {
                    return bad(format!("tensor `{name}` is missing; the model needs {needed:?}"));
                }
                Some(found) if found != needed => {
                    return bad(format!(
                        "tensor `{name}` has shape {found:?}; the model needs {needed:?}"
                    ));
                }
                Some(_) => {}
            }
        }
        let known = |name: &str| {
            name.strip_prefix(prefix)
                .is_none_or(|name| layout.parameters().iter().any(|named| named.name == name))
        };
        match self.file.names().into_iter().find(|name| !known(name)) {
            Some(stranger) => bad(format!("tensor `{stranger}` belongs to another model")),
            None => Ok(()),
        }
    }

    /// Reads every parameter of a layout with `values` and hands it to `put`, after
    /// [`check`](Self::check).
    pub(super) fn read(
        &self,
        prefix: &str,
        layout: &Layout,
        values: impl Fn(&TensorFile, &str) -> Result<Vec<f32>, TensorFileError>,
        mut put: impl FnMut(&NamedParameter, &[f32]),
    ) -> Result<(), Error> {
        self.check(prefix, layout)?;
        for parameter in layout.parameters() {
            let values = values(&self.file, &format!("{prefix}{}", parameter.name));
            put(parameter, &values.map_err(|error| named(self.path, error))?);
        }
        Ok(())
    }
}

fn named(path: &Path, error: TensorFileError) -> Error {
    let path = path.to_path_buf();
    match error {
        TensorFileError::Disk(source) => ReadError { path, source }.into(),
        TensorFileError::Bad(reason) => Error::BadCheckpoint { path, reason },
    }
}
