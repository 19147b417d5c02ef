//! `f2 generate` and `f2 perplexity` from the command line.

mod perplexity;
mod protocols;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::sync::OnceLock;

use f2_lm::run::{Pick, SavedModel};
use f2_report::printable;
use serde_json::Value;
use support::{Folder, Run, interrupt, small_settings};

/// A corpus, and a plain and an F² model trained on it for a few steps.
fn workshop() -> &'static Folder {
    static WORKSHOP: OnceLock<Folder> = OnceLock::new();
    WORKSHOP.get_or_init(|| {
        let folder = Folder::new();
        let words = ["sol", "mira", "ken", "tolu", "vane", "rasi", "🐈", "näh"];
        let mut state = 1_u32;
        let mut word = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // The first words are the most frequent.
            words[((state >> 16) as usize % 8).min((state >> 24) as usize % 8)]
        };
        let mut line = || (0..12).map(|_| word()).collect::<Vec<_>>().join(" ") + ".\n";
        folder.write("text.txt", (0..600).map(|_| line()).collect::<String>());
        folder.write("small.toml", small_settings(32));
        let prepare = ["prepare", "text.txt", "--out", "corpus", "--documents", "lines"];
        done(&folder, &[&prepare[..], &["--vocab-size", "280", "--end-of-text"]].concat());
        done(&folder, &["classes", "corpus", "--method", "equal-frequency", "--k", "4"]);
        for objective in ["mle", "f2"] {
            let train = ["train", "corpus", "--config", "small.toml", "--steps", "40"];
            done(&folder, &[&train[..], &["--objective", objective, "--out", objective]].concat());
        }
        folder
    })
}

fn done(folder: &Folder, arguments: &[&str]) -> Run {
    let run = folder.f2(arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run
}

fn generate(arguments: &[&str]) -> Run {
    done(workshop(), &[&["generate"], arguments].concat())
}

fn records(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_text_goes_on_from_its_prompt() {
    let shown = generate(&["f2", "--prompt", "sol mira", "--new-tokens", "20"]).stdout;
    assert!(shown.starts_with("sol mira") && shown.len() > 25, "{shown}");
    assert!(!shown.contains('\x1b'), "colours belong on a terminal");
    let arguments = ["f2", "--prompt", "sol mira", "--new-tokens", "20", "--json"];
    let record = &records(&generate(&arguments).stdout)[0];
    assert_eq!(format!("sol mira{}\n", record["text"].as_str().unwrap()), shown);
    let numbers = |key: &str| record[key].as_array().unwrap().len();
    let count = numbers("ids");
    for key in ["classes", "log_probabilities", "class_log_probabilities"] {
        assert_eq!(numbers(key), count, "{key}");
    }
    let plain = generate(&["mle", "--prompt", "sol", "--json"]).stdout;
    let plain = &records(&plain)[0];
    assert!(plain.get("classes").is_none() && plain["log_probabilities"].is_array());
}

/// The legend that precedes coloured output.
#[cfg(target_os = "linux")]
const LEGEND: &str = "tokens: frequent, \x1b[36mmedium\x1b[0m, \x1b[33mrare\x1b[0m, \
                      \x1b[1;31mvery rare\x1b[0m\n\n";

#[cfg(target_os = "linux")]
#[test]
fn tokens_have_the_colours_of_their_bands_on_a_terminal() {
    let workshop = workshop();
    let arguments = ["f2", "--prompt", "sol", "--new-tokens", "30", "--temperature", "1"];
    let record = &records(&generate(&[&arguments[..], &["--json"]].concat()).stdout)[0];
    let model = SavedModel::open(&workshop.path("f2"), Pick::Best).unwrap();
    let counts = model.counts.as_ref().unwrap();
    let total: u64 = counts.iter().sum();
    // A band ends before the rank at which the mass so far reaches its share.
    let band = |id: usize| {
        let mass = counts[..=id].iter().sum::<u64>() as f64 / total as f64;
        [0.4, 0.7, 0.9].iter().filter(|share| mass >= **share).count()
    };
    let (mut expected, mut stream, mut bands) =
        (LEGEND.to_owned() + "sol", model.vocabulary.stream(), [0; 4]);
    for id in record["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()) {
        let (piece, band) = (stream.push(id as u32).unwrap(), band(id as usize));
        if !piece.is_empty() {
            bands[band] += 1;
            let look = ["", "\x1b[36m", "\x1b[33m", "\x1b[1;31m"][band];
            expected += &[look, &printable(&piece), if band > 0 { "\x1b[0m" } else { "" }].concat();
        }
    }
    expected += &(stream.finish().unwrap() + "\n");
    assert!(bands.iter().filter(|pieces| **pieces > 0).count() > 1, "one band alone: {bands:?}");
    let command = [&["generate"], &arguments[..]].concat();
    let shown = |environment: &[(&str, &str)]| {
        support::terminal::f2_on_terminal(workshop, environment, &command).replace("\r\n", "\n")
    };
    assert_eq!(shown(&[("TERM", "xterm")]), expected);
    let plain = printable(&generate(&arguments).stdout).into_owned();
    assert_eq!(shown(&[("TERM", "xterm"), ("NO_COLOR", "1")]), plain);
    assert_eq!(shown(&[("TERM", "dumb")]), plain);
}

#[test]
fn prompts_come_from_files_lines_and_standard_input() {
    let workshop = workshop();
    workshop.write("prompts.txt", "sol mira\nken\n\ntolu vane rasi\n");
    workshop.write(
        "prompts.jsonl",
        "{\"prompt\":\"sol mira\"}\n{\"text\":\"ken\"}\n{\"text\":\"tolu vane rasi\"}\n",
    );
    let flags = ["--greedy", "--new-tokens", "9", "--json"];
    let from =
        |prompts: &str| generate(&[&["f2", "--prompts", prompts], &flags[..]].concat()).stdout;
    let lines = from("prompts.txt");
    assert_eq!(records(&lines).len(), 3);
    assert_eq!(from("prompts.jsonl"), lines);
    let arguments = [&["generate", "f2"], &flags[..]].concat();
    assert_eq!(workshop.f2_with_input(&arguments, &workshop.read("prompts.txt")).stdout, lines);
    let given = ["f2", "--prompt", "sol mira", "--prompt", "ken", "--prompt", "tolu vane rasi"];
    assert_eq!(generate(&[&given[..], &flags].concat()).stdout, lines);
}

/// An expert and an amateur, with greedy decoding, sampling and a beam; log-probabilities are the
/// expert's.
#[test]
fn a_model_is_held_against_an_amateur() {
    let texts = |flags: &[&str]| {
        let common =
            ["f2", "--prompt", "sol mira", "--prompt", "ken", "--new-tokens", "20", "--json"];
        generate(&[&common[..], flags].concat()).stdout
    };
    let held = texts(&["--contrast", "mle"]);
    assert_ne!(held, texts(&["--greedy"]));
    assert_eq!(held, texts(&["--contrast", "mle", "--batch", "1"]));
    // With an alpha of 1 only the most likely token is plausible.
    assert_eq!(texts(&["--contrast", "mle", "--contrast-alpha", "1"]), texts(&["--greedy"]));
    assert_ne!(texts(&["--contrast", "mle", "--top-k", "5"]), texts(&["--top-k", "5"]));
    assert_ne!(texts(&["--contrast", "mle", "--beam", "3"]), texts(&["--beam", "3"]));
    for record in records(&held) {
        let sum = |key: &str| -> f64 {
            record[key].as_array().unwrap().iter().map(|log| log.as_f64().unwrap()).sum()
        };
        assert!(sum("log_probabilities") < sum("class_log_probabilities"));
        assert!(sum("class_log_probabilities") < 0.0);
    }
}

#[test]
fn batch_and_threads_change_nothing() {
    let workshop = workshop();
    workshop.write("many.txt", "sol\nmira ken\ntolu vane rasi sol\nken ken ken\n");
    for strategy in [&["--top-k", "5"][..], &["--top-p", "0.9"], &["--beam", "3"], &["--greedy"]] {
        let flags = ["f2", "--prompts", "many.txt", "--new-tokens", "12", "--json", "-n", "1"];
        let run = |more: &[&str]| generate(&[&flags[..], strategy, more].concat()).stdout;
        let base = run(&[]);
        assert_eq!(run(&["--batch", "1", "--threads", "1"]), base);
        assert_eq!(run(&["--batch", "3"]), base);
    }
}

#[test]
fn joint_with_one_class_is_the_plain_model() {
    let workshop = workshop();
    // The plain model with a single class and an arbitrary class vector.
    let checkpoint = fs::read_dir(workshop.path("mle/checkpoints")).unwrap().next().unwrap();
    let (from, to) = (checkpoint.unwrap().path(), workshop.path("one"));
    fs::create_dir_all(&to).unwrap();
    for name in ["tokenizer.json", "counts.json"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    done(workshop, &["classes", "corpus", "--k", "1", "--out", "one/classes.json"]);
    let shape = fs::read_to_string(from.join("model.json")).unwrap();
    fs::write(to.join("model.json"), shape.replace("\"classes\": 0", "\"classes\": 1")).unwrap();
    fs::write(
        to.join("model.safetensors"),
        with_class(&fs::read(from.join("model.safetensors")).unwrap()),
    )
    .unwrap();
    let texts = |model: &str, flags: &[&str]| -> Vec<Value> {
        let fixed = ["--prompt", "sol", "--prompt", "ken mira", "--top-k", "5", "--json"];
        let run = generate(&[&[model], &fixed[..], flags].concat());
        records(&run.stdout).into_iter().map(|record| record["ids"].clone()).collect()
    };
    let plain = from.display().to_string();
    assert_eq!(texts("one", &["--joint"]), texts(&plain, &[]));
}

/// Appends a class vector of width 24 to a model's tensors.
fn with_class(model: &[u8]) -> Vec<u8> {
    let length = u64::from_le_bytes(model[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&model[8..8 + length]).unwrap();
    let data = &model[8 + length..];
    header["head.classes"] = serde_json::json!({
        "dtype": "F32", "shape": [1, 24], "data_offsets": [data.len(), data.len() + 96],
    });
    let header = header.to_string();
    let class = (0..24).flat_map(|i| (i as f32 * 0.3 - 2.0).to_le_bytes());
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes.extend(class);
    bytes
}

#[test]
fn temperature_zero_is_greedy_and_a_beam_of_one_too() {
    let run = |flags: &[&str]| {
        let fixed = ["f2", "--prompt", "sol mira", "--new-tokens", "15", "--json"];
        generate(&[&fixed[..], flags].concat()).stdout
    };
    let greedy = run(&["--greedy"]);
    assert_eq!(run(&["--temperature", "0"]), greedy);
    assert_eq!(run(&["--beam", "1"]), greedy);
    assert_eq!(run(&["--beam", "4", "--beam-groups", "1"]), run(&["--beam", "4"]));
}

#[test]
fn a_deterministic_text_has_no_seed() {
    let fixed = ["f2", "--prompt", "sol mira", "--new-tokens", "15", "--deterministic", "--json"];
    let run = |flags: &[&str]| generate(&[&fixed[..], flags].concat()).stdout;
    let text = run(&["--top-k", "8"]);
    // The same prompt twice, with another in between and in smaller batches.
    let again = run(&["--top-k", "8", "--prompt", "ken", "--prompt", "sol mira", "--batch", "2"]);
    let lines: Vec<&str> = again.lines().collect();
    let ids = |line: &str| records(line)[0]["ids"].clone();
    assert_eq!(lines.len(), 3);
    assert_eq!([ids(lines[0]), ids(lines[2])], [ids(&text), ids(&text)]);
    assert_ne!(ids(&run(&["--top-k", "8", "--joint"])), ids(&text));
    for contradiction in [&["--seed", "3"][..], &["--greedy"], &["--beam", "2"]] {
        let refused = workshop().f2(&[&["generate"], &fixed[..], contradiction].concat());
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
    }
    let refused = workshop().f2(&[&["generate"], &fixed[..], &["--temperature", "0"]].concat());
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("deterministic: at temperature 0"), "{}", refused.stderr);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_finished() {
    let workshop = workshop();
    let arguments = ["generate", "mle", "--prompt", "sol", "-n", "100000", "--out", "cut.jsonl"];
    let mut child = workshop.start(&[&arguments[..], &["--json"]].concat());
    // A line is printed when a text is finished.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with('{'));
    let rest = std::thread::spawn(move || lines.count());
    let Run { code, stderr: said, .. } = interrupt(child);
    assert_eq!(code, 130, "{said}");
    let kept = records(&workshop.read("cut.jsonl")).len();
    assert!(kept > rest.join().unwrap(), "what was shown is kept");
    assert!(
        said.contains(&format!("stopped after {kept} of 100000 texts; they are saved")),
        "{said}"
    );
    check_that_an_older_file_stays(workshop);
}

/// An existing file is not replaced by a part of the texts.
#[cfg(unix)]
fn check_that_an_older_file_stays(workshop: &Folder) {
    workshop.write("older.jsonl", "older\n");
    let arguments = ["generate", "mle", "--prompt", "sol", "-n", "100000", "--out", "older.jsonl"];
    let mut child = workshop.start(&[&arguments[..], &["--json"]].concat());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with('{'));
    let rest = std::thread::spawn(move || lines.count());
    let Run { code, stderr: said, .. } = interrupt(child);
    rest.join().unwrap();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("older.jsonl is left as it was"), "{said}");
    assert_eq!(workshop.read("older.jsonl"), "older\n");
}
