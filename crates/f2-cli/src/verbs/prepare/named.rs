//! Datasets on the Hugging Face hub as input.

use std::path::{Path, PathBuf};

use super::Prepare;
use crate::failure::{Failure, Outcome};
use crate::hub::dataset_files;

/// Words in file names that name a split.
const TRAIN: [&str; 2] = ["train", "training"];
const VALID: [&str; 4] = ["validation", "valid", "val", "dev"];
const TEST: [&str; 3] = ["test", "testing", "eval"];

impl Prepare {
    /// Replaces the names of datasets on the hub by their files. If these are the whole input and
    /// their names tell the splits, they are split so.
    pub(super) fn fetch_named(&mut self) -> Outcome {
        let named = self.inputs.iter().all(|path| path.starts_with("hf://"));
        for paths in [&mut self.inputs, &mut self.train, &mut self.valid, &mut self.test] {
            *paths = local(paths)?;
        }
        let of_split = |words: &[&str]| -> Vec<PathBuf> {
            self.inputs.iter().filter(|path| names_split(path, words)).cloned().collect()
        };
        let [train, valid, test] = [of_split(&TRAIN), of_split(&VALID), of_split(&TEST)];
        let recognised = train.len() + valid.len() + test.len();
        if named && !train.is_empty() && recognised > train.len() && recognised == self.inputs.len()
        {
            remark!(
                "note: split by the names of the files: {} to train, {} to validate, {} to test",
                train.len(),
                valid.len(),
                test.len()
            );
            self.inputs.clear();
            (self.train, self.valid, self.test) = (train, valid, test);
        }
        Ok(())
    }
}

fn local(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let files = |path: &PathBuf| {
        dataset_files(path).map(|files| files.unwrap_or_else(|| vec![path.clone()]))
    };
    Ok(paths.iter().map(files).collect::<Result<Vec<_>, Failure>>()?.concat())
}

/// Whether a file's name contains one of these words as a whole word.
fn names_split(path: &Path, words: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_splits_are_whole_words() {
        assert!(names_split(Path::new("data/train-00000-of-00002.parquet"), &TRAIN));
        assert!(names_split(Path::new("wiki.Valid.tokens"), &VALID));
        assert!(!names_split(Path::new("trainspotting.txt"), &TRAIN));
        assert!(!names_split(Path::new("train/part-1.txt"), &TRAIN));
    }
}
