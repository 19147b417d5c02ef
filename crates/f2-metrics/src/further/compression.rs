//! The compression ratio of gzip (Shaib et al., 2024).

use libz_sys as zlib;

use crate::Error;

/// Bytes of gzip's header and trailer.
const GZIP_FRAME: usize = 18;
/// Bytes of the zlib format's header and trailer.
const ZLIB_FRAME: usize = 6;
/// The best compression, gzip's `-9`.
const LEVEL: i32 = 9;

/// How many times smaller gzip makes the texts, joined by spaces: the more similar and repetitive
/// they are, the higher.
///
/// Compresses with zlib at level 9, so that the size equals that of Python's `gzip.compress`.
///
/// ```
/// let alike = vec!["the cat sat on the mat"; 100];
/// assert!(f2_metrics::compression_ratio(&alike)? > 20.0);
/// # Ok::<(), f2_metrics::Error>(())
/// ```
pub fn compression_ratio<S: AsRef<str>>(texts: &[S]) -> Result<f64, Error> {
    let mut joined = String::new();
    for (number, text) in texts.iter().enumerate() {
        if number > 0 {
            joined.push(' ');
        }
        joined.push_str(text.as_ref());
    }
    if texts.iter().all(|text| text.as_ref().is_empty()) {
        return Err(Error::NoTokens("texts"));
    }
    Ok(joined.len() as f64 / (GZIP_FRAME + deflated(joined.as_bytes())) as f64)
}

/// The number of bytes after deflate at level 9, with zlib's default window and memory level.
fn deflated(bytes: &[u8]) -> usize {
    // SAFETY: `compressBound` only computes with its argument.
    let bound = unsafe { zlib::compressBound(bytes.len() as zlib::uLong) };
    let mut out = vec![0_u8; bound as usize];
    let mut size = bound;
    // SAFETY: the lengths passed are those of the buffers, and `size` is a valid pointer.
    let done = unsafe {
        zlib::compress2(
            out.as_mut_ptr(),
            &raw mut size,
            bytes.as_ptr(),
            bytes.len() as zlib::uLong,
            LEVEL,
        )
    };
    assert_eq!(done, zlib::Z_OK, "zlib has memory for its window");
    size as usize - ZLIB_FRAME
}
