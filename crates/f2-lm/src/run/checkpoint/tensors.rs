//! Parameters in the safetensors format, read from the device only while they are written.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use f2_engine::{Layout, NamedParameter};
use safetensors::tensor::{Dtype, SafeTensors, View};

/// A parameter whose values are fetched when the file comes to it, so that saving needs room for
/// one of them and not for all.
struct Lazy<'a, Fetch> {
    named: &'a NamedParameter,
    fetch: &'a RefCell<Fetch>,
    failure: &'a RefCell<Option<f2_engine::Error>>,
}

impl<Fetch> View for Lazy<'_, Fetch>
where
    Fetch: FnMut(&NamedParameter, &mut [f32]) -> Result<(), f2_engine::Error>,
{
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.named.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut values = vec![0.0; self.named.parameter.len()];
        if let Err(error) = (self.fetch.borrow_mut())(self.named, &mut values) {
            self.failure.borrow_mut().get_or_insert(error);
        }
        Cow::Owned(values.iter().flat_map(|value: &f32| value.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        self.named.parameter.len() * size_of::<f32>()
    }
}

/// Why tensors could not be written.
#[derive(Debug)]
pub(super) enum WriteFailure {
    Disk(std::io::Error),
    Device(f2_engine::Error),
}

/// Writes every parameter of a layout under `prefix` and its name.
pub(super) fn write<Fetch>(
    path: &Path,
    parts: Vec<(&'static str, &Layout, Fetch)>,
    about: HashMap<String, String>,
) -> Result<(), WriteFailure>
where
    Fetch: FnMut(&NamedParameter, &mut [f32]) -> Result<(), f2_engine::Error>,
{
    let failure = RefCell::new(None);
    let parts: Vec<_> = parts
        .into_iter()
        .map(|(prefix, layout, fetch)| (prefix, layout, RefCell::new(fetch)))
        .collect();
    let views = parts.iter().flat_map(|(prefix, layout, fetch)| {
        let failure = &failure;
        layout
            .parameters()
            .iter()
            .map(move |named| (format!("{prefix}{}", named.name), Lazy { named, fetch, failure }))
    });
    let written = safetensors::serialize_to_file(views.collect::<Vec<_>>(), Some(about), path);
    if let Some(error) = failure.take() {
        return Err(WriteFailure::Device(error));
    }
    written.map_err(|error| {
        WriteFailure::Disk(match error {
            safetensors::SafeTensorError::IoError(error) => error,
            other => std::io::Error::other(other.to_string()),
        })
    })
}

/// Hands every parameter of a layout found under `prefix` and its name to `put`; or says which
/// one is missing, misshapen or of another type.
pub(super) fn read(
    bytes: &[u8],
    prefix: &str,
    layout: &Layout,
    mut put: impl FnMut(&NamedParameter, &[f32]),
) -> Result<(), String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    for named in layout.parameters() {
        let name = format!("{prefix}{}", named.name);
        let tensor = tensors.tensor(&name).map_err(|_| {
            format!("tensor `{name}` is missing; the model needs {:?}", named.shape)
        })?;
        if tensor.shape() != named.shape {
            let (found, needed) = (tensor.shape(), &named.shape);
            return Err(format!("tensor `{name}` has shape {found:?}; the model needs {needed:?}"));
        }
        if tensor.dtype() != Dtype::F32 {
            return Err(format!("tensor `{name}` holds {:?}, not F32", tensor.dtype()));
        }
        let values: Vec<f32> =
            tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        put(named, &values);
    }
    let known = |name: &str| {
        name.strip_prefix(prefix)
            .is_none_or(|name| layout.parameters().iter().any(|named| named.name == name))
    };
    match tensors.names().into_iter().find(|name| !known(name)) {
        Some(stranger) => Err(format!("tensor `{stranger}` belongs to another model")),
        None => Ok(()),
    }
}
