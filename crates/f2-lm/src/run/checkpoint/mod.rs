//! A checkpoint: a folder that is either complete or absent, with a checksum of every file in it.

mod load;
mod save;
mod state;
mod tensors;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use f2_corpus::names::{CLASSES, COUNTS, RANKS, TOKENIZER};
use f2_files::{WriteError, remove_folder_at_once};

pub(super) use load::{check_file, check_model};
pub use load::{load_model, load_moments, open};
pub(crate) use load::{read_model, read_state};
pub use save::{Contents, SavedMoments, save, save_model};
pub use state::{Best, TrainingState};

/// The parameters.
pub const MODEL: &str = "model.safetensors";
/// The shape of the decoder they belong to.
pub const SHAPE: &str = "model.json";
/// Adam's moments.
pub const OPTIMISER: &str = "optimizer.safetensors";
/// The training state, and the checksums of all other files.
pub const STATE: &str = "state.json";

/// The folder of the checkpoint after `step` steps.
pub fn path(checkpoints: &Path, step: u64) -> PathBuf {
    checkpoints.join(format!("step-{step}"))
}

/// The steps with a checkpoint, ascending. Incomplete checkpoints have other names.
pub fn steps(checkpoints: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(checkpoints) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut steps = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let step = name.to_str().and_then(|name| name.strip_prefix("step-"));
        steps.extend(step.and_then(|step| step.parse::<u64>().ok()));
    }
    steps.sort_unstable();
    Ok(steps)
}

/// Removes every checkpoint but those of the steps in `keep`, and leftovers of killed writers.
pub fn prune(checkpoints: &Path, keep: &[u64]) -> Result<(), WriteError> {
    for step in steps(checkpoints).map_err(WriteError::of(checkpoints))? {
        if !keep.contains(&step) {
            remove_folder_at_once(&path(checkpoints, step))?;
        }
    }
    f2_files::sweep(checkpoints);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_checkpoints_are_listed_and_only_kept_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["step-10", "step-9", "step-200", ".step-300.77.partial", "step-x", "other"];
        for name in names {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(steps(folder.path()).unwrap(), [9, 10, 200]);
        prune(folder.path(), &[10, 200]).unwrap();
        assert_eq!(steps(folder.path()).unwrap(), [10, 200]);
        assert!(!folder.path().join(".step-300.77.partial").exists());
        assert!(folder.path().join("other").exists());
    }

    #[test]
    fn no_folder_means_no_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        assert!(steps(&folder.path().join("absent")).unwrap().is_empty());
    }
}
