//! Paths in JSON: as text, or as a list of bytes if they are not UTF-8, so that any path is read
//! back as it was.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_encoded_bytes().serialize(serializer),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(path) => path,
        Written::Bytes(bytes) => from_bytes(bytes),
    })
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record(#[serde(with = "super")] PathBuf);

    #[test]
    fn any_path_comes_back() {
        let mut paths: Vec<PathBuf> = vec!["corpora/ä b".into()];
        #[cfg(unix)]
        paths.push(from_bytes(b"corpora/\xff\xfe".to_vec()));
        for path in paths {
            let text = serde_json::to_string(&Record(path.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), Record(path), "{text}");
        }
    }
}
