//! A text prepared in parts.

mod damaged;
mod refused;
mod same;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use f2_corpus::{
    Fractions, Inputs, Options, Part, PartDone, Silent, TokenizerChoice, prepare_part,
};

/// Five files, one of them empty and one with most of the text.
fn write_texts(folder: &Path) -> Vec<PathBuf> {
    let animals = ["cat", "rat", "bat", "naïve 고양이", "dog's"];
    let file = |(number, documents): (usize, usize)| {
        let path = folder.join(format!("text-{number}.txt"));
        let documents: Vec<String> = (0..documents)
            .map(|line| {
                format!("the {} sat on mat {number}\nand then {line} more\n", animals[line % 5])
            })
            .collect();
        fs::write(&path, documents.join("\n")).unwrap();
        path
    };
    [3, 60, 0, 9, 1].into_iter().enumerate().map(file).collect()
}

fn options(paths: Vec<PathBuf>) -> Options {
    let fractions = Fractions { train: 0.6, valid: 0.2, test: 0.2 };
    let mut options = Options::new(Inputs::Spread { paths, fractions }, Path::new("unset"));
    options.tokenizer = TokenizerChoice::Train { vocabulary_size: 300 };
    options.threads = 2;
    options
}

fn into(options: &Options, out: &Path) -> Options {
    Options { out: out.to_path_buf(), ..options.clone() }
}

/// Every file of a folder by name.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

fn part(number: usize, of: usize) -> Part {
    format!("{number}/{of}").parse().unwrap()
}

fn every_part(options: &Options, parts: &Path, of: usize) -> Vec<(PartDone, bool)> {
    let options = into(options, parts);
    // In reverse: a scheduler may run parts in any order.
    let run = |number| prepare_part(&options, part(number, of), &Silent).unwrap();
    (1..=of).rev().map(run).collect()
}

/// Replaces the first occurrence of `from` in a sealed record and seals it again; returns the
/// original.
fn reseal(record: &Path, from: &str, to: &str) -> String {
    let whole = fs::read_to_string(record).unwrap();
    assert!(whole.contains(from), "{whole}");
    let (body, _) = whole.rsplit_once("\"checksum\": ").unwrap();
    let open = body.replacen(from, to, 1) + "\"checksum\": \"\"\n}";
    fs::write(record, f2_files::seal(&open)).unwrap();
    whole
}
