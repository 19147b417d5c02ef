//! CUDA's libraries in `nvidia-*` wheels, for a program that pip installed in the same environment.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::Library;

/// Loads a library, such as `nvrtc`, from the wheels of the program's Python environment.
///
/// Once loaded, a library is found by name, wherever it came from. Does nothing if there is none.
pub(in crate::cuda) fn load(name: &str) {
    let Ok(program) = env::current_exe().and_then(fs::canonicalize) else { return };
    // PREFIX/bin/f2, or PREFIX\Scripts\f2.exe.
    let Some(prefix) = program.parent().and_then(Path::parent) else { return };
    for path in libraries(prefix, name) {
        // SAFETY: loading the library runs its initialisers, as in every program that uses it.
        if let Ok(library) = unsafe { Library::new(&path) } {
            // It must stay loaded to be found by name.
            std::mem::forget(library);
            return;
        }
    }
}

/// The files of a library in the wheels of an environment, the newest version first.
fn libraries(prefix: &Path, name: &str) -> Vec<PathBuf> {
    let begins = if cfg!(windows) { format!("{name}64_") } else { format!("lib{name}.so.") };
    let is_library = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(&begins) && path.is_file()
    };
    let mut found: Vec<PathBuf> = site_packages(prefix)
        .iter()
        .flat_map(|packages| entries(&packages.join("nvidia")))
        .flat_map(|wheel| ["lib", "bin", "bin/x86_64"].map(|folder| wheel.join(folder)))
        .flat_map(|folder| entries(&folder))
        .filter(is_library)
        .collect();
    found.sort_by(|left, right| right.file_name().cmp(&left.file_name()));
    found
}

/// The folders in which an environment's packages may be.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let versions = ["lib", "lib64"].iter().flat_map(|folder| entries(&prefix.join(folder)));
    let of_version = |folder: &PathBuf| {
        folder.file_name().unwrap_or_default().to_string_lossy().starts_with("python3")
    };
    let mut packages: Vec<PathBuf> =
        versions.filter(of_version).map(|version| version.join("site-packages")).collect();
    packages.push(prefix.join("Lib").join("site-packages"));
    packages
}

/// The entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(all(test, not(windows)))]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_any_wheel_is_found() {
        let prefix = tempfile::tempdir().unwrap();
        let nvidia = prefix.path().join("lib/python3.11/site-packages/nvidia");
        for file in [
            "cuda_nvrtc/lib/libnvrtc.so.12",
            "cu13/lib/libnvrtc.so.13",
            "cu13/lib/libnvrtc.alt.so.13",
            "cu13/lib/libnvrtc-builtins.so.13.2",
            "cublas/lib/libcublasLt.so.12",
            "cublas/lib/libcublas.so.12",
            "nccl/lib/libnccl.so.2",
        ] {
            let path = nvidia.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |name| -> Vec<String> {
            let paths = libraries(prefix.path(), name).into_iter();
            let relative = paths.map(|path| path.strip_prefix(&nvidia).unwrap().to_owned());
            relative.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(found("nvrtc"), ["cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"]);
        assert_eq!(found("cublasLt"), ["cublas/lib/libcublasLt.so.12"]);
        assert_eq!(found("nccl"), ["nccl/lib/libnccl.so.2"]);
        assert!(libraries(&prefix.path().join("lib"), "nvrtc").is_empty());
    }
}
