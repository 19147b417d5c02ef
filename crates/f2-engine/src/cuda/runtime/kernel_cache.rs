//! Compiled kernels on disk: a file with a checksum for each source, options and driver.
//!
//! A file consists of the magic number, the SHA-256 over these three and the machine code, and the
//! machine code. A file whose hash does not match is ignored.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use f2_files::{disk, write_atomically};
use sha2::{Digest, Sha256};

const MAGIC: [u8; 8] = *b"f2cubin1";
const CHECKSUM: usize = 32;

/// The cache file of the machine code of the kernels.
pub(in crate::cuda) struct KernelCache {
    path: PathBuf,
    /// Source, options and driver version.
    compiled_from: String,
}

impl KernelCache {
    /// The file in `folder` for code compiled from `compiled_from`; its name begins with `name`.
    pub(in crate::cuda) fn new(folder: &Path, name: &str, compiled_from: String) -> Self {
        let digest = Sha256::digest(&compiled_from);
        let key: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self { path: folder.join(format!("{name}-{key}.cubin")), compiled_from }
    }

    /// The code, if the file exists and is intact.
    pub(in crate::cuda) fn load(&self) -> Option<Vec<u8>> {
        let file = fs::read(&self.path).ok()?;
        let (checksum, code) = file.strip_prefix(&MAGIC)?.split_at_checked(CHECKSUM)?;
        (checksum == self.checksum(code)).then(|| code.to_vec())
    }

    /// Stores the code. A failure is ignored: it only costs time at the next start.
    pub(in crate::cuda) fn store(&self, code: &[u8]) {
        let _ = self.path.parent().map(disk::create_folders);
        let _ = write_atomically(&self.path, |file| {
            file.write_all(&MAGIC)?;
            file.write_all(&self.checksum(code))?;
            file.write_all(code)
        });
    }

    fn checksum(&self, code: &[u8]) -> [u8; CHECKSUM] {
        Sha256::new().chain_update(&self.compiled_from).chain_update(code).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_loaded_only_for_the_source_it_was_compiled_from() {
        let folder = tempfile::tempdir().unwrap();
        let cache = |from: &str| KernelCache::new(folder.path(), "kernels", from.to_owned());
        assert_eq!(cache("a").load(), None);
        cache("a").store(b"machine code");
        assert_eq!(cache("a").load().as_deref(), Some(&b"machine code"[..]));
        assert_eq!(cache("b").load(), None);
        // Not even if the file is renamed.
        fs::rename(&cache("a").path, &cache("b").path).unwrap();
        assert_eq!(cache("b").load(), None);
    }

    #[test]
    fn code_with_any_bit_changed_or_cut_off_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::new(folder.path(), "kernels", "source".to_owned());
        cache.store(b"machine code");
        let whole = fs::read(&cache.path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            fs::write(&cache.path, damaged).unwrap();
            assert_eq!(cache.load(), None, "byte {place} changed");
            fs::write(&cache.path, &whole[..place]).unwrap();
            assert_eq!(cache.load(), None, "cut off at {place}");
        }
        cache.store(b"machine code");
        assert!(cache.load().is_some(), "a damaged one is replaced");
    }
}
