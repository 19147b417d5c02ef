//! Faults at each change to the disk: afterwards there is the old state or the new one, and running
//! the same command again gives the same bytes.

use std::fs;
use std::path::Path;

use crate::support::Folder;
use crate::support::faults::{ALL, at_every_change, contents};
use crate::support::workshop::{Workshop, tensors};

/// Settings of a run with as few changes to the disk as possible.
const TINY: [&str; 19] = [
    "--set",
    "model.layers=1",
    "--set",
    "model.width=8",
    "--set",
    "model.feed_forward=8",
    "--set",
    "batch.sequence=8",
    "--set",
    "evaluation.max_tokens=32",
    "--set",
    "evaluation.every_steps=0",
    "--set",
    "checkpoint.every_steps=0",
    "--objective",
    "mle",
    "--threads",
    "1",
    "--steps=2",
];

fn train(out: &'static str) -> Vec<&'static str> {
    [&["train", "corpus", "--config", "small.toml", "--out", out], &TINY[..]].concat()
}

/// A workshop with a trained model.
fn trained(run: &'static str) -> Workshop {
    let workshop = Workshop::new();
    let trained = workshop.0.f2(&train(run));
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    workshop
}

/// Hidden files: those being written, leftovers, and locks.
fn hidden(folder: &Path) -> Vec<String> {
    let files = contents(folder).into_keys();
    files.filter(|name| name.starts_with('.') || name.contains("/.")).collect()
}

#[test]
fn training_survives_a_fault_at_every_change_of_the_disk() {
    let workshop = trained("whole");
    let expected = tensors(&workshop.path("whole"), 2);
    let run = workshop.path("run");
    let command = train("run");
    let begin = || drop(fs::remove_dir_all(&run));
    at_every_change(&workshop.0, &command, &["fail", "kill"], begin, |plan| {
        for step in f2_lm::run::checkpoint::steps(&run.join("checkpoints")).unwrap() {
            let checkpoint = f2_lm::run::checkpoint::path(&run.join("checkpoints"), step);
            f2_lm::run::checkpoint::open(&checkpoint)
                .unwrap_or_else(|error| panic!("{plan}: {error}"));
        }
        let begun = run.join("config.toml").exists();
        let again = if begun { vec!["train", "--resume", "run"] } else { command.clone() };
        let again = workshop.0.f2(&again);
        assert_eq!(again.code, 0, "{plan}: {}", again.stderr);
        assert!(tensors(&run, 2) == expected, "{plan}");
        assert_eq!(hidden(&run), [""; 0], "{plan}");
    });
}

/// A GPT-2 as saved by Hugging Face `transformers`, in `gpt2`.
fn hub(folder: &Folder) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2-lm/tests/fixtures/gpt2/tied");
    fs::create_dir(folder.path("gpt2")).unwrap();
    for entry in fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path("gpt2").join(entry.file_name())).unwrap();
    }
}

/// Checks a command that makes a folder: after a fault it is complete or absent, and the next run
/// makes it.
fn check_folder(folder: &Folder, command: &[&str], out: &str) {
    let made = folder.f2(command);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let expected = contents(&folder.path(out));
    let names = folder.names();
    let begin = || drop(fs::remove_dir_all(folder.path(out)));
    at_every_change(folder, command, &ALL, begin, |plan| {
        if folder.path(out).exists() {
            assert!(contents(&folder.path(out)) == expected, "{plan}");
            fs::remove_dir_all(folder.path(out)).unwrap();
        }
        let again = folder.f2(command);
        assert_eq!(again.code, 0, "{plan}: {}", again.stderr);
        assert!(contents(&folder.path(out)) == expected, "{plan}");
        assert_eq!(folder.names(), names, "{plan}");
    });
}

#[test]
fn import_and_export_survive_a_fault_at_every_change_of_the_disk() {
    let folder = Folder::new();
    hub(&folder);
    check_folder(&folder, &["import", "gpt2", "--out", "model"], "model");
    check_folder(&folder, &["export", "model", "--out", "exported"], "exported");
}

/// Faults in every step of a preparation in parts.
#[test]
fn preparing_in_parts_survives_a_fault_at_every_change_of_the_disk() {
    let folder = Folder::new();
    let document = |number| format!("the cat sat on mat {number}\nand slept\n\n");
    folder.write("text.txt", (0..40).map(document).collect::<String>());
    let part = [
        "prepare",
        "text.txt",
        "--vocab-size",
        "270",
        "--shard-tokens",
        "200",
        "--text",
        "--threads",
        "1",
        "--part",
        "1/1",
        "--out",
        "parts",
    ];
    check_folder(&folder, &part, "parts/counted-00001-of-00001");
    check_folder(&folder, &["prepare", "--merge", "parts", "--out", "corpus"], "corpus");
    fs::remove_dir_all(folder.path("parts/vocabulary")).unwrap();
    check_folder(&folder, &["prepare", "--learn", "parts"], "parts/vocabulary");
    check_folder(&folder, &part, "parts/encoded-00001-of-00001");
    check_folder(&folder, &["prepare", "--merge", "parts", "--out", "joined"], "joined");
    assert!(contents(&folder.path("joined")) == contents(&folder.path("corpus")));
    assert!(folder.path("corpus/train-00001.bin").exists());
    assert_eq!(hidden(&folder.path("parts")), [""; 0]);
}

/// Checks a command that replaces files: after a fault each has its older or its new content, and
/// the next run gives the new one.
fn check_files(folder: &Folder, command: &[&str], kinds: &[&str], files: &[&str]) {
    let made = folder.f2(command);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let expected: Vec<String> = files.iter().map(|file| folder.read(file)).collect();
    let names = folder.names();
    let begin = || files.iter().for_each(|file| folder.write(file, "older\n"));
    at_every_change(folder, command, kinds, begin, |plan| {
        for (file, expected) in files.iter().zip(&expected) {
            let found = folder.read(file);
            assert!(found == "older\n" || found == *expected, "{plan}, {file}: {found}");
        }
        let again = folder.f2(command);
        assert_eq!(again.code, 0, "{plan}: {}", again.stderr);
        for (file, expected) in files.iter().zip(&expected) {
            assert_eq!(folder.read(file), *expected, "{plan}, {file}");
        }
        assert_eq!(folder.names(), names, "{plan}");
    });
}

#[test]
fn cutting_classes_survives_a_fault_at_every_change_of_the_disk() {
    let workshop = Workshop::new();
    let command = ["classes", "corpus", "--k", "3", "--plot", "classes.svg"];
    check_files(&workshop.0, &command, &ALL, &["corpus/classes.json", "classes.svg"]);
}

#[test]
fn writing_texts_survives_a_fault_at_every_change_of_the_disk() {
    let workshop = trained("run");
    let prompt = ["generate", "run", "--prompt", "ka", "-n", "3", "--new-tokens", "4"];
    let command = [&prompt[..], &["--out", "texts.jsonl"]].concat();
    check_files(&workshop.0, &command, &ALL, &["texts.jsonl"]);
}

#[test]
fn texts_and_references_survive_a_fault_at_every_change_of_the_disk() {
    let workshop = trained("run");
    let command = [
        "generate",
        "run",
        "--corpus",
        "corpus",
        "--protocol",
        "paper",
        "--prefix=4",
        "--continuation=4",
        "--streams=4",
        "--out",
        "texts.jsonl",
        "--references",
        "human.jsonl",
    ];
    check_files(&workshop.0, &command, &["fail", "kill"], &["texts.jsonl", "human.jsonl"]);
}

#[test]
fn resuming_survives_a_kill_at_every_change_of_the_disk() {
    let workshop = trained("begun");
    let run = workshop.path("run");
    let begin = || {
        let _ = fs::remove_dir_all(&run);
        copy(&workshop.path("begun"), &run);
    };
    let resume = ["train", "--resume", "run", "--steps=3", "--allow", "budget", "--threads", "1"];
    begin();
    let whole = workshop.0.f2(&resume);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let expected = tensors(&run, 3);
    at_every_change(&workshop.0, &resume, &["kill"], begin, |plan| {
        let again = workshop.0.f2(&resume);
        assert_eq!(again.code, 0, "{plan}: {}", again.stderr);
        assert!(tensors(&run, 3) == expected, "{plan}");
        assert_eq!(hidden(&run), [""; 0], "{plan}");
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A search killed at any point continues, and makes the same choice.
#[test]
fn tuning_survives_a_kill_at_every_change_of_the_disk() {
    let workshop = trained("run");
    let command = [
        "tune",
        "run",
        "--corpus",
        "corpus",
        "--prefix=4",
        "--continuation=4",
        "--texts=8",
        "--streams=8",
        "--trials=1",
        "--threads=1",
        "--out",
        "tuned",
    ];
    let made = workshop.0.f2(&command);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let expected = workshop.0.read("tuned/decoding.toml");
    let tuned = workshop.path("tuned");
    let begin = || drop(fs::remove_dir_all(&tuned));
    at_every_change(&workshop.0, &command, &["kill"], begin, |plan| {
        let again = workshop.0.f2(&command);
        assert_eq!(again.code, 0, "{plan}: {}", again.stderr);
        assert_eq!(workshop.0.read("tuned/decoding.toml"), expected, "{plan}");
        assert_eq!(hidden(&tuned), [""; 0], "{plan}");
    });
}
