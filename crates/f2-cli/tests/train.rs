//! `f2 train` from the command line: the files it writes, interruption, and errors.

mod support;

use std::fs;

use support::workshop::{Workshop, newest, tensors};
use support::{Run, interrupt, invented_text, wait_for};

#[test]
fn a_run_leaves_all_that_is_needed() {
    let workshop = Workshop::new();
    for objective in ["mle", "f2"] {
        let arguments = ["--out", objective, "--objective", objective, "--steps", "40", "--json"];
        let trained = workshop.train(&arguments);
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        let result: serde_json::Value = serde_json::from_str(&trained.stdout).unwrap();
        assert_eq!((&result["step"], &result["tokens"]), (&40.into(), &(40 * 4 * 16).into()));
        // Far below the 300 of a model that has learned nothing.
        assert!(result["best"]["perplexity"].as_f64().unwrap() < 150.0, "{result}");
        let run = workshop.path(objective);
        for file in ["config.toml", "manifest.json", "events.jsonl", "loss.svg", "tensorboard"] {
            assert!(run.join(file).exists(), "{file}");
        }
        let checkpoint = run.join("checkpoints/step-40");
        for file in ["model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.json"] {
            assert!(checkpoint.join(file).exists(), "{file}");
        }
        assert_eq!(checkpoint.join("classes.json").exists(), objective == "f2");
    }
}

#[test]
fn killed_at_any_moment_it_goes_on_bit_for_bit() {
    let workshop = Workshop::new();
    let whole = workshop.train(&["--out", "whole", "--steps", "60"]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let arguments =
        ["train", "corpus", "--config", "small.toml", "--out", "killed", "--steps", "60"];
    let mut child = workshop.0.start(&arguments);
    let killed = workshop.path("killed");
    // Before the first checkpoint, then twice between checkpoints or while one is written.
    for life in 0..3 {
        wait_for(|| {
            let began = killed.join("events.jsonl").exists();
            let begun_or_saved = if life == 0 { began } else { newest(&killed) >= Some(12 * life) };
            begun_or_saved || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(life > 1 || newest(&killed) < Some(60), "it was over before it could be killed");
        child = workshop.0.start(&["train", "--resume", "killed"]);
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(tensors(&workshop.path("whole"), 60), tensors(&killed, 60));
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let workshop = Workshop::new();
    let arguments =
        ["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "1000000"];
    let child = workshop.0.start(&arguments);
    wait_for(|| newest(&workshop.path("run")).is_some());
    let Run { code, stderr: said, .. } = interrupt(child);
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("everything is saved"), "{said}");
    assert!(said.contains("resume with `f2 train --resume run`"), "{said}");
    let step = newest(&workshop.path("run")).unwrap().to_string();
    assert!(said.contains(&format!("stopped after step {step};")), "{said}");
}

#[test]
fn a_dry_run_counts_the_papers_parameters() {
    let workshop = Workshop::new();
    let arguments =
        ["train", "--preset", "wikitext103", "--objective", "mle", "--dry-run", "--json"];
    let output = workshop.0.f2(&arguments);
    let plan: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(plan["parameters"], 69_073_920);
    assert_eq!(plan["tokens_per_step"], 8_192);
    let output = workshop.train(&["--dry-run", "--epochs", "2"]);
    let said = output.stdout;
    assert!(said.starts_with("objective: f2, vocabulary 300"), "{said}");
    assert!(said.contains("whole run: "), "{said}");
    assert!(!workshop.path("run").exists());
}

#[test]
fn mistakes_are_reported_with_advice() {
    let workshop = Workshop::new();
    workshop.0.write("typo.toml", "[model]\nlayers = 2\n\n[optimiser]\nlearning_rat = 1\n");
    workshop.0.write("short.txt", invented_text(50));
    workshop.prepare("short.txt", "short");
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run"];
    let with = |more: &[&'static str]| [&train, more].concat();
    let refused = [
        workshop.refusal(&["train", "corpus", "--out", "run", "--config", "typo.toml"]),
        workshop.refusal(&["train", "corpus", "--out", "run", "--config", "absent.toml"]),
        workshop.refusal(&with(&["--set", "model.depth=3"])),
        workshop.refusal(&with(&["--set", "model.layers"])),
        workshop.refusal(&with(&["--set", "model.layers=many"])),
        workshop.refusal(&train),
        workshop.refusal(&with(&["--steps", "9", "--set", "model.vocabulary=500"])),
        workshop.refusal(&with(&["--steps", "9", "--set", "batch.sequence=9000000"])),
        workshop.refusal(&with(&["--steps", "9", "--classes", "absent.json"])),
        workshop.refusal(&with(&[
            "--steps",
            "9",
            "--objective",
            "mle",
            "--classes",
            "absent.json",
        ])),
        workshop.refusal(&["train", "absent", "--out", "run", "--steps", "9"]),
        workshop.refusal(&["train", "corpus", "--out", "corpus", "--steps", "9"]),
        workshop.refusal(&with(&["--max-minutes", "-1"])),
        workshop.refusal(&with(&["--epochs", "nan"])),
        workshop.refusal(&["train", "--resume", "corpus"]),
        workshop.refusal(&["train", "--dry-run"]),
    ];
    assert!(refused.iter().all(|refused| refused.contains("\n  help: ")));
    insta::assert_snapshot!(refused.join("\n"));
    assert!(!workshop.path("run").exists());
    let mismatch = workshop.refusal(&with(&["--steps", "9", "--classes", "short/classes.json"]));
    let hashes = mismatch.split(' ').filter(|word| word.trim_end_matches(',').trim().len() == 64);
    assert_eq!(hashes.count(), 2, "{mismatch}");
    let memory = ["--steps", "9", "--set", "model.layers=4000", "--set", "model.width=65536"];
    let memory = workshop.refusal(&with(&memory));
    assert!(memory.contains("[exit code 4]") && memory.contains("GB are available"), "{memory}");
}

#[test]
fn fine_tuning_starts_from_a_trained_model() {
    let workshop = Workshop::new();
    let small = ["--set", "unlikelihood.prefix=4", "--set", "unlikelihood.continuation=8"];
    for (objective, from) in
        [("mle", None), ("face", Some("mle")), ("unlikelihood-sequence", Some("mle"))]
    {
        let arguments = ["--objective", objective, "--out", objective, "--steps", "8", "--json"];
        let mut arguments = [&arguments[..], &small].concat();
        let trained = match from {
            // Only the model is given: its settings are used.
            Some(from) => {
                arguments.extend(["--init", from]);
                workshop.0.f2(&[&["train", "corpus"], &arguments[..]].concat())
            }
            None => workshop.train(&arguments),
        };
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        let config = workshop.0.read(&format!("{objective}/config.toml"));
        let rate =
            if from.is_some() { "learning_rate = 0.001\n" } else { "learning_rate = 0.01\n" };
        assert!(config.contains(rate) && config.contains("width = 24\n"), "{config}");
        let manifest: serde_json::Value =
            serde_json::from_str(&workshop.0.read(&format!("{objective}/manifest.json"))).unwrap();
        assert_eq!(manifest["initial"]["sha256"].is_string(), from.is_some());
        assert_eq!(newest(&workshop.path(objective)), Some(8));
    }
    let dry = ["train", "corpus", "--objective", "face", "--init", "mle", "--dry-run", "--json"];
    let plan: serde_json::Value = serde_json::from_str(&workshop.0.f2(&dry).stdout).unwrap();
    assert_eq!(plan["steps"], 1_500);
    check_refusals(&workshop);
    check_a_start_that_was_killed(&workshop);
}

/// A model must not unlearn to end its texts: end-of-text tokens are targets but never counted.
#[test]
fn face_counts_every_target_but_the_end_of_a_text() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--objective", "mle", "--out", "mle", "--steps", "2"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let face = ["--objective", "face", "--set", "face.variant=gpr", "--init", "mle"];
    let tuned = workshop.train(&[&face[..], &["--out", "face", "--steps", "5"]].concat());
    assert_eq!(tuned.code, 0, "{}", tuned.stderr);
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&workshop.0.read(&format!("face/checkpoints/step-5/{name}"))).unwrap()
    };
    let end = read("tokenizer.json")["added_tokens"][0]["id"].as_u64().unwrap() as usize;
    let targets = read("counts.json")["counts"][end].as_u64().unwrap();
    assert!(targets > 500, "{targets}");
    let counts = read("state.json")["objective"]["counts"].as_str().unwrap().to_owned();
    let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    let counted: u64 = counts.iter().sum();
    assert_eq!(counts[end], 0);
    assert!((240..5 * 4 * 16).contains(&counted), "{counted}");
}

fn check_refusals(workshop: &Workshop) {
    workshop.0.write("other.txt", invented_text(75));
    workshop.prepare("other.txt", "other");
    let f2 = workshop.train(&["--objective", "f2", "--out", "f2", "--steps", "2"]);
    assert_eq!(f2.code, 0, "{}", f2.stderr);
    let face = ["train", "corpus", "--objective", "face", "--out", "refused"];
    let sequence = [
        "train",
        "corpus",
        "--objective",
        "unlikelihood-sequence",
        "--out",
        "refused",
        "--init",
        "mle",
    ];
    let with = |base: &[&'static str], more: &[&'static str]| [base, more].concat();
    let refused = [
        workshop.refusal(&face),
        workshop.refusal(&with(&face, &["--init", "corpus"])),
        workshop.refusal(&with(&face, &["--init", "mle", "--set", "model.width=48"])),
        workshop.refusal(&with(&face, &["--init", "mle", "--set", "batch.sequence=32"])),
        workshop.refusal(&with(&face, &["--init", "f2"])),
        workshop.refusal(&[
            "train",
            "other",
            "--objective",
            "face",
            "--out",
            "refused",
            "--init",
            "mle",
        ]),
        workshop.refusal(&with(&sequence, &["--set", "unlikelihood.continuation=13"])),
        workshop.refusal(&with(&sequence, &["--set", "unlikelihood.ngram=0"])),
        workshop.refusal(&with(&face, &["--init", "mle", "--resume", "mle"])),
    ];
    insta::assert_snapshot!("fine_tuning_refused", refused.join("\n"));
    assert!(!workshop.path("refused").exists());
}

/// A run killed before its first checkpoint starts again from the same model, or is refused.
fn check_a_start_that_was_killed(workshop: &Workshop) {
    let whole = workshop.path("face/checkpoints/step-8/model.safetensors");
    let expected = fs::read(&whole).unwrap();
    fs::remove_dir_all(workshop.path("face/checkpoints")).unwrap();
    fs::create_dir(workshop.path("face/checkpoints")).unwrap();
    let resumed = workshop.0.f2(&["train", "--resume", "face"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(fs::read(&whole).unwrap() == expected);
    fs::remove_dir_all(workshop.path("face/checkpoints")).unwrap();
    let manifest = workshop.0.read("face/manifest.json");
    let value: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let sha256 = value["initial"]["sha256"].as_str().unwrap();
    workshop.0.write("face/manifest.json", manifest.replace(sha256, "0000"));
    let refused = workshop.refusal(&["train", "--resume", "face"]);
    assert!(refused.contains("[exit code 3]") && refused.contains("not 0000"), "{refused}");
}

#[test]
fn a_resumed_run_is_guarded() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "run", "--steps", "6"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "6"];
    let refused = [
        workshop.refusal(&train),
        workshop.refusal(&["train", "--resume", "run", "--steps", "9", "--seed", "3"]),
        workshop.refusal(&["train", "--resume", "run", "--set", "model.layers=3"]),
    ];
    insta::assert_snapshot!(refused.join("\n"));
    let longer = workshop.0.f2(&["train", "--resume", "run", "--steps", "9", "--allow", "budget"]);
    assert_eq!(longer.code, 0, "{}", longer.stderr);
    assert_eq!(newest(&workshop.path("run")), Some(9));
    let model = workshop.path("run/checkpoints/step-9/model.safetensors");
    let bytes = fs::read(&model).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    let arguments = ["train", "--resume", "run", "--steps", "12", "--allow", "budget"];
    let truncated = workshop.refusal(&arguments);
    assert!(truncated.contains("[exit code 3]"), "{truncated}");
    assert!(truncated.contains("step-9/model.safetensors cannot be used: it has"), "{truncated}");
}

/// File names need not be valid UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn folders_may_have_names_that_are_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let workshop = Workshop::new();
    let [corpus, run] = [&b"c\xffrpus"[..], b"r\xfen"].map(OsStr::from_bytes);
    fs::rename(workshop.path("corpus"), workshop.path("").join(corpus)).unwrap();
    let f2 = |arguments: &[&OsStr]| -> i32 {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_f2"));
        command.args(arguments).current_dir(workshop.path(""));
        command.output().unwrap().status.code().unwrap()
    };
    let words = |text: &'static str| text.split(' ').map(OsStr::new).collect::<Vec<_>>();
    let train = [&[OsStr::new("train"), corpus, OsStr::new("--out"), run][..]].concat();
    let settings = words("--config small.toml --steps 3 --json");
    assert_eq!(f2(&[&train[..], &settings].concat()), 0);
    let resume = [OsStr::new("train"), OsStr::new("--resume"), run];
    // The corpus is found again by the name in the manifest.
    assert_eq!(f2(&[&resume[..], &words("--steps 5 --allow budget")].concat()), 0);
    assert_eq!(newest(&workshop.path("").join(run)), Some(5));
}

#[test]
fn too_many_threads_are_refused_and_none_is_survived() {
    let workshop = Workshop::new();
    let train = ["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "2"];
    let refused = workshop.0.f2(&[&train[..], &["--threads", "1000000"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("at most 4096"), "{}", refused.stderr);
    // No address space has room for such a stack, so no thread can be started.
    let none = [("RUST_MIN_STACK", "281474976710656")];
    let refused = workshop.0.f2_with(&[&train[..], &["--threads", "2"]].concat(), &none);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("cannot start 2 threads"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`--threads 1`"), "{}", refused.stderr);
    let alone = workshop.0.f2_with(&[&train[..], &["--threads", "1"]].concat(), &none);
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    for command in [&["serve", "run", "--port", "0"][..], &["generate", "run", "--interactive"]] {
        let refused = workshop.0.f2_with(&[command, &["--threads", "1"]].concat(), &none);
        assert_eq!(refused.code, 4, "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("error: cannot start a thread "), "{}", refused.stderr);
        assert!(refused.stderr.contains("help: end other programs"), "{}", refused.stderr);
    }
    let prepare = ["prepare", "text.txt", "--out", "again", "--documents", "lines"];
    let prepare = [&prepare[..], &["--vocab-size", "300", "--end-of-text"]].concat();
    for command in [&prepare[..], &["classes", "again"]] {
        let done = workshop.0.f2_with(command, &none);
        assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
    }
    let text = |corpus: &str| fs::read(workshop.path(corpus).join("train.bin")).unwrap();
    assert!(text("again") == text("corpus"), "threads change nothing");
}

#[cfg(unix)]
#[test]
fn files_have_the_permissions_that_the_umask_leaves() {
    use std::os::unix::fs::PermissionsExt as _;
    let workshop = Workshop::new();
    let trained = std::process::Command::new("sh")
        .args(["-c", "umask 027; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_f2")])
        .args(["train", "corpus", "--config", "small.toml", "--out", "run", "--steps", "2"])
        .current_dir(workshop.path(""))
        .output()
        .unwrap();
    assert!(trained.status.success());
    for entry in fs::read_dir(workshop.path("run/checkpoints/step-2")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{}", entry.path().display());
    }
}

#[test]
fn the_settings_in_force_are_shown_with_their_origin() {
    let workshop = Workshop::new();
    let show = ["train", "--preset", "demo", "--config", "small.toml", "--show-config"];
    let flags = ["--seed", "18446744073709551615", "--set", "model.layers=6"];
    let shown = workshop.0.f2(&[&show[..], &flags].concat());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let has = |line: &str, origin: &str| {
        shown.stdout.lines().any(|it| it.starts_with(line) && it.ends_with(&format!("# {origin}")))
    };
    assert!(has("layers = 6 ", "--set model.layers=6"), "{}", shown.stdout);
    assert!(has("width = 24 ", "small.toml, line 3"), "{}", shown.stdout);
    assert!(has("max_tokens = 65536 ", "preset demo"), "{}", shown.stdout);
    assert!(has("beta1 = 0.9 ", "default"), "{}", shown.stdout);
    // The output is a valid settings file with the same settings.
    workshop.0.write("shown.toml", &shown.stdout);
    let again = workshop.0.f2(&["train", "--config", "shown.toml", "--show-config"]);
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(values(&again.stdout), values(&shown.stdout));
    let trained = workshop.0.f2(&[
        "train",
        "corpus",
        "--config",
        "shown.toml",
        "--out",
        "run",
        "--steps",
        "2",
    ]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    assert!(workshop.0.read("run/config.toml").contains("seed = \"18446744073709551615\""));
    assert_eq!(workshop.0.f2(&["train", "--resume", "run"]).code, 0);
}

#[test]
fn a_warm_up_longer_than_the_run_is_warned_of() {
    let workshop = Workshop::new();
    let warned = "warning: the warm-up takes 5 steps, the whole run 4";
    for (steps, long) in [("4", true), ("5", false)] {
        let said = workshop.train(&["--out", steps, "--steps", steps]).stderr;
        assert_eq!(said.contains(warned), long, "{said}");
    }
    let said = workshop.train(&["--dry-run", "--steps", "4"]).stderr;
    assert!(said.contains(warned), "{said}");
}

#[test]
fn a_preset_that_does_not_fit_the_initial_model_is_what_advice_names() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "mle", "--objective", "mle", "--steps", "2"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let tuned = ["train", "corpus", "--init", "mle", "--preset", "demo", "--out", "run"];
    let refused = workshop.0.f2(&[&tuned[..], &["--objective", "mle"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("help: leave `--preset demo` out"), "{}", refused.stderr);
}

/// A model trained on single documents is scored on single documents: in training, by
/// `f2 perplexity`, and after its checkpoint has been copied elsewhere.
#[test]
fn a_model_of_documents_is_scored_document_by_document() {
    let workshop = Workshop::new();
    let documents = ["--set", "batch.order=documents", "--set", "batch.shortest=12"];
    let run = ["--objective", "mle", "--steps", "20", "--out", "run", "--json"];
    let trained = workshop.train(&[&documents[..], &run].concat());
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let result: serde_json::Value = serde_json::from_str(&trained.stdout).unwrap();
    let perplexity = |model: &str| -> serde_json::Value {
        let scored = workshop.0.f2(&["perplexity", model, "corpus", "--split", "valid", "--json"]);
        assert_eq!(scored.code, 0, "{}", scored.stderr);
        serde_json::from_str(&scored.stdout).unwrap()
    };
    let report = perplexity("run");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let (found, expected) =
        (number(&report["token_perplexity"]), number(&result["best"]["perplexity"]));
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} is not {expected}");
    assert_eq!(report["shortest_document"], 12);
    // The first token of every document is context, and short documents are left out.
    let (tokens, scored) = (number(&report["tokens"]), number(&report["scored_tokens"]));
    assert!(scored + number(&report["documents"]) < tokens, "{report}");
    let events = workshop.0.read("run/events.jsonl");
    assert!(events.contains(&format!("\"tokens\":{scored},\"best\":true")), "{events}");
    fs::rename(workshop.path("run/checkpoints/step-20"), workshop.path("copy")).unwrap();
    assert_eq!(perplexity("copy"), report);
    let shown = workshop.0.f2(&["perplexity", "copy", "corpus", "--split", "valid"]).stdout;
    assert!(shown.contains(" documents from 12 tokens up, each from its start"), "{shown}");
    // A text file is one text, however short.
    workshop.0.write("line.txt", "sol mira");
    assert_eq!(workshop.0.f2(&["perplexity", "copy", "line.txt"]).code, 0);
}

/// A preset in the environment applies only to new runs, and does not conflict with flags.
#[test]
fn a_preset_in_the_environment_leaves_resumed_and_tuned_runs_alone() {
    let workshop = Workshop::new();
    let trained = workshop.train(&["--out", "mle", "--objective", "mle", "--steps", "2"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let with = |preset: &str, arguments: &[&str]| {
        let child = workshop.0.start_with(arguments, &[("F2_PRESET", preset)]);
        Run::from(child.wait_with_output().unwrap())
    };
    let resumed = with("demo", &["train", "--resume", "mle", "--steps", "4", "--allow", "budget"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let tune = ["train", "corpus", "--init", "mle", "--objective", "face", "--out", "face"];
    let tuned = with("demo", &[&tune[..], &["--steps", "2"]].concat());
    assert_eq!(tuned.code, 0, "{}", tuned.stderr);
    let fresh = with("demo", &["train", "--show-config"]);
    assert!(fresh.stdout.contains("# preset demo"), "{}", fresh.stdout);
    let flag = with("demo", &["train", "--preset", "lyrics", "--show-config"]);
    assert!(!flag.stdout.contains("# preset demo"), "{}", flag.stdout);
    assert!(!with("", &["train", "--show-config"]).stdout.contains("# preset"));
    let wrong = with("demos", &["train", "--show-config"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("F2_PRESET is `demos`"), "{}", wrong.stderr);
}
