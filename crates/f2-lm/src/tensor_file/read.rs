//! Reading a safetensors file.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

/// The longest header the format allows.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes of the header's length, with which a file begins.
const PREFIX: u64 = 8;

/// Why a file of tensors cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TensorFileError {
    /// It cannot be read.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// It is malformed.
    #[error("{0}")]
    Bad(String),
}

/// A file of tensors whose header was checked against the file's length, so that no tensor can
/// claim more memory than the file has bytes.
#[derive(Debug)]
pub(crate) struct TensorFile {
    file: File,
    header: Metadata,
    /// Where the first tensor begins.
    start: u64,
}

impl TensorFile {
    /// Opens a file and checks its header.
    pub(crate) fn open(path: &Path) -> Result<Self, TensorFileError> {
        // Checked before opening: opening a pipe would block.
        if !fs::metadata(path)?.is_file() {
            return Err(bad("it is not a file"));
        }
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let header = read_header(&mut file, length)?;
        let start = PREFIX + header.len() as u64;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| bad(format!("its header cannot be used: {error}")))?;
        let (described, held) = (header.data_len() as u64, length - start);
        if described != held {
            return Err(bad(format!(
                "its header describes {described} bytes of tensors, the file holds {held}"
            )));
        }
        Ok(Self { file, header, start })
    }

    /// The names of all tensors, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.header.offset_keys();
        names.sort();
        names
    }

    /// The shape of a tensor; `None` if there is no such tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.header.info(name).map(|info| info.shape.as_slice())
    }

    /// The values of a tensor of floating-point numbers.
    pub(crate) fn floats(&self, name: &str) -> Result<Vec<f32>, TensorFileError> {
        let info = self.info(name)?;
        let convert: fn(&[u8]) -> Vec<f32> = match info.dtype {
            Dtype::F32 => |bytes| each(bytes, f32::from_le_bytes),
            Dtype::F16 => |bytes| each(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => |bytes| each(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Dtype::F64 => |bytes| each(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
            other => {
                return Err(bad(format!("tensor `{name}` holds {other:?}, not floating point")));
            }
        };
        Ok(convert(&self.bytes(info)?))
    }

    /// The values of a model's parameter: floating-point numbers, all of them finite.
    pub(crate) fn parameter(&self, name: &str) -> Result<Vec<f32>, TensorFileError> {
        let values = self.floats(name)?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(place) => Err(bad(format!(
                "tensor `{name}` holds {} at place {place}: a parameter must be a finite number",
                values[place]
            ))),
        }
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, TensorFileError> {
        self.header.info(name).ok_or_else(|| bad(format!("tensor `{name}` is missing")))
    }

    fn bytes(&self, info: &TensorInfo) -> Result<Vec<u8>, TensorFileError> {
        let (begin, end) = info.data_offsets;
        let mut bytes = vec![0; end - begin];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start + begin as u64))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn read_header(file: &mut File, length: u64) -> Result<Vec<u8>, TensorFileError> {
    let mut prefix = [0; PREFIX as usize];
    if length < PREFIX {
        return Err(bad(format!("it has {length} bytes, too few for a header")));
    }
    file.read_exact(&mut prefix)?;
    let claimed = u64::from_le_bytes(prefix);
    if claimed > LONGEST_HEADER.min(length - PREFIX) {
        return Err(bad(format!(
            "its header claims {claimed} bytes, the file has {length} in all"
        )));
    }
    let mut header = vec![0; claimed as usize];
    file.read_exact(&mut header)?;
    Ok(header)
}

fn each<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| value(*bytes)).collect()
}

fn bad(reason: impl Into<String>) -> TensorFileError {
    TensorFileError::Bad(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), data].concat()
    }

    fn open(bytes: &[u8]) -> Result<TensorFile, TensorFileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensors");
        fs::write(&path, bytes).unwrap();
        TensorFile::open(&path)
    }

    #[test]
    fn all_kinds_of_floats_are_read() {
        let header = r#"{"b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
            "c":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},
            "d":{"dtype":"F64","shape":[1],"data_offsets":[6,14]},
            "e":{"dtype":"I64","shape":[1],"data_offsets":[14,22]}}"#;
        let halves = [0x00, 0x3c, 0x00, 0xc1, 0xc0, 0x3f];
        let data = [&halves[..], &(-0.125_f64).to_le_bytes(), &7_i64.to_le_bytes()].concat();
        let file = open(&file(header, &data)).unwrap();
        assert_eq!(file.floats("b").unwrap(), [1.0, -2.5]);
        assert_eq!(file.floats("c").unwrap(), [1.5]);
        assert_eq!(file.floats("d").unwrap(), [-0.125]);
        assert_eq!(file.names(), ["b", "c", "d", "e"]);
        let refused = [file.floats("e").err(), file.floats("a").err()];
        let refused = refused.map(|error| error.unwrap().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        tensor `e` holds I64, not floating point
        tensor `a` is missing
        ");
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let tensor = |shape: &str, end: u64| {
            format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#)
        };
        let huge = u64::MAX;
        let refused = [
            open(&[]),
            open(&[9, 0, 0, 0, 0, 0, 0, 0, b'{']),
            open(&huge.to_le_bytes()),
            open(&file("[]", &[])),
            open(&file(&tensor("[2]", 8), &[0; 4])),
            open(&file(&tensor("[2]", 8), &[0; 12])),
            open(&file(&tensor("[3]", 8), &[0; 8])),
            open(&file(&tensor("[4611686018427387904, 8]", 8), &[0; 8])),
            open(&file(&tensor("[2]", huge), &[0; 8])),
        ];
        let refused = refused.map(|opened| opened.unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"));
    }
}
