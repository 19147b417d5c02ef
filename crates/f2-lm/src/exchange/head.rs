//! The file of an F² head beside an exported trunk.

use std::path::{Path, PathBuf};

use f2_engine::NamedParameter;

use super::ExchangeError;
use crate::tensor_file::TensorFile;

/// The token vectors of a head, where it has its own.
pub(super) const TOKENS: &str = "head.tokens";
/// Where each class ends, as 64-bit integers, so that the file explains itself.
pub(super) const CLASS_ENDS: &str = "head.class_ends";

/// The head of an exported F² model: `f2_head.safetensors`.
#[derive(Debug)]
pub(super) struct F2HeadFile {
    path: PathBuf,
    file: TensorFile,
}

impl F2HeadFile {
    /// Opens the file and makes sure that its classes are those of `classes.json`.
    pub(super) fn open(path: &Path, ends: &[u32]) -> Result<Self, ExchangeError> {
        let file = TensorFile::open(path).map_err(ExchangeError::tensors(path))?;
        let found = file.integers(CLASS_ENDS).map_err(ExchangeError::tensors(path))?;
        if !found.iter().copied().eq(ends.iter().map(|end| i64::from(*end))) {
            let reason = format!("`{CLASS_ENDS}` has other classes than classes.json");
            return Err(ExchangeError::bad(path, reason));
        }
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Whether it has token vectors of its own.
    pub(super) fn has_tokens(&self) -> bool {
        self.file.shape(TOKENS).is_some()
    }

    /// Makes sure that a parameter is there in its shape.
    pub(super) fn check(&self, named: &NamedParameter) -> Result<(), ExchangeError> {
        let (path, name, needed) = (self.path.clone(), named.name.clone(), named.shape.clone());
        match self.file.shape(&name) {
            None => Err(ExchangeError::MissingTensor { path, name, needed }),
            Some(found) if found != needed => {
                let found = found.to_vec();
                Err(ExchangeError::MisshapenTensor { path, name, found, needed })
            }
            Some(_) => Ok(()),
        }
    }

    /// The values of a parameter.
    pub(super) fn read(&self, name: &str) -> Result<Vec<f32>, ExchangeError> {
        self.file.parameter(name).map_err(ExchangeError::tensors(&self.path))
    }
}
