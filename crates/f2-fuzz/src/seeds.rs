//! Valid files, which the changes start from.

use std::fs;
use std::path::Path;

/// The seeds of a target: folders of files.
pub struct Seeds {
    folders: Vec<Vec<(String, Vec<u8>)>>,
}

impl Seeds {
    /// Every file of `seeds/NAME`, each under the file name that the parser expects.
    pub fn files_as(name: &str, file: &str) -> Self {
        let found = files_in(&committed(name)).into_iter();
        let folders = found.map(|(_, bytes)| vec![(file.to_owned(), bytes)]).collect();
        Self { folders }.checked(name)
    }

    /// Every folder in `seeds/NAME`.
    pub fn folders(name: &str) -> Self {
        Self::folders_in(&committed(name))
    }

    /// Every folder in a folder.
    pub fn folders_in(folder: &Path) -> Self {
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("seeds").map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let folders = paths.iter().filter(|path| path.is_dir()).map(|path| files_in(path));
        Self { folders: folders.collect() }.checked(&folder.display().to_string())
    }

    fn checked(self, name: &str) -> Self {
        assert!(!self.folders.is_empty(), "{name} has no seeds");
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.folders.len()
    }

    pub(crate) fn files(&self, seed: usize) -> &[(String, Vec<u8>)] {
        &self.folders[seed]
    }

    /// Writes the files of a seed into a folder, which is emptied first.
    pub(crate) fn write_to(&self, seed: usize, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("room for a folder");
        for (name, bytes) in self.files(seed) {
            fs::write(folder.join(name), bytes).expect("room for a file");
        }
    }
}

fn committed(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name)
}

fn files_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|_| panic!("no {}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
    };
    paths.iter().filter(|path| path.is_file()).map(read).collect()
}
