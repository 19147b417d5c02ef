//! `f2 generate` and `f2 perplexity` as a user meets them.

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::sync::OnceLock;

use f2_corpus::{Corpus, Split};
use f2_lm::run::{Pick, SavedModel};
use f2_report::printable;
use serde_json::{Value, json};
use support::{Folder, Run, interrupt, small_settings};

/// A corpus, and a plain and an F² model trained on it for a moment.
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
        ("sol".to_owned(), model.vocabulary.stream(), [0; 4]);
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
fn the_papers_protocol_writes_references_beside() {
    let workshop = workshop();
    let sizes = ["--streams", "4", "--prefix", "5", "--continuation", "10", "--split", "train"];
    let files = ["--out", "samples.jsonl", "--references", "human.jsonl"];
    let base = ["f2", "--corpus", "corpus", "--protocol", "paper"];
    let said = generate(&[&base[..], &sizes, &files].concat());
    assert_eq!(said.stdout, "");
    let (samples, human) =
        (records(&workshop.read("samples.jsonl")), records(&workshop.read("human.jsonl")));
    assert_eq!(samples.len(), human.len());
    assert!(samples.len() > 50);
    for (sample, human) in samples.iter().zip(&human) {
        assert_eq!(sample["prompt"], human["prompt"]);
        assert_eq!((&sample["protocol"], &human["protocol"]), (&json!("paper"), &json!("paper")));
        assert_eq!(sample["ids"].as_array().unwrap().len(), 10);
        assert_eq!(human["ids"].as_array().unwrap().len(), 10);
    }
    let evaluated =
        workshop.f2(&["eval", "--hyps", "samples.jsonl", "--refs", "human.jsonl", "--json"]);
    assert_eq!(evaluated.code, 0, "{}", evaluated.stderr);
}

/// Every document longer than a window gives its beginning, and nothing else.
#[test]
fn the_lyrics_protocol_takes_the_beginnings_of_documents() {
    let workshop = workshop();
    let sizes = ["--prefix", "5", "--continuation", "10", "--split", "train"];
    let files = ["--out", "songs.jsonl", "--references", "sung.jsonl"];
    let base = ["f2", "--corpus", "corpus", "--protocol", "lyrics"];
    generate(&[&base[..], &sizes, &files].concat());
    let (songs, sung) =
        (records(&workshop.read("songs.jsonl")), records(&workshop.read("sung.jsonl")));
    let corpus = Corpus::open(&workshop.path("corpus")).unwrap();
    let shard = corpus.shard(Split::Train).unwrap();
    let all = (0..shard.documents()).map(|index| shard.ranks(shard.document(index)));
    let long: Vec<Vec<u32>> = all.filter(|document| document.len() > 15).collect();
    assert!(long.len() < shard.documents() && !long.is_empty(), "{}", long.len());
    assert_eq!((songs.len(), sung.len()), (long.len(), long.len()));
    for ((song, sung), document) in songs.iter().zip(&sung).zip(&long) {
        assert_eq!((&song["protocol"], &sung["protocol"]), (&json!("lyrics"), &json!("lyrics")));
        assert_eq!(sung["ids"], json!(document[5..15]));
        assert_eq!(song["ids"].as_array().unwrap().len(), 10);
    }
    // The strategy where none is given is that of the lyrics' main table.
    generate(&[&base[..], &sizes, &["--top-k", "20", "--out", "twenty.jsonl"]].concat());
    assert_eq!(workshop.read("twenty.jsonl"), workshop.read("songs.jsonl"));
}

#[test]
fn joint_with_one_class_is_the_plain_model() {
    let workshop = workshop();
    // The plain model with one class around its vocabulary and a class vector of any kind.
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

/// A model's tensors and one class vector, 24 wide, after them.
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
fn long_and_empty_prompts_are_reported() {
    let workshop = workshop();
    let long = "sol mira ken tolu ".repeat(30);
    let kept = generate(&["f2", "--prompt", &long, "--greedy", "--new-tokens", "3"]);
    assert!(kept.stderr.contains("its last 32 are kept"), "{}", kept.stderr);
    let refused = workshop.f2(&["generate", "f2", "--prompt", &long, "--strict"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("more than the 32 the model sees"), "{}", refused.stderr);
    // This tokenizer knows how a text begins; one that does not says so.
    generate(&["f2", "--prompt", ""]);
    let bare = workshop.path("bare");
    fs::create_dir_all(&bare).unwrap();
    let checkpoint = fs::read_dir(workshop.path("mle/checkpoints")).unwrap().next().unwrap();
    for file in fs::read_dir(checkpoint.unwrap().path()).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "state.json" {
            fs::copy(file.path(), bare.join(file.file_name())).unwrap();
        }
    }
    let tokenizer = fs::read_to_string(bare.join("tokenizer.json")).unwrap();
    fs::write(bare.join("tokenizer.json"), tokenizer.replace("<|endoftext|>", "<|fin|>")).unwrap();
    let refused = workshop.f2(&["generate", "bare", "--prompt", ""]);
    assert_eq!(refused.code, 2);
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn mistakes_are_reported_with_advice() {
    let workshop = workshop();
    workshop.write("bad.jsonl", "{\"text\":\"sol\"}\n{\"text\":3}\n");
    workshop.write("none.jsonl", "{\"words\":\"sol\"}\n");
    workshop.write("empty.txt", "");
    workshop.write("outside.jsonl", "{\"ids\":[4,999]}\n");
    workshop.write("sol.txt", "sol mira ken ".repeat(300));
    let single = ["prepare", "--train", "text.txt", "--test", "sol.txt", "--documents", "files"];
    done(workshop, &[&single[..], &["--vocab-size", "280", "--out", "single"]].concat());
    let train = ["train", "single", "--config", "small.toml", "--steps", "1", "--out", "step"];
    done(workshop, &[&train[..], &["--objective", "mle"]].concat());
    let refusal = |arguments: &[&str]| {
        let Run { code, stderr, .. } = workshop.f2(arguments);
        assert_ne!(code, 0, "{arguments:?}");
        let folder = workshop.path("").canonicalize().unwrap();
        let text = stderr.replace(&folder.display().to_string(), "HERE");
        format!("$ f2 {}\n[exit code {code}]\n{text}", arguments.join(" "))
    };
    let with = |model: &'static str, flags: &[&'static str]| {
        refusal(&[&["generate", model, "--prompt", "sol"], flags].concat())
    };
    let refused = [
        with("f2", &["--top-k", "0"]),
        with("f2", &["--top-k", "5000"]),
        with("f2", &["--top-p", "0"]),
        with("f2", &["--top-p", "1.5"]),
        with("f2", &["--temperature", "-1"]),
        with("f2", &["--class-top-p", "0"]),
        with("f2", &["--beam", "4", "--top-k", "3"]),
        with("f2", &["--beam", "0"]),
        with("f2", &["--beam", "2", "-n", "3"]),
        with("f2", &["--beam", "4", "--beam-groups", "3"]),
        with("f2", &["--beam", "4", "--beam-groups", "2", "--diversity", "-1"]),
        with("f2", &["--beam", "4", "--length-penalty", "nan"]),
        with("f2", &["--min-p", "2"]),
        with("f2", &["--typical", "nan"]),
        with("f2", &["--repetition-penalty", "0.5"]),
        with("f2", &["--class-temperature", "-1"]),
        with("f2", &["--class-top-k", "5"]),
        with("f2", &["--small-class", "fill", "--top-p", "0.9"]),
        with("f2", &["--checkpoint", "77"]),
        with("mle", &["--joint"]),
        with("mle", &["--class-top-p", "0.9"]),
        with("absent", &[]),
        with("corpus", &[]),
        refusal(&["generate", "f2", "--prompts", "absent.txt"]),
        refusal(&["generate", "f2", "--prompts", "bad.jsonl"]),
        refusal(&["generate", "f2", "--prompts", "none.jsonl"]),
        refusal(&["generate", "f2", "--prompts", "outside.jsonl"]),
        refusal(&["generate", "f2"]),
        refusal(&["generate", "f2", "--corpus", "corpus", "--protocol", "paper"]),
        refusal(&["generate", "f2", "--corpus", "corpus", "--protocol", "lyrics"]),
        refusal(&["generate", "step", "--corpus", "single", "--protocol", "lyrics"]),
        refusal(&[
            "generate",
            "step",
            "--corpus",
            "single",
            "--protocol",
            "lyrics",
            "--streams",
            "4",
        ]),
        refusal(&["perplexity", "f2", "absent.txt"]),
        refusal(&["perplexity", "f2", "text.txt", "--window", "33"]),
        refusal(&["perplexity", "f2", "text.txt", "--stride", "0"]),
        refusal(&["perplexity", "f2", "empty.txt"]),
    ];
    assert!(refused.iter().all(|refused| refused.contains("\n  help: ")));
    insta::assert_snapshot!(refused.join("\n"));
}

/// More texts at once than any machine has memory for are refused before anything is allocated.
#[test]
fn too_little_memory_is_reported_with_needed_and_available_bytes() {
    let many = (1_u64 << 62).to_string();
    let arguments = ["generate", "f2", "--prompt", "sol", "-n", &many, "--batch", &many];
    for more in [&[][..], &["--new-tokens", &many]] {
        let refused = workshop().f2(&[&arguments[..], more].concat());
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        assert!(refused.stderr.contains("\n  help: "), "{}", refused.stderr);
        if cfg!(target_os = "linux") {
            assert!(refused.stderr.contains("error: generation needs"), "{}", refused.stderr);
            assert!(refused.stderr.contains("GB are available"), "{}", refused.stderr);
        }
    }
}

#[test]
fn a_model_without_tokenizer_or_classes_is_refused() {
    let workshop = workshop();
    let checkpoint = fs::read_dir(workshop.path("f2/checkpoints")).unwrap().next().unwrap();
    let from = checkpoint.unwrap().path();
    for (name, missing) in [("no-tokenizer", "tokenizer.json"), ("no-classes", "classes.json")] {
        let to = workshop.path(name);
        fs::create_dir_all(&to).unwrap();
        for file in ["model.safetensors", "model.json", "tokenizer.json", "classes.json"] {
            if file != missing {
                fs::copy(from.join(file), to.join(file)).unwrap();
            }
        }
        let refused = workshop.f2(&["generate", name, "--prompt", "sol"]);
        assert_eq!(refused.code, 3);
        assert!(
            refused.stderr.contains(&format!("({missing}) is missing"))
                || refused.stderr.contains(&format!("({missing}) are missing")),
            "{}",
            refused.stderr
        );
    }
}

fn perplexity(arguments: &[&str]) -> Value {
    let run = done(workshop(), &[&["perplexity"], arguments, &["--json"]].concat());
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn perplexity_is_what_training_measured() {
    let workshop = workshop();
    for model in ["mle", "f2"] {
        let events = workshop.read(&format!("{model}/events.jsonl"));
        let evaluated = records(&events)
            .into_iter()
            .filter(|event| event["event"] == "evaluated")
            .map(|event| event["perplexity"].as_f64().unwrap())
            .fold(f64::INFINITY, f64::min);
        let report = perplexity(&[model, "corpus", "--split", "valid"]);
        let found = report["token_perplexity"].as_f64().unwrap();
        // The same sums in another order.
        assert!((found - evaluated).abs() < 1e-4 * evaluated, "{found} is not {evaluated}");
        let (nats, tokens) =
            (report["nats_per_token"].as_f64().unwrap(), report["tokens"].as_f64().unwrap());
        let bits = nats * tokens / report["bytes"].as_f64().unwrap() / 2_f64.ln();
        assert!((bits - report["bits_per_byte"].as_f64().unwrap()).abs() < 1e-12);
        let word = (nats * tokens / report["words"].as_f64().unwrap()).exp();
        assert!((word / report["word_perplexity"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_stride_scores_every_token_but_the_first() {
    let apart = perplexity(&["f2", "corpus", "--split", "valid"]);
    let sliding = perplexity(&["f2", "corpus", "--split", "valid", "--stride", "8"]);
    let tokens = sliding["tokens"].as_u64().unwrap();
    assert_eq!(sliding["scored_tokens"].as_u64().unwrap(), tokens - 1);
    assert!(apart["scored_tokens"].as_u64().unwrap() < tokens - 1);
    let text = perplexity(&["f2", "text.txt"]);
    assert_eq!(text["words"].as_u64().unwrap(), 600 * 12);
}

/// A request of more texts than memory could hold is refused at once.
#[test]
fn a_file_that_cannot_be_written_is_reported_before_the_first_token() {
    for place in ["absent/x.jsonl", "corpus"] {
        let arguments = ["generate", "f2", "--prompt", "sol", "-n", "1000000000", "--out", place];
        let refused = workshop().f2(&arguments);
        assert_eq!(refused.code, 4, "{}", refused.stderr);
        assert!(refused.stderr.starts_with(&format!("error: cannot write {place}")));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_finished() {
    let workshop = workshop();
    let arguments = ["generate", "mle", "--prompt", "sol", "-n", "100000", "--out", "cut.jsonl"];
    let mut child = workshop.start(&[&arguments[..], &["--json"]].concat());
    // The first line means that a text is finished.
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

/// A file that is there already is not replaced by a part of the texts.
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

/// The same model with one parameter that is no number.
fn ruin(model: &str, ruined: &str) -> &'static Folder {
    let workshop = workshop();
    let saved = SavedModel::open(&workshop.path(model), Pick::Best).unwrap();
    fs::create_dir(workshop.path(ruined)).unwrap();
    for name in ["model.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(saved.folder.join(name), workshop.path(ruined).join(name)).unwrap();
    }
    let path = workshop.path(ruined).join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(path, bytes).unwrap();
    workshop
}

#[test]
fn a_model_with_a_parameter_that_is_no_number_is_refused() {
    let workshop = ruin("mle", "ruined");
    for arguments in [
        &["perplexity", "ruined", "corpus"][..],
        &["generate", "ruined", "--prompt", "sol"],
        &["export", "ruined", "--out", "exported"],
        &["train", "corpus", "--init", "ruined", "--out", "run", "--steps", "1"],
    ] {
        let refused = workshop.f2(arguments);
        assert_eq!(refused.code, 3, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("holds NaN at place"), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
}
