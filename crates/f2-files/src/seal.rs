//! JSON files that carry the checksum of their own text.

use sha2::{Digest as _, Sha256};

/// Fills in the empty `checksum` of a pretty-printed JSON object: the SHA-256 of the text with the
/// field empty.
///
/// ```
/// let sealed = f2_files::seal("{\n  \"words\": 12,\n  \"checksum\": \"\"\n}");
/// let checksum = sealed.split('"').nth(5).unwrap();
/// assert!(f2_files::is_sealed(&sealed, checksum));
/// assert!(!f2_files::is_sealed(&sealed.replace("12", "13"), checksum));
/// ```
pub fn seal(text: &str) -> String {
    text.replacen(&field(""), &field(&checksum(text)), 1)
}

/// Whether a text is unchanged since [`seal`] gave it this checksum.
///
/// The text itself is hashed, not what this program would write: another version may write more
/// fields.
pub fn is_sealed(text: &str, found: &str) -> bool {
    checksum(&text.replacen(&field(found), &field(""), 1)) == found
}

/// The field as it is written in the file.
fn field(checksum: &str) -> String {
    format!("\"checksum\": \"{checksum}\"")
}

fn checksum(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}
