//! Links in the documents, and repository paths in back quotes, lead to existing files.

use std::fs;
use std::path::{Path, PathBuf};

use f2_lm::decode::Truncations;

/// Prefixes of paths in back quotes that are relative to the root of the repository.
const FOLDERS: [&str; 5] = ["crates/", "docs/", ".ci/", ".github/", "oracle/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Each text between an opening and a closing mark.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let parts = text.split(open).skip(1);
    parts.filter_map(|part| part.split_once(close).map(|(inner, _)| inner)).collect()
}

#[test]
fn every_link_leads_to_a_file() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in between(&text, "](", ")") {
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let target = document.parent().unwrap().join(path);
            assert!(target.exists(), "{} links to {link}", document.display());
            links += 1;
        }
    }
    assert!(links > 20, "links are found: {links}");
}

#[test]
fn every_path_on_the_map_exists() {
    let mut paths = 0;
    for document in ["CONTRIBUTING.md", "docs/architecture.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            if FOLDERS.iter().any(|folder| path.starts_with(folder)) {
                assert!(root().join(path).exists(), "{document} names {path}");
                paths += 1;
            }
        }
    }
    assert!(paths > 30, "paths are found: {paths}");
}

fn documents() -> Vec<PathBuf> {
    let folders = [root(), root().join("docs")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The table has a row with each rule's name, flag and field.
#[test]
fn every_truncation_rule_is_documented() {
    let text = fs::read_to_string(root().join("docs/decoding.md")).unwrap();
    for rule in Truncations::rules() {
        let (name, flag, field) = (rule.name, rule.flag(), rule.field);
        let row = text.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("docs/decoding.md has no row for {name}"));
        assert!(row.contains(&format!("| `--{flag}` | `{field}` |")), "{row}");
    }
}
