//! Every crate can be packaged and published: it has the fields that the registry requires,
//! dependencies within the workspace have versions, and no source file includes one of another
//! package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use semver::{Version, VersionReq};
use serde::Deserialize;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Version,
    manifest_path: PathBuf,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    readme: Option<PathBuf>,
    rust_version: Option<String>,
    dependencies: Vec<Dependency>,
    /// The registries it may be published to: none if empty, any if missing.
    publish: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: VersionReq,
    path: Option<PathBuf>,
    /// `dev` or `build`; `None` for a normal dependency.
    kind: Option<String>,
}

impl Package {
    fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap()
    }
}

fn packages() -> Vec<Package> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Metadata>(&output.stdout).unwrap().packages
}

#[test]
fn every_package_has_the_fields_the_registry_requires() {
    for package in packages() {
        let name = &package.name;
        assert!(package.description.is_some_and(|it| it.len() > 20), "{name}: no description");
        assert!(package.license.is_some(), "{name}: no license");
        assert!(package.repository.is_some(), "{name}: no repository");
        assert!(package.readme.is_some(), "{name}: no readme");
        assert!(package.rust_version.is_some(), "{name}: no rust-version");
    }
}

#[test]
fn crates_of_the_workspace_are_named_with_their_versions() {
    let packages = packages();
    for package in &packages {
        for dependency in package.dependencies.iter().filter(|each| each.path.is_some()) {
            let names = format!("{} needs {}", package.name, dependency.name);
            let found = packages.iter().find(|each| each.name == dependency.name).unwrap();
            // Cargo leaves a dev-dependency out of the published package if it has no version.
            if found.publish.as_ref().is_some_and(Vec::is_empty) {
                assert_eq!(dependency.kind.as_deref(), Some("dev"), "{names}, which stays here");
                assert_eq!(dependency.req, VersionReq::STAR, "{names}, which stays here");
                continue;
            }
            assert_ne!(dependency.req, VersionReq::STAR, "{names} of any version");
            assert!(dependency.req.matches(&found.version), "{names} of another version");
        }
    }
}

#[test]
fn no_source_file_includes_one_of_another_package() {
    let mut included = 0;
    for package in packages() {
        let root = package.folder().canonicalize().unwrap();
        for source in rust_files(&root) {
            for path in includes(&fs::read_to_string(&source).unwrap()) {
                let target = source.parent().unwrap().join(&path);
                let target = target.canonicalize().unwrap_or(target);
                assert!(target.starts_with(&root), "{} includes {path}", source.display());
                included += 1;
            }
        }
    }
    assert!(included > 10, "includes are found: {included}");
}

/// The paths of the files that a source text includes.
fn includes(text: &str) -> Vec<String> {
    let macros = ["include_str", "include_bytes", "include"].map(|name| format!("{name}!(\""));
    let after = |name: &String| -> Vec<String> {
        text.split(name.as_str())
            .skip(1)
            .map(|rest| rest[..rest.find('"').unwrap()].into())
            .collect()
    };
    macros.iter().flat_map(after).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
