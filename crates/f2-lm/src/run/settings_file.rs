//! A run's `config.toml`: settings under the hash of their text.

use f2_files::FileRecord;

/// The comment before the hash.
const SEAL: &str = "# Every setting of this run, as resolved. SHA-256 of all below: ";

/// The text of the file.
pub(super) fn sealed(settings: &str) -> String {
    let below = format!("\n{settings}");
    format!("{SEAL}{}\n{below}", FileRecord::of_bytes(below.as_bytes()).sha256)
}

/// How the file differs from its hash, if it does; older files have no hash.
pub(super) fn difference(text: &str) -> Option<String> {
    let (hash, below) = text.strip_prefix(SEAL)?.split_once('\n')?;
    let found = FileRecord::of_bytes(below.as_bytes()).sha256;
    (found != hash).then(|| "its settings are not what the run wrote there".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_digit_is_found() {
        let text = sealed("[model]\nlayers = 4\n");
        assert_eq!(difference(&text), None);
        assert!(difference(&text.replace('4', "5")).is_some());
        assert_eq!(difference("[model]\nlayers = 4\n"), None);
    }
}
