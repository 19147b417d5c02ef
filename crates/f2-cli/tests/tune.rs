//! `f2 tune`, and the `decoding.toml` it writes for a model, from the command line.

mod support;

use std::fs;

use serde_json::{Value, json};
use support::server::{Server, done, workshop};
use support::{Folder, Run, interrupt, wait_for};

/// Texts of a few tokens, so that each setting is tried quickly.
const SMALL: [&str; 7] = [
    "--corpus",
    "corpus",
    "--prefix=6",
    "--continuation=12",
    "--texts=24",
    "--streams=24",
    "--json",
];

fn tune(model: &str, more: &[&str]) -> Run {
    workshop().f2(&[&["tune", model], &SMALL[..], more].concat())
}

fn json(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Copies a model into a folder with this `decoding.toml`; returns the copy's path.
fn decoded(folder: &Folder, decoding: &str) -> String {
    let best = fs::read_dir(workshop().path("f2/checkpoints")).unwrap().next().unwrap().unwrap();
    let to = folder.path("model");
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(best.path()).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    fs::write(to.join("decoding.toml"), decoding).unwrap();
    to.display().to_string()
}

fn texts(model: &str, flags: &[&str]) -> String {
    let common = ["--prompt", "misen", "--new-tokens", "30", "-n", "3", "--json"];
    done(workshop(), &[&["generate", model], &common[..], flags].concat())
}

#[test]
fn a_search_chooses_tests_and_writes_its_choice() {
    for (model, classes) in [("f2", true), ("mle", false)] {
        let out = format!("tuned-{model}");
        let run = tune(model, &["--trials", "14", "--out", &out]);
        let record = json(&run);
        let trials = record["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 14, "{}", run.stderr);
        assert_eq!(trials[0]["decoding"], json!({ "temperature": 1.0, "top_k": 3 }));
        let chosen = &trials[record["chosen"].as_u64().unwrap() as usize];
        let distance = |trial: &Value| trial["distance"].as_f64().unwrap();
        let whole = trials.iter().filter(|trial| trial["texts"] == 24);
        let least = whole.map(distance).fold(f64::INFINITY, f64::min);
        assert_eq!(distance(chosen), least);
        assert!(least <= distance(&trials[0]));
        let drawn = trials.iter().any(|trial| trial["decoding"]["class_temperature"].is_number());
        assert_eq!(drawn, classes, "{model}");
        // The test's results have the fields that the benchmark script reads.
        let test = &record["test"];
        assert_eq!(test["tuned"]["decoding"], chosen["decoding"]);
        for part in ["untuned", "tuned"] {
            assert_eq!(test[part]["halves"]["ms_jaccard"].as_array().unwrap().len(), 3);
            assert!(test[part]["distance"].is_number() && test[part]["metrics"]["rep"].is_number());
        }
        assert!(test["human"]["intervals"]["self_bleu"][0].is_array());
        assert!(test["target"]["kld"].is_number() && record["spread"]["uniq"].is_number());
        // The files contain the same.
        let folder = workshop().path(&out);
        let saved: Value =
            serde_json::from_slice(&fs::read(folder.join("tune.json")).unwrap()).unwrap();
        assert_eq!(saved, record);
        assert!(fs::read_to_string(folder.join("tune.svg")).unwrap().contains("frontier"));
        let decoding = fs::read_to_string(folder.join("decoding.toml")).unwrap();
        assert!(decoding.starts_with("# How texts are written"), "{decoding}");
        for (key, value) in chosen["decoding"].as_object().unwrap() {
            let number = value.as_f64().unwrap();
            let line =
                decoding.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
            assert_eq!(line.split(" = ").nth(1).unwrap().parse::<f64>().unwrap(), number);
        }
    }
}

#[test]
fn the_same_trials_give_the_same_choice_and_a_longer_search_goes_on() {
    let strip = |mut record: Value| {
        for trial in record["trials"].as_array_mut().unwrap() {
            trial["seconds"] = Value::Null;
        }
        record
    };
    let short = json(&tune("f2", &["--trials", "5", "--out", "again-a"]));
    let long = json(&tune("f2", &["--trials", "9", "--out", "again-a"]));
    let other = json(&tune("f2", &["--trials", "5", "--out", "again-b"]));
    assert_eq!(strip(short.clone()), strip(other));
    let of = |record: &Value| record["trials"].as_array().unwrap().clone();
    assert_eq!(of(&long)[..5], of(&short)[..]);
    assert!(of(&long).len() > 5);
    // Searches with and without the growth of k have the first setting in common.
    let more = ["--trials", "9", "--out", "again-d", "--k-per-class"];
    let grown = json(&tune("f2", &more));
    assert_eq!(of(&grown)[0]["decoding"], of(&short)[0]["decoding"]);
    let has_growth = |trial: &Value| trial["decoding"]["top_k_growth"].is_number();
    assert!(of(&grown).iter().any(has_growth) && !of(&long).iter().any(has_growth));
    for (out, more) in [("again-a", &["--k-per-class"][..]), ("again-d", &[])] {
        let refused = tune("f2", &[&["--trials", "9", "--out", out], more].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("records another search, with "), "{}", refused.stderr);
    }
    // Another seed is another search.
    let seeded = json(&tune("f2", &["--trials", "5", "--out", "again-c", "--seed", "2"]));
    assert_ne!(of(&seeded), of(&short));
}

#[test]
fn a_search_does_not_replace_another_ones_record() {
    json(&tune("f2", &["--trials", "3", "--out", "kept"]));
    let files =
        || ["tune.json", "decoding.toml"].map(|name| workshop().read(&format!("kept/{name}")));
    let before = files();
    for (flag, value, difference) in [
        ("--seed", "2", "with another seed"),
        ("--texts", "20", "on other texts"),
        ("--continuation", "11", "on other texts"),
    ] {
        let arguments: Vec<&str> =
            SMALL.into_iter().filter(|other| !other.starts_with(flag)).collect();
        let more = ["--trials", "3", "--out", "kept", flag, value];
        let refused = workshop().f2(&[&["tune", "f2"], &arguments[..], &more].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        let words = format!("kept/tune.json records another search, {difference}");
        assert!(refused.stderr.contains(&words), "{}", refused.stderr);
        assert!(refused.stderr.contains("--out"), "{}", refused.stderr);
        assert_eq!(files(), before);
    }
}

#[test]
fn two_searches_do_not_share_a_folder() {
    fs::create_dir_all(workshop().path("shared")).unwrap();
    let lock = f2_files::Lock::beside(&workshop().path("shared/tune.json")).unwrap();
    let refused = tune("f2", &["--trials", "3", "--out", "shared"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let holder = format!("shared/tune.json is in use by process {} on ", std::process::id());
    assert!(refused.stderr.contains(&holder), "{}", refused.stderr);
    drop(lock);
    json(&tune("f2", &["--trials", "3", "--out", "shared"]));
    let mut names: Vec<_> = fs::read_dir(workshop().path("shared")).unwrap().collect();
    names.retain(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn an_interrupted_search_keeps_its_best_and_goes_on() {
    let arguments =
        [&["tune", "f2"], &SMALL[..], &["--trials", "100000", "--out", "stopped"]].concat();
    let child = workshop().start(&arguments);
    let record = workshop().path("stopped/tune.json");
    let tried = || {
        let text = fs::read(&record).ok();
        text.and_then(|text| serde_json::from_slice::<Value>(&text).ok())
            .map_or(0, |record| record["trials"].as_array().unwrap().len())
    };
    wait_for(|| tried() >= 4);
    let stopped = interrupt(child);
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("the best so far is written"), "{}", stopped.stderr);
    assert!(workshop().path("stopped/decoding.toml").exists());
    let (before, record): (usize, Value) =
        (tried(), serde_json::from_str(&stopped.stdout).unwrap());
    assert!(record["test"].is_null());
    let resumed = tune("f2", &["--trials", "3", "--out", "stopped"]);
    assert!(
        resumed.stderr.contains(&format!("continuing from {before} settings")),
        "{}",
        resumed.stderr
    );
    assert!(json(&resumed)["test"].is_object());
}

#[test]
fn a_damaged_record_is_refused() {
    let tune = || tune("f2", &["--trials", "3", "--out", "damaged"]);
    let whole = json(&tune());
    for (damage, reason) in [
        (json!({ "chosen": 99 }), "it names trial 99, counted from 0, and has 3 trials"),
        (json!({ "frontier": [0, 3] }), "it names trial 3, counted from 0, and has 3 trials"),
        (json!({ "seconds": -1.5 }), "trial 1, counted from 0, has -1.5 for seconds or a distance"),
        (json!({ "distance": -2.0 }), "trial 1, counted from 0, has -2 for seconds or a distance"),
    ] {
        let mut record = whole.clone();
        for (key, value) in damage.as_object().unwrap() {
            let to = if whole.get(key).is_some() { &mut record } else { &mut record["trials"][1] };
            to[key] = value.clone();
        }
        workshop().write("damaged/tune.json", record.to_string());
        let refused = tune();
        assert_eq!(refused.code, 3, "{damage}: {}", refused.stderr);
        let words = format!("damaged/tune.json is no record of `f2 tune`: {reason}");
        assert!(refused.stderr.contains(&words), "{}", refused.stderr);
        assert!(refused.stderr.contains("write elsewhere with `--out`"), "{}", refused.stderr);
    }
}

#[test]
fn generate_follows_the_file_and_flags_win() {
    let folder = Folder::new();
    let model = decoded(&folder, "class_temperature = 0.4\ntop_p = 0.6\n");
    let plain = ["--decoding", "none"];
    let tuned = texts(&model, &[]);
    let flags = ["--class-temperature", "0.4", "--top-p", "0.6"];
    assert_eq!(tuned, texts(&model, &[&plain[..], &flags].concat()));
    assert_ne!(tuned, texts(&model, &plain));
    // A flag changes one key only; greedy decoding uses neither.
    let hotter = texts(&model, &["--class-temperature", "1.3"]);
    assert_eq!(
        hotter,
        texts(&model, &["--decoding", "none", "--class-temperature", "1.3", "--top-p", "0.6"])
    );
    assert_eq!(texts(&model, &["--greedy"]), texts(&model, &["--decoding", "none", "--greedy"]));
    assert_eq!(
        texts(&model, &["--joint"]),
        texts(&model, &["--decoding", "none", "--joint", "--top-p", "0.6"])
    );
    assert_eq!(
        texts(&model, &["--beam", "3"]),
        texts(&model, &["--decoding", "none", "--beam", "3"])
    );
    // A file given by the flag.
    folder.write("other.toml", "top_k = 2\n");
    let other = folder.path("other.toml").display().to_string();
    assert_eq!(
        texts(&model, &["--decoding", &other]),
        texts(&model, &["--decoding", "none", "--top-k", "2"])
    );
}

#[test]
fn the_growth_of_k_goes_with_the_k() {
    let folder = Folder::new();
    let model = decoded(&folder, "top_k = 2\ntop_k_growth = 0.6\n");
    let none = |flags: &[&str]| texts(&model, &[&["--decoding", "none"], flags].concat());
    let growth = ["--top-k-growth", "0.6"];
    let tuned = texts(&model, &[]);
    assert_eq!(tuned, none(&[&["--top-k", "2"], &growth[..]].concat()));
    assert_ne!(tuned, none(&["--top-k", "2"]));
    assert_eq!(texts(&model, &["--top-k-growth", "0"]), none(&["--top-k", "2"]));
    assert_eq!(texts(&model, &["--top-k", "1"]), none(&[&["--top-k", "1"], &growth[..]].concat()));
    // Without a k the growth is ignored, not refused.
    for flags in [&["--mirostat-tau", "3"][..], &["--greedy"], &["--beam", "3"]] {
        assert_eq!(texts(&model, flags), none(flags), "{flags:?}");
    }
    assert_eq!(texts(&model, &["--joint"]), none(&["--joint", "--top-k", "2"]));
    // The paper's k, if none is given.
    assert_eq!(none(&growth), none(&[&["--top-k", "3"], &growth[..]].concat()));
    assert_eq!(none(&["--top-k-growth", "0"]), none(&[]));
    let server = Server::start(workshop(), &[&format!("m={model}")]);
    let text = |mut body: Value| {
        (body["prompt"], body["max_tokens"], body["seed"]) = (json!("misen"), json!(30), json!(1));
        server.complete(&body)["choices"][0]["text"].clone()
    };
    let given = json!({ "decoding": "none", "top_k": 2, "top_k_growth": 0.6 });
    assert_eq!(text(json!({})), text(given));
    assert_eq!(text(json!({ "top_k": 0 })), text(json!({ "decoding": "none" })));
}

#[test]
fn the_server_follows_the_file_and_fields_win() {
    let folder = Folder::new();
    let model = decoded(&folder, "class_temperature = 0.4\ntop_k = 2\nmin_p = 0.2\n");
    let server = Server::start(workshop(), &[&format!("m={model}")]);
    let text = |fields: Value| {
        let mut body =
            json!({ "prompt": "misen", "max_tokens": 30, "seed": 1, "ignore_eos": true });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.complete(&body)["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let tuned = json!({ "decoding": "none", "class_temperature": 0.4, "top_k": 2, "min_p": 0.2 });
    assert_eq!(text(json!({})), text(tuned));
    let wider = json!({ "decoding": "none", "class_temperature": 0.4, "min_p": 0.2 });
    assert_eq!(text(json!({ "top_k": 0 })), text(wider));
    assert_eq!(
        text(json!({ "temperature": 0 })),
        text(json!({ "decoding": "none", "temperature": 0 }))
    );
    assert_ne!(text(json!({})), text(json!({ "decoding": "none" })));
}

#[test]
fn an_exported_model_is_decoded_as_tuned() {
    let folder = Folder::new();
    let model = decoded(&folder, "temperature = 1.1\nclass_temperature = 0.9\ntop_p = 0.8\n");
    let out = folder.path("exported").display().to_string();
    done(workshop(), &["export", &model, "--out", &out]);
    let config: Value =
        serde_json::from_str(&folder.read("exported/generation_config.json")).unwrap();
    let expected = json!({ "do_sample": true, "temperature": 1.1, "top_k": 0, "top_p": 0.8,
        "class_temperature": 0.9, "class_top_p": 1.0 });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&config[key], value, "{key}");
    }
    let card = folder.read("exported/README.md");
    assert!(card.contains("class_temperature 0.9, temperature 1.1, top_p 0.8"), "{card}");
    assert!(card.contains("model.generate(ids, max_new_tokens=20)"), "{card}");
    let out = folder.path("plain").display().to_string();
    done(workshop(), &["export", &model, "--out", &out, "--decoding", "none"]);
    assert!(!folder.read("plain/generation_config.json").contains("do_sample"));
}

#[test]
fn mistakes_are_refused_with_advice() {
    let folder = Folder::new();
    let model = decoded(&folder, "top_k = 3\ntop_q = 0.5\n");
    let shown = |run: &Run, what: &str| {
        assert_ne!(run.code, 0, "{what}");
        let here = folder.path("").display().to_string();
        format!(
            "[{what}: exit code {}]\n{}",
            run.code,
            run.stderr.replace(&here, "HERE/").replace("HERE//", "HERE/")
        )
    };
    let f2 = |arguments: &[&str]| workshop().f2(arguments);
    let refused = [
        shown(&f2(&["generate", &model, "--prompt", "vor"]), "unknown key"),
        shown(&tune("f2", &["--budget", "0"]), "no budget"),
        shown(&tune("f2", &["--trials", "0"]), "no trials"),
        shown(&tune("mle", &["--k-per-class"]), "no classes"),
        shown(&f2(&["tune", "f2", "--corpus", "corpus", "--continuation", "9000"]), "short split"),
        shown(&f2(&["tune", "nowhere", "--corpus", "corpus"]), "no model"),
        shown(&f2(&["tune", "f2", "--corpus", "nowhere"]), "no corpus"),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}
