//! `f2 reproduce` on two corpora, prose and lyrics: the whole paper at a small size.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use f2_engine::Simd;
use f2_experiment::TaskKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use support::{Folder, Run, invented_text};

const TRAINING: &str = r#"
models = ["mle", "face", "unlikelihood", "unlikelihood-sequence", "f2"]

[training]
preset = "demo"
steps = 3
fine_tuning_steps = 2

[training.settings]
"model.layers" = 1
"model.width" = 16
"model.heads" = 2
"model.feed_forward" = 32
"batch.sequence" = 160
"batch.size" = 2
"schedule.warmup_steps" = 1
"#;

const PROSE: &str = r"
[generation]
k = 3
greedy = true
joint = true
authors_program = true
streams = 4
prefix = 8
continuation = 16

[evaluation]
bootstrap = 3
samples = 2
first_samples = 2
";

const LYRICS: &str = r#"
"batch.order" = "documents"
"batch.shortest" = 10

[generation]
k = 20
greedy = true
joint = true
prefix = 8
continuation = 16

[ablation]
methods = ["exact"]
equal_k = [2]

[transfer]
pretraining_steps = 2
steps = 2
"#;

/// Two corpora, a text to pretrain on, and a plan for each corpus.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("prose.txt", invented_text(400));
    folder.write("songs.txt", invented_text(300).replace("ka", "zu"));
    folder.write("news.txt", invented_text(200).replace("lo", "be"));
    folder.write("prose.toml", format!("paper = \"wikitext103\"\nseeds = 2\n{TRAINING}{PROSE}"));
    folder.write("lyrics.toml", format!("paper = \"lyrics\"\n{TRAINING}{LYRICS}"));
    for (text, corpus, more) in
        [("prose.txt", "prose", &[][..]), ("songs.txt", "songs", &["--start-of-text"])]
    {
        let prepare = ["prepare", text, "--vocab-size", "300", "--out", corpus];
        let run = folder.f2(&[&prepare[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    folder
}

fn reproduce(folder: &Folder, more: &[&str]) -> Run {
    let study = ["reproduce", "prose", "songs", "--plan", "prose.toml,lyrics.toml"];
    let rest = ["--pretrain", "news.txt", "--out", "study", "--threads", "1", "--device", "cpu"];
    folder.f2(&[&study[..], &rest[..], more].concat())
}

#[test]
fn two_corpora_make_one_study() {
    let folder = folder();
    let run = reproduce(&folder, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("[prose, 1/") && run.stderr.contains("[songs, 1/"));
    check_results(&folder);
    check_revisions(&folder.path("study/corpora"));

    let again = reproduce(&folder, &[]);
    assert!(!again.stderr.contains("\n$ f2"), "{}", again.stderr);
}

fn check_results(folder: &Folder) {
    let results: Value = serde_json::from_str(&folder.read("study/results.json")).unwrap();
    let [prose, songs] = results["studies"].as_array().unwrap().as_slice() else {
        panic!("{results}")
    };
    for (study, protocol, k) in [(prose, "paper", 3), (songs, "lyrics", 20)] {
        assert_eq!(study["protocol"], protocol);
        assert_eq!(study["scores"][0]["decoding"]["k"], k);
        // The paper's tables have 21 hyperparameters.
        let hyperparameters = study["hyperparameters"].as_object().unwrap();
        assert_eq!(hyperparameters.len(), 21, "{hyperparameters:?}");
        assert_eq!(hyperparameters["top-k"], f64::from(k));
        for run in study["runs"].as_array().unwrap() {
            let cost = &run["cost"];
            for part in ["tokens", "step_seconds", "operations", "wall_seconds"] {
                assert!(cost[part].as_f64().unwrap() > 0.0, "{part}: {cost}");
            }
        }
    }
    assert_eq!(prose["scores"][0]["records"][0]["set"], "prose");
    let seeds = prose["scores"][0]["other_seeds"].as_array().unwrap();
    assert_eq!(seeds.len(), 1);
    assert_eq!((&seeds[0]["seed"], seeds[0]["records"].as_array().unwrap().len()), (&1.into(), 5));
    let decodings = prose["scores"].as_array().unwrap().iter();
    let authors = decodings.filter(|set| set["decoding"]["strategy"] == "authors_program");
    let names: Vec<&Value> = authors.map(|set| &set["records"][0]["name"]).collect();
    assert_eq!(names, ["F²-Softmax, authors' program"]);
    let places = prose["samples"].as_array().unwrap().iter().map(|each| &each["place"]);
    assert_eq!(places.take(2).collect::<Vec<_>>(), [1, 2]);
    assert!(songs["transfer"].is_object() && prose["transfer"].is_null());
    // One text for each document of more than 24 tokens.
    let (long, texts) = (long_documents(folder), &songs["scores"][0]["records"][0]["texts"]);
    assert_eq!(*texts, long);
}

fn long_documents(folder: &Folder) -> usize {
    let corpus = f2_corpus::Corpus::open(&folder.path("songs")).unwrap();
    let test = corpus.shard(f2_corpus::Split::Test).unwrap();
    (0..test.documents()).filter(|&number| test.document(number).len() > 24).count()
}

/// The expected results of one kind of stage, and their revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Golden {
    revision: u32,
    digest: String,
}

/// If results change but their revision does not, results cached by an earlier version would be
/// used as if this version had computed them.
fn check_revisions(corpora: &Path) {
    // On other systems, logarithms and cosines of another library may round a weight differently.
    let same_bits = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if !same_bits || Simd::used() < Simd::Avx2 {
        eprintln!("skipped: the golden results were computed on Linux with AVX2");
        return;
    }
    let found: BTreeMap<String, Golden> = TaskKind::ALL
        .into_iter()
        .map(|kind| {
            let digest = digest(corpora, kind);
            (kind.name().to_owned(), Golden { revision: kind.revision(), digest })
        })
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stage_results.json");
    let golden: BTreeMap<String, Golden> = fs::read_to_string(&path)
        .map_or_else(|_| BTreeMap::new(), |text| serde_json::from_str(&text).unwrap());
    for (kind, found) in &found {
        let same = golden.get(kind).filter(|golden| golden.revision == found.revision);
        assert!(
            same.is_none_or(|golden| golden.digest == found.digest),
            "the results of `{kind}` stages changed: raise its number in TaskKind::revision"
        );
    }
    if env::var_os("F2_UPDATE_GOLDEN").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        return;
    }
    assert_eq!(golden, found, "a revision was raised: run this test with F2_UPDATE_GOLDEN=1");
}

/// A digest of all results of a kind, with numbers rounded to four digits.
fn digest(corpora: &Path, kind: TaskKind) -> String {
    let mut stages: Vec<PathBuf> = ["prose", "songs"]
        .iter()
        .flat_map(|corpus| fs::read_dir(corpora.join(corpus).join("stages")).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    stages.sort();
    let mut hash = Sha256::new();
    for stage in &stages {
        for name in files(kind) {
            if let Ok(content) = fs::read(stage.join(name)) {
                hash.update(rounded(name, &content));
            }
        }
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The files that hold the results of a kind.
fn files(kind: TaskKind) -> &'static [&'static str] {
    match kind {
        TaskKind::Prepare => &["corpus/train.bin", "corpus/test.bin", "corpus/counts.json"],
        TaskKind::Classes => &["classes.json"],
        TaskKind::Train => &["run/events.jsonl"],
        TaskKind::Perplexity => &["perplexity.json"],
        TaskKind::Generate => &["texts.jsonl", "references.jsonl"],
        TaskKind::Score => &["scores.json"],
    }
}

/// JSON without times and with numbers rounded to four digits; other files unchanged.
fn rounded(name: &str, content: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> =
        if name.contains(".jsonl") { text.lines().collect() } else { vec![&text] };
    if !name.contains(".json") {
        return content.to_vec();
    }
    let mut rounded = String::new();
    for line in lines {
        let mut value: Value = serde_json::from_str(line).unwrap();
        round(&mut value);
        rounded += &value.to_string();
    }
    rounded.into_bytes()
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            *value = format!("{:.3e}", number.as_f64().unwrap()).into();
        }
        Value::Array(list) => list.iter_mut().for_each(round),
        Value::Object(fields) => {
            for timed in ["seconds", "step_seconds"] {
                fields.remove(timed);
            }
            fields.values_mut().for_each(round);
        }
        _ => {}
    }
}

#[test]
fn bad_input_is_refused_with_advice() {
    let folder = folder();
    folder.write("short.txt", "a few words\n\n".repeat(200));
    let twice = "[generation]\nprotocol = [\"paper\", \"lyrics\"]\n";
    folder.write("both.toml", format!("{TRAINING}{twice}"));
    folder.write("mixed.toml", format!("paper = \"lyrics\"\n{TRAINING}{PROSE}"));
    folder.write("never.toml", format!("seeds = 0\n{TRAINING}{PROSE}"));
    folder.write("long.txt", "one document of many words ".repeat(60));
    let one =
        "prepare --train prose.txt --valid prose.txt --test long.txt --vocab-size 300 --out one";
    let short =
        "prepare --train prose.txt --valid prose.txt --test short.txt --vocab-size 300 --out short";
    fs::create_dir(folder.path("other")).unwrap();
    let same = "prepare songs.txt --vocab-size 300 --out other/prose";
    for case in [one, short, same] {
        let run = folder.f2(&case.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{case}: {}", run.stderr);
    }
    let cases = [
        "reproduce short --out x --plan lyrics.toml --device cpu",
        "reproduce one --out x --plan lyrics.toml --device cpu",
        "reproduce prose --out x --plan both.toml",
        "reproduce prose --out x --plan mixed.toml",
        "reproduce prose --out x --plan never.toml",
        "reproduce prose songs.txt --out x --plan prose.toml",
        "reproduce prose songs --out x --plan prose.toml,lyrics.toml,prose.toml",
        "reproduce prose.txt songs.txt --out x --plan prose.toml,lyrics.toml",
        "reproduce prose other/prose --out x --plan prose.toml",
        "reproduce prose --out x --plan lyrics.toml --pretrain prose --pretrain songs",
    ];
    let said = cases.map(|case| {
        let run = folder.f2(&case.split(' ').collect::<Vec<_>>());
        let errors = run.stderr.lines().skip_while(|line| !line.starts_with("error"));
        format!("$ f2 {case}\nexit code {}\n{}", run.code, errors.collect::<Vec<_>>().join("\n"))
    });
    insta::assert_snapshot!(said.join("\n\n"));
    assert!(!folder.path("x").exists());
}

#[test]
fn a_dry_run_of_a_prepared_corpus_tells_time_and_memory() {
    let folder = folder();
    let run = reproduce(&folder, &["--dry-run", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(told["training_bytes"].as_u64().unwrap() > 100_000, "{told}");
    let stages = told["stages"].as_array().unwrap();
    let of = |corpus: &str, name: &str| {
        let same = |stage: &&Value| stage["corpus"] == corpus && stage["stage"] == name;
        stages.iter().find(same).unwrap()["estimated_seconds"].as_f64().unwrap()
    };
    assert!(of("prose", "train-mle") > 0.0 && of("songs", "train-f2") > 0.0);
    assert!(!folder.path("study").exists());
}
