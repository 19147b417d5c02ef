//! Names on the Hugging Face hub: found in its cache, or fetched from a local hub.

mod support;

use std::fs;
use std::path::PathBuf;

use support::hub::{COMMIT, LoopbackHub, Manners};
use support::{Folder, Run, copy_gpt2, interrupt, wait_for};

/// A user's folder, and the hub that the user can reach.
struct User {
    folder: Folder,
    hub: LoopbackHub,
}

impl User {
    fn of_model(manners: Manners) -> Self {
        let folder = Folder::new();
        copy_gpt2("tied", &folder.path("served"));
        folder.write("served/README.md", "not needed");
        let hub = LoopbackHub::serve("models/gpt2", &folder.path("served"), manners);
        Self { folder, hub }
    }

    fn f2(&self, arguments: &[&str]) -> Run {
        self.f2_with(arguments, &[("HF_HUB_OFFLINE", "0")])
    }

    fn f2_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        let hub = [("HF_ENDPOINT", self.hub.endpoint.as_str())];
        self.folder.f2_with(arguments, &[&hub, environment].concat())
    }

    fn cache(&self, path: &str) -> PathBuf {
        self.folder.path("huggingface/hub").join(path)
    }
}

#[test]
fn a_model_comes_from_the_hub_and_then_from_the_cache() {
    let user = User::of_model(Manners::default());
    let run = user.f2(&["import", "gpt2", "--out", "model"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let asked = user.hub.asked();
    assert!(asked.iter().all(|line| !line.contains("README")), "{asked:?}");
    // The layout of Python's `huggingface_hub`.
    let home = user.cache("models--gpt2");
    assert_eq!(fs::read_to_string(home.join("refs/main")).unwrap(), COMMIT);
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let link = home.join("snapshots").join(COMMIT).join(name);
        let target = PathBuf::from("../../blobs").join(user.hub.hash(name));
        assert_eq!(fs::read_link(&link).unwrap(), target, "{name}");
        let served = user.folder.path("served").join(name);
        assert_eq!(fs::read(&link).unwrap(), fs::read(served).unwrap(), "{name}");
    }
    // Once the model is in the cache, the hub is not contacted.
    for (out, offline) in [("again", "0"), ("offline", "1")] {
        let run = user.f2_with(&["import", "gpt2", "--out", out], &[("HF_HUB_OFFLINE", offline)]);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    assert_eq!(user.hub.asked(), [""; 0]);
    let file = |out: &str| fs::read(user.folder.path(out).join("model.safetensors")).unwrap();
    assert!(file("model") == file("again") && file("model") == file("offline"));
}

#[test]
fn nothing_is_fetched_where_the_output_is_taken() {
    let user = User::of_model(Manners::default());
    fs::create_dir(user.folder.path("model")).unwrap();
    user.folder.write("model/thesis.txt", "the only copy");
    let run = user.f2(&["import", "gpt2", "--out", "model"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("model exists already"), "{}", run.stderr);
    assert_eq!(user.hub.asked(), [""; 0]);
    assert_eq!(user.folder.read("model/thesis.txt"), "the only copy");
}

#[test]
fn a_lost_connection_is_taken_up_where_it_ended() {
    for knows_no_ranges in [false, true] {
        let cuts = vec![1000, 3000, 10];
        let user = User::of_model(Manners { cuts, knows_no_ranges, ..Manners::default() });
        let run = user.f2(&["import", "gpt2", "--out", "model"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let asked = user.hub.asked();
        assert!(asked.iter().any(|line| line.contains("bytes=3000-")), "{asked:?}");
        assert!(!user.cache("models--gpt2/blobs").read_dir().unwrap().any(|entry| {
            entry.unwrap().file_name().to_string_lossy().ends_with(".incomplete")
        }));
    }
}

#[test]
fn a_fetch_that_was_killed_goes_on_in_another_run() {
    let user = User::of_model(Manners::default());
    let hash = user.hub.hash("model.safetensors");
    let served = fs::read(user.folder.path("served/model.safetensors")).unwrap();
    fs::create_dir_all(user.cache("models--gpt2/blobs")).unwrap();
    let partial = user.cache("models--gpt2/blobs").join(format!("{hash}.incomplete"));
    fs::write(&partial, &served[..777]).unwrap();
    let run = user.f2(&["import", "gpt2", "--out", "model"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(user.hub.asked().iter().any(|line| line.contains("bytes=777-")));
    assert!(!partial.exists());
}

#[test]
fn a_fetch_that_is_interrupted_keeps_what_has_arrived() {
    let user = User::of_model(Manners { crawls: true, ..Manners::default() });
    let hash = user.hub.hash("model.safetensors");
    let partial = user.cache("models--gpt2/blobs").join(format!("{hash}.incomplete"));
    let arguments = ["import", "gpt2", "--out", "model"];
    let environment = [("HF_ENDPOINT", user.hub.endpoint.as_str()), ("HF_HUB_OFFLINE", "0")];
    let child = user.folder.start_with(&arguments, &environment);
    let arrived = || fs::metadata(&partial).map_or(0, |file| file.len());
    wait_for(|| arrived() > 1000);
    let run = interrupt(child);
    assert_eq!(run.code, 130, "{}", run.stderr);
    let kept = arrived();
    assert!(kept > 1000 && !user.folder.path("model").exists());
    let run = user.f2(&arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(user.hub.asked().iter().any(|line| line.contains(&format!("bytes={kept}-"))));
}

#[test]
fn a_model_that_lies_in_the_cache_in_part_is_completed() {
    let folder = Folder::new();
    copy_gpt2("sharded", &folder.path("served"));
    let hub = LoopbackHub::serve("models/gpt2", &folder.path("served"), Manners::default());
    let user = User { folder, hub };
    assert_eq!(user.f2(&["import", "gpt2", "--out", "model"]).code, 0);
    user.hub.asked();
    let shard = "model-00003-of-00004.safetensors";
    let home = user.cache("models--gpt2");
    fs::remove_file(home.join("snapshots").join(COMMIT).join(shard)).unwrap();
    fs::remove_file(home.join("blobs").join(user.hub.hash(shard))).unwrap();
    let run = user.f2(&["import", "gpt2", "--out", "again"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let asked = user.hub.asked();
    assert!(asked.len() > 2 && asked[1..].iter().all(|line| line.contains(shard)), "{asked:?}");
}

#[test]
fn a_file_with_another_hash_is_refused_and_removed() {
    let user = User::of_model(Manners { damages: true, ..Manners::default() });
    let run = user.f2(&["import", "gpt2", "--out", "model"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("arrived damaged"), "{}", run.stderr);
    assert_eq!(user.cache("models--gpt2/blobs").read_dir().unwrap().count(), 0);
    assert!(!user.cache("models--gpt2/refs").exists() && !user.folder.path("model").exists());
}

#[test]
fn the_token_is_for_the_hub_alone() {
    let user = User::of_model(Manners { token: Some("hf_secret"), ..Manners::default() });
    let arguments = ["import", "gpt2", "--out", "model"];
    let refused = user.f2(&arguments);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("HF_TOKEN"), "{}", refused.stderr);
    let online = ("HF_HUB_OFFLINE", "0");
    let wrong = user.f2_with(&arguments, &[online, ("HF_TOKEN", "hf_wrong")]);
    assert!(wrong.stderr.contains("the token is not valid"), "{}", wrong.stderr);
    user.hub.asked();
    let run = user.f2_with(&arguments, &[online, ("HF_TOKEN", "hf_secret")]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in user.hub.asked() {
        assert_eq!(line.contains("hf_secret"), !line.contains("/elsewhere/"), "{line}");
    }
}

#[test]
fn mistakes_are_reported_with_advice() {
    let user = User::of_model(Manners::default());
    let message = |name: &str, environment: &[(&str, &str)]| {
        let run = user.f2_with(&["import", name, "--out", "model"], environment);
        let here = user.folder.path("");
        let hidden = [(user.hub.endpoint.as_str(), "HUB"), (here.to_str().unwrap(), "")];
        let said = hidden.iter().fold(run.stderr, |said, (from, to)| said.replace(from, to));
        // The system's message differs between machines.
        let lines = said.lines().map(|line| line.split(" reached: ").next().unwrap_or_default());
        format!("{name}: exit code {}\n{}\n", run.code, lines.collect::<Vec<_>>().join("\n"))
    };
    let online = ("HF_HUB_OFFLINE", "0");
    let messages = [
        message("nobody/nothing", &[online]),
        message("gpt2@v7", &[online]),
        message("gpt2", &[("HF_HUB_OFFLINE", "1")]),
        message("./gpt2", &[online]),
        message("gpt2", &[online, ("HF_ENDPOINT", "http://127.0.0.1:1")]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    assert!(!user.folder.path("model").exists());
}

/// A dataset with a file for each split, and other files.
fn dataset() -> User {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("served/raw")).unwrap();
    let text = support::invented_text(120);
    for (name, text) in
        [("train", text.as_str()), ("validation", &text[..4000]), ("test", &text[..2000])]
    {
        folder.write(&format!("served/raw/{name}-00000.txt"), text);
    }
    folder.write("served/raw/LICENSE.md", "none");
    folder.write("served/notes.txt", "Something else.");
    let hub = LoopbackHub::serve("datasets/kim/novels", &folder.path("served"), Manners::default());
    User { folder, hub }
}

#[test]
fn a_dataset_is_prepared_by_its_name() {
    let user = dataset();
    let prepare = |address: &str, out: &str, offline: &str| {
        let arguments = ["prepare", address, "--vocab-size", "300", "--out", out, "--json"];
        user.f2_with(&arguments, &[("HF_HUB_OFFLINE", offline)])
    };
    let run = prepare("hf://datasets/kim/novels/raw", "named", "0");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("1 to train, 1 to validate, 1 to test"), "{}", run.stderr);
    let asked = user.hub.asked();
    assert!(
        asked.iter().all(|line| !line.contains("LICENSE") && !line.contains("notes")),
        "{asked:?}"
    );
    // The same result as from the files themselves, and a part of the dataset from the cache.
    let served = |name: &str| user.folder.path(&format!("served/raw/{name}-00000.txt"));
    let [train, valid, test] = ["train", "validation", "test"].map(served);
    let paths = [&train, &valid, &test].map(|path| path.to_str().unwrap());
    let of_files = user.f2(&[
        "prepare",
        "--train",
        paths[0],
        "--valid",
        paths[1],
        "--test",
        paths[2],
        "--vocab-size",
        "300",
        "--out",
        "files",
        "--json",
    ]);
    assert_eq!(run.stdout, of_files.stdout);
    let cached = prepare("hf://datasets/kim/novels/raw/train*", "part", "1");
    assert_eq!(cached.code, 0, "{}", cached.stderr);
    assert_eq!(user.hub.asked(), [""; 0]);
    let lost = user.folder.f2_with(
        &["prepare", "hf://datasets/kim/novels/raw", "--vocab-size", "300", "--out", "lost"],
        &[("HF_HUB_OFFLINE", "0"), ("HF_ENDPOINT", "http://127.0.0.1:1")],
    );
    assert_eq!(lost.code, 0, "{}", lost.stderr);
    assert!(lost.stderr.contains("the copy in the cache is used"), "{}", lost.stderr);
}

#[test]
fn text_by_a_wrong_address_is_refused() {
    let user = dataset();
    for (address, code, word) in [
        ("hf://kim/novels", 2, "hf://datasets/"),
        ("hf://datasets/kim/novels/cooked", 3, "none of the files that are needed"),
        ("hf://datasets/kim/poems", 3, "there is none of this name"),
    ] {
        let run = user.f2(&["prepare", address, "--out", "corpus"]);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
}
