//! `f2 reproduce` and `f2 report`: whatever happens, finished work is kept intact, and the same
//! command ends with the same tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::soak::{Random, disturb, leave_alone, seconds};
use crate::support::faults::{ALL, at_every_change, contents};
use crate::support::workshop::Workshop;
use crate::support::{Folder, invented_text};

/// A plan of two models, as small as possible.
const PLAN: &str = r#"
vocabulary = 300
models = ["mle", "f2"]
[training]
preset = "demo"
steps = 2
[training.settings]
"model.layers" = 1
"model.width" = 8
"model.heads" = 1
"model.feed_forward" = 8
"batch.sequence" = 32
"batch.size" = 2
"schedule.warmup_steps" = 1
"evaluation.max_tokens" = 64
[generation]
k = 3
streams = 4
prefix = 8
continuation = 8
texts = 8
[evaluation]
samples = 1
"#;

const REPRODUCE: [&str; 8] =
    ["reproduce", "novel.txt", "--plan", "plan.toml", "--out", "study", "--threads", "1"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("novel.txt", invented_text(120));
    folder.write("plan.toml", PLAN);
    folder
}

fn done(folder: &Folder, command: &[&str]) {
    let run = folder.f2(command);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// All tables except the one with times.
fn tables(study: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = contents(&study.join("tables")).into_iter();
    all.filter(|(name, _)| !name.starts_with("training.")).collect()
}

/// Restores a folder to these files.
fn restore(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let _ = fs::remove_dir_all(folder);
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Older and newer scores of two models.
const SCORES: [&str; 2] = [
    r#"[{"name": "MLE", "convention": "paper", "kld": 1.5}, {"name": "F²", "convention": "paper", "kld": 0.6}]"#,
    r#"[{"name": "MLE", "convention": "paper", "kld": 1.4}, {"name": "F²", "convention": "paper", "kld": 0.7}]"#,
];

#[test]
fn a_report_survives_a_fault_at_every_change_of_the_disk() {
    let folder = Folder::new();
    fs::create_dir(folder.path("mine")).unwrap();
    let [old, new] = SCORES.map(|scores| {
        folder.write("mine/scores.json", scores);
        done(&folder, &["report", "mine"]);
        contents(&folder.path("mine"))
    });
    let begin = || {
        restore(&folder.path("mine"), &old);
        folder.write("mine/scores.json", SCORES[1]);
    };
    at_every_change(&folder, &["report", "mine"], &ALL, begin, |plan| {
        for (name, found) in contents(&folder.path("mine")) {
            // Leftovers of a killed run, or of a full disk, are removed by the next run.
            let hidden = name.contains("/.") || name.starts_with('.');
            let whole = old.get(&name) == Some(&found) || new.get(&name) == Some(&found);
            assert!(whole || hidden, "{plan}: {name}");
        }
        done(&folder, &["report", "mine"]);
        assert!(contents(&folder.path("mine")) == new, "{plan}");
    });
}

/// Faults during the last stage and while the results are written; other tests cover training,
/// generation and the report.
#[test]
fn a_study_survives_a_fault_at_every_change_of_the_disk() {
    if !cfg!(debug_assertions) {
        return;
    }
    let folder = folder();
    done(&folder, &REPRODUCE);
    let study = folder.path("study");
    let expected = tables(&study);
    let mut begun = contents(&study);
    begun.retain(|name, _| !name.starts_with("stages/score-") && name != "results.json");
    for kind in ["fail", "kill"] {
        for change in 1.. {
            restore(&study, &begun);
            let plan = format!("{kind}:{change}");
            let run = folder.f2_with(&REPRODUCE, &[("F2_FAULT", &plan)]);
            assert!(run.stderr.contains("fault: "), "{plan}: the report comes last");
            if run.stderr.contains("study/tables/") {
                assert!(change > 10, "{plan}: {}", run.stderr);
                break;
            }
            let code = if kind == "kill" { 137 } else { 4 };
            assert_eq!(run.code, code, "{plan}: {}", run.stderr);
            let results = fs::read_to_string(study.join("results.json")).unwrap_or_default();
            assert!(results.is_empty() || results.ends_with("}\n"), "{plan}");
            done(&folder, &REPRODUCE);
            assert!(tables(&study) == expected, "{plan}");
        }
    }
}

#[test]
fn a_study_ends_in_the_same_tables_whatever_happens() {
    let workshop = Workshop(folder());
    let study = workshop.path("study");
    done(&workshop.0, &REPRODUCE);
    let expected = tables(&study);
    let mut random = Random::new();
    let mut log = vec![format!("seed {}", random.0)];
    let began = Instant::now();
    while log.len() == 1 || began.elapsed() < seconds() {
        fs::remove_dir_all(&study).unwrap();
        log.truncate(1);
        loop {
            // After several disturbances the command runs undisturbed.
            let ended = if log.len() > 15 {
                leave_alone(&workshop, &REPRODUCE)
            } else {
                disturb(&workshop, &REPRODUCE, &mut random)
            };
            log.push(ended.to_string());
            assert!(ended.is_expected(), "{log:#?}");
            if ended.code == 0 {
                break;
            }
        }
        assert!(tables(&study) == expected, "{log:#?}");
    }
}
