//! `f2 train --show-config`: every setting's resulting value, and where it comes from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use f2_lm::config::{Origin, Resolved, every_setting};
use f2_lm::run::RunFolder;
use f2_lm::train::Base;
use serde_json::json;

use super::Train;
use crate::failure::Outcome;
use crate::output;

impl Train {
    pub(super) fn print_config(&self) -> Outcome {
        let resumed = self.resume.as_deref().map(RunFolder::open).transpose()?;
        let initial = self.initial_model(None)?;
        let base = resumed.as_ref().map_or_else(|| initial.as_ref().into(), Base::Resumed);
        let afresh = matches!(base, Base::Defaults);
        let mut resolved = self.settings.given(afresh)?.resolve(base)?;
        // The vocabulary of a preset is only what its authors used: the corpus decides.
        if let Some(Origin::Preset(_)) = resolved.origins.get("model.vocabulary") {
            resolved.origins.remove("model.vocabulary");
            resolved.config.model.vocabulary = None;
        }
        output::print(&if self.json { to_json(&resolved) } else { to_toml(&resolved) })
    }
}

/// TOML that `--config` reads, with the origin of each value as a comment.
fn to_toml(resolved: &Resolved) -> String {
    let settings = every_setting(&resolved.config);
    let width = settings.iter().map(|(key, value)| line(key, value.as_deref()).len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    let mut section = "";
    for (key, value) in &settings {
        if let Some((of, _)) = key.split_once('.')
            && of != section
        {
            let _ = write!(text, "\n[{of}]\n");
            section = of;
        }
        let line = line(key, value.as_deref());
        let _ = match value {
            Some(_) => writeln!(text, "{line:width$}  # {}", origin(resolved, key)),
            None => writeln!(text, "{line}"),
        };
    }
    text
}

/// The source of a setting's value.
fn origin(resolved: &Resolved, key: &str) -> String {
    resolved.origins.get(key).map_or("default".to_owned(), Origin::to_string)
}

/// A setting within its section; one that is not set becomes a comment.
fn line(key: &str, value: Option<&str>) -> String {
    let name = key.split_once('.').map_or(key, |(_, name)| name);
    value.map_or_else(|| format!("# {name} is not set"), |value| format!("{name} = {value}"))
}

fn to_json(resolved: &Resolved) -> String {
    let setting = |(key, value): (String, Option<String>)| {
        let origin = value.as_ref().map(|_| origin(resolved, &key));
        (key, json!({ "value": value, "origin": origin }))
    };
    let settings: BTreeMap<_, _> =
        every_setting(&resolved.config).into_iter().map(setting).collect();
    format!("{:#}\n", json!(settings))
}
