//! `docs/settings.md` is made from the code: the comments of the settings, their defaults, and the
//! presets. This test fails if it is stale, and writes it if `F2_WRITE_DOCS` is set.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use f2_lm::config::{ConfigLayers, Preset, TrainConfig};

/// The command that writes the page.
const COMMAND: &str = "F2_WRITE_DOCS=1 cargo test -p f2-lm --test settings_page";

const SOURCES: [&str; 3] = [
    include_str!("../src/config/mod.rs"),
    include_str!("../src/config/objective.rs"),
    include_str!("../src/config/initial.rs"),
];

/// A field of a struct, or a variant of an enum, with the comment above it.
struct Member {
    name: String,
    /// Of a field.
    kind: String,
    comment: String,
}

/// The public members of every struct and enum, by its name.
fn members() -> BTreeMap<String, Vec<Member>> {
    let mut types: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for source in SOURCES {
        let (mut current, mut comment) = (None, Vec::new());
        for line in source.lines() {
            let text = line.trim();
            let head = ["pub struct ", "pub enum "].iter().find_map(|head| text.strip_prefix(head));
            if let Some(name) = head.and_then(|head| head.strip_suffix(" {")) {
                current = Some(name.to_owned());
            } else if line == "}" {
                current = None;
            } else if let (Some(words), true) = (text.strip_prefix("///"), current.is_some()) {
                comment.push(words.trim().to_owned());
                continue;
            } else if let (Some(owner), Some(member)) = (&current, text.strip_suffix(',')) {
                let (name, kind) = match member.strip_prefix("pub ") {
                    Some(field) => field.split_once(": ").unwrap(),
                    None => (member, ""),
                };
                let (name, kind) = (name.to_owned(), kind.to_owned());
                let comment = comment.join(" ");
                types.entry(owner.clone()).or_default().push(Member { name, kind, comment });
            }
            if !text.starts_with("#[") {
                comment.clear();
            }
        }
    }
    types
}

/// `UnlikelihoodSequence` as `unlikelihood-sequence`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The values of a configuration by key, as TOML writes them.
fn values(config: &TrainConfig) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for (name, value) in toml::Table::try_from(config).unwrap() {
        match value {
            toml::Value::Table(section) => values.extend(
                section
                    .into_iter()
                    .map(|(key, value)| (format!("{name}.{key}"), value.to_string())),
            ),
            value => drop(values.insert(name, value.to_string())),
        }
    }
    values
}

fn page() -> String {
    let types = members();
    let presets =
        Preset::ALL.map(|preset| ConfigLayers::new().preset(preset).resolve().unwrap().config);
    let columns: Vec<BTreeMap<String, String>> =
        std::iter::once(&TrainConfig::default()).chain(&presets).map(values).collect();
    let names = Preset::ALL.map(Preset::name).join("` | `");
    let rule = "|---".repeat(2 + columns.len());
    let head = format!("| setting | meaning | default | `{names}` |\n{rule}|\n");
    let row = |key: &str, member: &Member| {
        let mut row = format!("| `{key}` | {}", member.comment);
        if let Some(choices) = types.get(member.kind.as_str()) {
            let choice = |choice: &Member| {
                format!("<br>`{}`: {}", kebab(&choice.name), choice.comment.replace("**", ""))
            };
            row.extend(choices.iter().map(choice));
        }
        for column in &columns {
            let value = column.get(key).map_or("–".to_owned(), |value| format!("`{value}`"));
            let _ = write!(row, " | {value}");
        }
        row + " |\n"
    };
    let mut text = format!(
        "# Settings\n\n\
         <!-- Made from the code by: {COMMAND} -->\n\n\
         The settings of `f2 train`, with the default and the value in each preset (`–`: not \
         set). Give a setting with `--set KEY=VALUE`, such as `--set \
         optimiser.learning_rate=1e-3`, or in a TOML file with `--config FILE`, where `[model]` \
         begins the section and `layers = 6` sets `model.layers`. A flag wins over the file, the \
         file over the preset, the preset over the default. `f2 train --preset demo \
         --show-config` prints the resulting settings and where each value comes from.\n"
    );
    for member in &types["TrainConfig"] {
        match types.get(member.kind.as_str()) {
            Some(section) => {
                let _ = write!(text, "\n## {}\n\n{}\n\n{head}", member.name, member.comment);
                for field in section {
                    text += &row(&format!("{}.{}", member.name, field.name), field);
                }
            }
            None => {
                let _ = write!(text, "\n{head}{}", row(&member.name, member));
            }
        }
    }
    text
}

#[test]
fn the_page_of_settings_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = page();
    for key in values(&TrainConfig::default()).keys() {
        assert!(page.contains(&format!("| `{key}` | ")), "{key} is not on the page");
    }
    if std::env::var_os("F2_WRITE_DOCS").is_some() {
        return std::fs::write(path, page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/settings.md is stale; regenerate it with: {COMMAND}");
}
