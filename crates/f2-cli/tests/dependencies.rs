//! The checks of `cargo deny check`, in a second and without the network: licences, duplicate
//! crates, the sources of crates, and known advisories.
//!
//! The rules are those of deny.toml. The advisories are a copy of the `RustSec` database, updated
//! by .ci/advisories.py. cargo-deny itself takes longer to build than all our tests, and needs a
//! clone of that database; if it is installed, .ci/run uses it as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use semver::{Version, VersionReq};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skipped>,
}

#[derive(Deserialize)]
struct Skipped {
    #[serde(rename = "crate")]
    name: String,
}

fn rules() -> Rules {
    toml::from_str(&read("deny.toml")).unwrap()
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: Version,
    /// `None` for our own crates.
    source: Option<String>,
}

fn locked() -> Vec<Locked> {
    toml::from_str::<Lock>(&read("Cargo.lock")).unwrap().package
}

#[test]
fn every_crate_comes_from_the_registry() {
    for Locked { name, source, .. } in locked() {
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(source.as_deref().is_none_or(|source| source == registry), "{name}: {source:?}");
    }
}

#[test]
fn no_crate_is_twice_in_the_tree_without_a_reason() {
    let mut versions: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    for package in locked() {
        versions.entry(package.name).or_default().push(package.version);
    }
    let twice = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    let twice: BTreeSet<String> = twice.map(|(name, _)| name).collect();
    let known: BTreeSet<String> = rules().bans.skip.into_iter().map(|skip| skip.name).collect();
    let new: Vec<_> = twice.difference(&known).collect();
    assert!(new.is_empty(), "twice in the tree, `cargo tree -d` shows why: {new:?}");
    let gone: Vec<_> = known.difference(&twice).collect();
    assert!(gone.is_empty(), "no longer twice in the tree, take out of deny.toml: {gone:?}");
}

/// A line of .ci/advisories.jsonl.
#[derive(Deserialize)]
struct Advisory {
    id: String,
    #[serde(rename = "crate")]
    name: String,
    /// Requirements that are met by the versions not affected.
    safe: Vec<VersionReq>,
    /// `unmaintained`, `unsound` or `notice`; `None` for a vulnerability.
    kind: Option<String>,
}

impl Advisory {
    fn concerns(&self, package: &Locked) -> bool {
        let safe = |safe: &VersionReq| safe.matches(&package.version);
        self.name == package.name && package.source.is_some() && !self.safe.iter().any(safe)
    }

    /// Unmaintained crates deep in the tree are for the crates that use them to replace.
    fn matters(&self) -> bool {
        !matches!(self.kind.as_deref(), Some("unmaintained" | "notice"))
    }
}

fn advisories() -> Vec<Advisory> {
    let text = read(".ci/advisories.jsonl");
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_advisory_concerns_a_crate_of_the_tree() {
    let (advisories, packages) = (advisories(), locked());
    assert!(advisories.len() > 500, "the list is there: {}", advisories.len());
    for advisory in advisories.iter().filter(|advisory| advisory.matters()) {
        let concerned = packages.iter().find(|package| advisory.concerns(package));
        if let Some(Locked { name, version, .. }) = concerned {
            panic!("{name} {version}: see https://rustsec.org/advisories/{}", advisory.id);
        }
    }
}

#[test]
fn an_old_version_would_be_noticed() {
    let old = |name: &str, version: &str| Locked {
        name: name.to_owned(),
        version: version.parse().unwrap(),
        source: Some(String::new()),
    };
    // An endless loop, fixed in 0.23.5.
    let concerned = |package: &Locked| advisories().iter().any(|each| each.concerns(package));
    assert!(concerned(&old("rustls", "0.23.4")) && !concerned(&old("rustls", "0.23.30")));
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
    source: Option<String>,
}

/// All crates that are built for this machine. `None` if cargo has not fetched them all, which
/// is allowed unless all features were built: .ci/run does that and sets `F2_ALL_FEATURES`.
fn packages() -> Option<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let host = Command::new(&cargo).args(["-vV"]).output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--all-features"])
        .args(["--filter-platform", &host])
        .current_dir(root())
        .output()
        .unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(std::env::var_os("F2_ALL_FEATURES").is_none(), "{said}");
        eprintln!("skipped: {said}");
        return None;
    }
    Some(serde_json::from_slice::<Metadata>(&output.stdout).unwrap().packages)
}

#[test]
fn every_licence_is_one_of_those_allowed() {
    let allowed = rules().licenses.allow;
    let allows = |licence: &str| {
        let expression = Expression::parse_mode(licence, ParseMode::LAX).unwrap();
        expression.evaluate(|wanted| allowed.contains(&wanted.to_string()))
    };
    assert!(allows("GPL-3.0-only OR MIT") && allows("Apache-2.0/ISC"));
    assert!(!allows("GPL-3.0-only") && !allows("MIT AND GPL-3.0-only"));
    for Package { name, license, source } in packages().into_iter().flatten() {
        let licence = license.unwrap_or_default();
        assert!(source.is_none() || allows(&licence), "{name}: {licence}");
    }
}
