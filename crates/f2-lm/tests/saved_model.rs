//! Models on the disk: what is opened, and what is refused.

mod workshop;

use std::fs;

use f2_engine::Cpu;
use f2_lm::config::TrainConfig;
use f2_lm::model::Model;
use f2_lm::run::{Manifest, Pick, RunFolder, SavedModel, checkpoint};
use f2_lm::train::{Session, Trainer, TrainingCorpus};
use workshop::{TEXT, Workshop, decoder, named};

#[test]
fn a_model_folder_needs_nothing_else() {
    let workshop = Workshop::new();
    for classed in [false, true] {
        let folder = workshop.model("corpus", &format!("model-{classed}"), classed);
        let model = SavedModel::open(&folder, Pick::Best).unwrap();
        assert_eq!(model.shape.class_ends.len(), if classed { 3 } else { 0 });
        assert_eq!(model.counts.as_ref().unwrap().len(), model.shape.vocabulary);
        let device = || Cpu::new(1).unwrap();
        let loaded = model.load(device()).unwrap();
        let expected = Model::initialised(device(), model.decoder(), 3).unwrap();
        for named in loaded.decoder.layout.parameters() {
            let [read, drawn] = [&loaded, &expected].map(|model| model.values(named.parameter));
            assert_eq!(read.unwrap(), drawn.unwrap(), "{}", named.name);
        }
    }
}

/// A tokenizer that kept its ids and one that was renamed give the same ids.
#[test]
fn ids_are_ranks_whatever_the_tokenizer_calls_them() {
    let workshop = Workshop::new();
    workshop.corpus("kept", true);
    let open = |corpus: &str| {
        SavedModel::open(&workshop.model(corpus, &format!("{corpus}-model"), false), Pick::Best)
            .unwrap()
            .vocabulary
    };
    let (renamed, kept) = (open("corpus"), open("kept"));
    let ids = renamed.encode(TEXT).unwrap();
    assert_eq!(kept.encode(TEXT).unwrap(), ids);
    assert_eq!(kept.decode(&ids).unwrap(), TEXT);
    assert_eq!((kept.size(), renamed.size()), (270, 270));
}

#[test]
fn characters_are_held_back_until_they_are_whole() {
    let workshop = Workshop::new();
    let model = SavedModel::open(&workshop.model("corpus", "model", false), Pick::Best).unwrap();
    let ids = model.vocabulary.encode(TEXT).unwrap();
    let mut stream = model.vocabulary.stream();
    let pieces: Vec<String> = ids.iter().map(|id| stream.push(*id).unwrap()).collect();
    assert_eq!(pieces.concat(), TEXT);
    assert!(pieces.iter().any(String::is_empty), "every character was one token: {pieces:?}");
    assert!(pieces.iter().all(|piece| !piece.contains(char::REPLACEMENT_CHARACTER)));
    // Half a character at the end, and bytes that never become one.
    let cat = model.vocabulary.encode("猫").unwrap();
    let mut stream = model.vocabulary.stream();
    assert_eq!(stream.push(cat[0]).unwrap(), "");
    assert_eq!(stream.finish().unwrap(), "\u{fffd}");
    let mut stream = model.vocabulary.stream();
    let broken: String = (0..9).map(|_| stream.push(cat[0]).unwrap()).collect();
    let rest = stream.finish().unwrap();
    assert_eq!(broken + &rest, model.vocabulary.decode(&[cat[0]; 9]).unwrap());
}

/// Trains a few steps, so that the best checkpoint is not the last.
fn run(workshop: &Workshop) -> RunFolder {
    let source = TrainingCorpus::open(&workshop.path("corpus")).unwrap();
    let classes = workshop.classes("corpus");
    let model = decoder(270, Vec::new()).shape.model;
    let mut config = TrainConfig { model, ..TrainConfig::default() };
    (config.batch.sequence, config.batch.size) = (16, 2);
    config.budget.steps = Some(6);
    config.evaluation.every_steps = 3;
    config.schedule.warmup_steps = 0;
    // The second evaluation is worse: by then the steps have gone too far.
    config.optimiser.learning_rate = 0.3;
    let decoder = decoder(270, classes.ends.clone());
    let trainer = Trainer::new(Cpu::new(1).unwrap(), decoder, &config).unwrap();
    let manifest = Manifest::new(source.record.clone(), None, 0, "cpu", 1);
    let run = RunFolder::create(&workshop.path("run"), config, manifest).unwrap();
    let attachments = source.attachments(Some(&classes)).unwrap();
    let text = source.splits();
    let mut ignore = |_: &_| {};
    let mut session =
        Session::new(trainer, run.clone(), text, attachments, 1, &mut ignore).unwrap();
    session.run(&|| false).unwrap();
    run
}

#[test]
fn a_run_gives_its_best_its_last_or_a_named_checkpoint() {
    let workshop = Workshop::new();
    let run = run(&workshop);
    let steps = checkpoint::steps(&run.checkpoints()).unwrap();
    let newest = run.latest_checkpoint().unwrap().unwrap();
    let best = checkpoint::open(&newest).unwrap().best.unwrap().step;
    let picked = |pick| SavedModel::open(run.path(), pick).map(|model| model.folder);
    assert_eq!(picked(Pick::Best).unwrap(), checkpoint::path(&run.checkpoints(), best));
    assert_eq!(picked(Pick::Last).unwrap(), newest);
    assert_eq!(
        picked(Pick::Step(steps[0])).unwrap(),
        checkpoint::path(&run.checkpoints(), steps[0])
    );
    let absent = picked(Pick::Step(77)).unwrap_err().to_string();
    assert!(absent.ends_with("there is no checkpoint of step 77"), "{absent}");
    assert_eq!(SavedModel::open(&newest, Pick::Best).unwrap().folder, newest);
    // The optimiser's state may go; what the model needs may not change.
    fs::remove_file(newest.join(checkpoint::OPTIMISER)).unwrap();
    SavedModel::open(&newest, Pick::Best).unwrap();
    let counts = fs::read_to_string(newest.join(checkpoint::COUNTS)).unwrap();
    fs::write(newest.join(checkpoint::COUNTS), counts.replacen('1', "2", 1)).unwrap();
    let changed = SavedModel::open(&newest, Pick::Best).unwrap_err().to_string();
    assert!(changed.contains("counts.json cannot be used: its content changed"), "{changed}");
}

#[test]
fn a_folder_that_is_no_model_says_what_is_missing() {
    let workshop = Workshop::new();
    let refusal = |name: &str, damage: &dyn Fn(&std::path::Path)| {
        let folder = workshop.model("corpus", name, true);
        damage(&folder);
        let opened = SavedModel::open(&folder, Pick::Best);
        let load = |model: SavedModel| model.load(Cpu::new(1).unwrap());
        let error = opened.and_then(load).map(drop).unwrap_err().to_string();
        named(&error, &workshop.path(""))
    };
    let remove = |name: &'static str| {
        move |folder: &std::path::Path| fs::remove_file(folder.join(name)).unwrap()
    };
    let edit = |name: &'static str, from: &'static str, to: &'static str| {
        move |folder: &std::path::Path| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(folder.join(name), text.replace(from, to)).unwrap();
        }
    };
    let refused = [
        refusal("a", &|folder| fs::remove_dir_all(folder).unwrap()),
        refusal("b", &remove("tokenizer.json")),
        refusal("c", &remove("classes.json")),
        refusal("d", &remove("model.json")),
        refusal("e", &|folder| {
            fs::remove_file(folder.join("model.json")).unwrap();
            fs::remove_file(folder.join("model.safetensors")).unwrap();
        }),
        refusal("f", &edit("model.json", "\"classes\": 3", "\"classes\": 4")),
        refusal("g", &edit("model.json", "\"vocabulary\": 270", "\"vocabulary\": 100")),
        refusal("h", &edit("model.json", "\"width\": 24", "\"width\": 48")),
        refusal("i", &edit("model.json", "\"format\": 1", "\"format\": 9")),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

/// Who can write a checkpoint can write its checksum.
#[test]
fn a_checkpoint_leads_to_files_in_its_own_folder_only() {
    let workshop = Workshop::new();
    let newest = run(&workshop).latest_checkpoint().unwrap().unwrap();
    let path = newest.join(checkpoint::STATE);
    let whole = fs::read_to_string(&path).unwrap();
    let mut state: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let files = state["files"].clone();
    for name in ["/dev/zero", "../../config.toml", "..", "", "x/", "link"] {
        state["files"] = files.clone();
        state["files"][name] = serde_json::json!({ "bytes": 0, "sha256": "" });
        state["checksum"] = "".into();
        fs::write(&path, f2_files::seal(&serde_json::to_string_pretty(&state).unwrap())).unwrap();
        #[cfg(unix)]
        if name == "link" {
            std::os::unix::fs::symlink("/dev/zero", newest.join(name)).unwrap();
        }
        let refused = [
            SavedModel::open(&newest, Pick::Best).unwrap_err().to_string(),
            checkpoint::open(&newest).unwrap_err().to_string(),
        ];
        for refused in refused {
            let not_a_name =
                format!("state.json cannot be used: `{name}` is not the name of a file");
            let not_a_file = name == "link" && refused.contains("link");
            assert!(refused.contains(&not_a_name) || not_a_file, "{refused}");
        }
    }
}

/// A file that is far too long is not read through before it is refused.
#[test]
fn a_file_of_another_length_is_refused_at_once() {
    let workshop = Workshop::new();
    let newest = run(&workshop).latest_checkpoint().unwrap().unwrap();
    let model = fs::File::options().write(true).open(newest.join(checkpoint::MODEL)).unwrap();
    // A terabyte without a byte on the disk.
    model.set_len(1 << 40).unwrap();
    let refused = SavedModel::open(&newest, Pick::Best).unwrap_err().to_string();
    assert!(refused.contains("it has 1099511627776 bytes instead of"), "{refused}");
}

/// Puts a pipe in the place of a file.
#[cfg(unix)]
fn pipe(path: &std::path::Path) {
    let _ = fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn nothing_waits_for_a_pipe_in_a_model() {
    let workshop = Workshop::new();
    workshop.corpus("kept", true);
    let names = [
        checkpoint::SHAPE,
        checkpoint::MODEL,
        checkpoint::TOKENIZER,
        checkpoint::CLASSES,
        checkpoint::COUNTS,
        checkpoint::RANKS,
        checkpoint::STATE,
        f2_lm::decode::DECODING,
    ];
    for name in names {
        let folder = workshop.model("kept", name, true);
        pipe(&folder.join(name));
        let used = SavedModel::open(&folder, Pick::Best).and_then(|model| {
            model.decoding()?;
            model.load(Cpu::new(1).unwrap()).map(drop)
        });
        let refused = used.unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("not a"), "{name}: {refused}");
    }
}

#[cfg(unix)]
#[test]
fn nothing_waits_for_a_pipe_in_a_run() {
    let workshop = Workshop::new();
    let run = run(&workshop);
    let checkpoint = run.latest_checkpoint().unwrap().unwrap();
    for path in [checkpoint.join("model.json"), checkpoint.join("state.json")] {
        pipe(&path);
        let refused = SavedModel::open(run.path(), Pick::Last).unwrap_err().to_string();
        assert!(refused.contains("a pipe or a device"), "{refused}");
    }
    assert!(f2_lm::run::read_events(&run.events()).is_ok());
    pipe(&run.events());
    assert!(f2_lm::run::read_events(&run.events()).is_err());
    for name in ["manifest.json", "config.toml"] {
        pipe(&run.path().join(name));
        let refused = RunFolder::open(run.path()).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("a pipe or a device"), "{refused}");
    }
    // Nor when a run is started.
    fs::remove_file(run.config_path()).unwrap();
    let begun = RunFolder::create(run.path(), run.config.clone(), run.manifest.clone());
    assert!(begun.is_err());
}
