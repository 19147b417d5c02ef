//! `f2 import` and `f2 export` from the command line.

mod support;

use std::fs;

use support::{Folder, Run, copy_gpt2};

/// Copies a folder written by `transformers`.
fn hub(folder: &Folder, name: &str, to: &str) {
    copy_gpt2(name, &folder.path(to));
}

fn shown(arguments: &str, run: &Run) -> String {
    format!("$ f2 {arguments}\n{}", run.shown())
}

fn f2(folder: &Folder, arguments: &str) -> String {
    shown(arguments, &folder.f2(&arguments.split_whitespace().collect::<Vec<_>>()))
}

#[test]
fn a_gpt2_is_imported_and_exported_again() {
    let folder = Folder::new();
    hub(&folder, "untied", "gpt2");
    let messages = [
        f2(&folder, "import gpt2 --out model"),
        f2(&folder, "export model --out exported"),
        f2(&folder, "import exported --out again --json"),
        f2(&folder, "export again --format hf --out twice --json"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    for name in ["model.safetensors", "model.json", "tokenizer.json"] {
        let [first, second] = ["model", "again"].map(|model| folder.path(model).join(name));
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap(), "{name}");
    }
}

#[test]
fn a_trained_run_goes_out_with_its_head_and_comes_back() {
    let folder = Folder::new();
    folder.write("text.txt", "the cat sat on the mat and the rat sat on the cat\n".repeat(90));
    for (arguments, what) in [
        ("prepare --train text.txt --valid text.txt --out corpus --vocab-size 265", "prepared"),
        ("classes corpus --k 3", "cut"),
        (
            "train corpus --out run --steps 2 --set model.layers=1 --set model.width=16 \
             --set model.heads=2 --set model.feed_forward=32 --set batch.sequence=16",
            "trained",
        ),
    ] {
        let run = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
        assert_eq!(run.code, 0, "{what}: {}", run.stderr);
    }
    let messages = [
        f2(&folder, "export run --out exported"),
        f2(&folder, "import exported --out back"),
        f2(&folder, "export run --checkpoint last --out last"),
        f2(&folder, "export run --checkpoint 7 --out seven"),
        f2(&folder, "export run --checkpoint worst --out worst"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    for name in ["model.safetensors", "model.json", "tokenizer.json", "classes.json", "counts.json"]
    {
        let [kept, back] =
            ["run/checkpoints/step-2", "back"].map(|model| folder.path(model).join(name));
        assert_eq!(fs::read(kept).unwrap(), fs::read(back).unwrap(), "{name}");
    }
}

#[test]
fn mistakes_are_reported_with_advice() {
    let folder = Folder::new();
    hub(&folder, "tied", "gpt2");
    hub(&folder, "tied", "llama");
    let config = folder.read("llama/config.json").replace("\"gpt2\"", "\"llama\"");
    folder.write("llama/config.json", config);
    hub(&folder, "tied", "pickled");
    fs::rename(folder.path("pickled/model.safetensors"), folder.path("pickled/pytorch_model.bin"))
        .unwrap();
    hub(&folder, "tied", "short");
    let config = folder.read("short/config.json").replace("\"n_inner\": 24", "\"n_inner\": 25");
    folder.write("short/config.json", config);
    hub(&folder, "tied", "erf");
    let config = folder.read("erf/config.json").replace("gelu_new", "gelu");
    folder.write("erf/config.json", config);
    hub(&folder, "tied", "small");
    let config = folder.read("small/config.json").replace(": 270", ": 200");
    folder.write("small/config.json", config);
    let messages = [
        f2(&folder, "import nowhere --out model"),
        f2(&folder, "import llama --out model"),
        f2(&folder, "import erf --out model"),
        f2(&folder, "import pickled --out model"),
        f2(&folder, "import short --out model"),
        f2(&folder, "import small --out model"),
        f2(&folder, "import gpt2 --out llama"),
        f2(&folder, "export gpt2 --out exported"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    assert!(!folder.path("model").exists() && !folder.path("exported").exists());
    assert!(folder.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn a_model_with_a_parameter_that_is_no_number_is_not_taken_in() {
    let folder = Folder::new();
    hub(&folder, "tied", "gpt2");
    let path = folder.path("gpt2/model.safetensors");
    for value in [f32::NAN, f32::NEG_INFINITY] {
        let mut bytes = fs::read(&path).unwrap();
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&value.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let refused = folder.f2(&["import", "gpt2", "--out", "model"]);
        assert_eq!(refused.code, 3, "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("holds {value} at place")), "{}", refused.stderr);
        assert_eq!(folder.names(), ["gpt2"]);
    }
}
