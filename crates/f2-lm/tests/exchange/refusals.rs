//! Folders that cannot be imported, and the errors that say so.

use std::fs;
use std::path::{Path, PathBuf};

use f2_files::Lock;
use f2_lm::exchange::{ExchangeError, ForeignModel, export};
use f2_lm::run::{Pick, SavedModel};
use safetensors::tensor::{Dtype, TensorView};

use crate::{copy, hub, tensors};

/// A damaged copy of a folder, and the error it causes.
struct Damaged {
    folder: tempfile::TempDir,
}

impl Damaged {
    fn new(from: &str) -> Self {
        let damaged = Self { folder: tempfile::tempdir().unwrap() };
        copy(&hub(from), damaged.path());
        damaged
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn replace(self, name: &str, from: &str, to: &str) -> Self {
        let text = fs::read_to_string(self.file(name)).unwrap();
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        fs::write(self.file(name), changed).unwrap();
        self
    }

    fn config(self, from: &str, to: &str) -> Self {
        self.replace("config.json", from, to)
    }

    fn without(self, name: &str) -> Self {
        fs::remove_file(self.file(name)).unwrap();
        self
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.file(name), content).unwrap();
        self
    }

    /// Adds a tensor to the weights, or takes one away.
    fn tensor(self, add: Option<&str>, remove: Option<&str>) -> Self {
        let path = self.file("model.safetensors");
        let mut all = tensors(&path);
        all.retain(|(name, ..)| Some(name.as_str()) != remove);
        all.extend(add.map(|name| (name.to_owned(), vec![2], vec![0; 8])));
        let views = all.iter().map(|(name, shape, bytes)| {
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        });
        fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        self
    }

    fn refusal(&self) -> String {
        let error = ForeignModel::open(self.path()).unwrap_err().to_string();
        error.replace(&self.path().display().to_string(), "HERE")
    }
}

#[test]
fn errors_name_their_cause() {
    let tied = || Damaged::new("tied");
    let sharded = || Damaged::new("sharded");
    let whole = fs::read(hub("tied/model.safetensors")).unwrap();
    let long = [&u64::MAX.to_le_bytes()[..], &whole[8..]].concat();
    let index = "model.safetensors.index.json";
    let added = r#"[{"id": 270, "content": "<pad>", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true}, "#;
    let refused = [
        tied().config("\"gpt2\"", "\"llama\"").refusal(),
        tied().config("\"model_type\"", "\"model\"").refusal(),
        tied().config("GPT2LMHeadModel", "GPT2ForSequenceClassification").refusal(),
        tied().config("\"gelu_new\"", "\"relu\"").refusal(),
        tied().config("1e-05", "1e-06").refusal(),
        tied().config("\"scale_attn_weights\": true", "\"scale_attn_weights\": false").refusal(),
        tied().config("layer_idx\": false", "layer_idx\": true").refusal(),
        tied().config("\"add_cross_attention\": false", "\"add_cross_attention\": true").refusal(),
        tied().config("\"n_head\": 2", "\"n_head\": 3").refusal(),
        tied().config("\"n_layer\": 2", "\"n_layer\": 0").refusal(),
        tied().config("\"n_layer\": 2", "\"n_layers\": 2").refusal(),
        tied().config("{", "").refusal(),
        tied().config("\"n_layer\": 2", "\"n_layer\": 3").refusal(),
        tied().config("\"n_layer\": 2", "\"n_layer\": 1").refusal(),
        tied().config("\"n_inner\": 24", "\"n_inner\": null").refusal(),
        tied().config("\"n_positions\": 20", "\"n_positions\": 40").refusal(),
        tied().config("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false").refusal(),
        tied().tensor(None, Some("transformer.h.1.mlp.c_fc.bias")).refusal(),
        tied().tensor(Some("score.weight"), None).refusal(),
        tied().with("model.safetensors", &whole[..whole.len() - 100]).refusal(),
        tied().with("model.safetensors", long).refusal(),
        tied().without("model.safetensors").refusal(),
        tied().without("model.safetensors").with("pytorch_model.bin", "PK").refusal(),
        tied().without("config.json").refusal(),
        tied().without("tokenizer.json").refusal(),
        tied().with("tokenizer.json", "{}").refusal(),
        tied()
            .replace("tokenizer.json", "\"added_tokens\": [", &format!("\"added_tokens\": {added}"))
            .refusal(),
        sharded().without("model-00002-of-00004.safetensors").refusal(),
        sharded().replace(index, "model-00002", "../model-00002").refusal(),
        sharded().replace(index, "ln_f.bias", "ln_g.bias").refusal(),
        sharded().with(index, "[]").refusal(),
    ];
    insta::assert_snapshot!(refused.join("\n"));
    let absent = ForeignModel::open(Path::new("nowhere")).unwrap_err().to_string();
    assert_eq!(absent, "nowhere is not a Hugging Face model folder: it does not exist");
}

#[test]
fn a_head_must_fit_its_trunk_and_classes() {
    let folder = tempfile::tempdir().unwrap();
    let model = crate::export::model(&folder.path().join("model"), true, false);
    let exported = folder.path().join("exported");
    export(&model, None, &exported, &mut |_| true).unwrap();
    let refusal = |change: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        copy(&exported, folder.path());
        change(folder.path());
        let error = ForeignModel::open(folder.path()).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "HERE")
    };
    let replace = |name: &'static str, from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            fs::write(folder.join(name), text.replace(from, to)).unwrap();
        }
    };
    let refused = [
        refusal(&|folder| fs::remove_file(folder.join("classes.json")).unwrap()),
        refusal(&replace("classes.json", "24", "25")),
        refusal(&replace("config.json", "class_ends", "classes")),
        refusal(&replace("config.json", "36", "60")),
        refusal(&replace("config.json", "36", "6")),
        refusal(&replace("config.json", "f2_gpt2", "gpt2")),
        refusal(&replace("config.json", "\"vocab_size\": 61", "\"vocab_size\": 62")),
        refusal(&|folder| {
            let counts = r#"{"version":1,"tokens":3,"unseen":0,"counts":[2,1]}"#;
            fs::write(folder.join("counts.json"), counts).unwrap();
        }),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

/// `exchange_fuzz.rs` tests fuzzed folders, but cannot put a pipe in place of a file.
#[cfg(unix)]
#[test]
fn nothing_waits_for_a_pipe() {
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let damaged = Damaged::new("tied").without(name);
        let made = std::process::Command::new("mkfifo").arg(damaged.file(name)).status().unwrap();
        assert!(made.success());
        assert_eq!(damaged.refusal(), format!("HERE/{name}: it is not a file"));
    }
}

type Write<'a> = &'a dyn Fn(&Path, &mut dyn FnMut(usize) -> bool) -> Result<(), ExchangeError>;

/// Both ways of writing a folder.
fn each_way(check: impl Fn(&Path, Write<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    let foreign = ForeignModel::open(&hub("tied")).unwrap();
    foreign.write(&folder.path().join("model"), &mut |_| true).unwrap();
    let model = SavedModel::open(&folder.path().join("model"), Pick::Best).unwrap();
    check(&folder.path().join("imported"), &|out, go_on| foreign.write(out, go_on));
    check(&folder.path().join("exported"), &|out, go_on| export(&model, None, out, go_on));
}

#[test]
fn a_folder_that_appears_during_the_writing_stays() {
    each_way(|out, write| {
        let mut put = |_| {
            fs::create_dir_all(out).unwrap();
            fs::write(out.join("thesis.txt"), "the only copy").unwrap();
            true
        };
        let refused = write(out, &mut put).unwrap_err();
        assert!(matches!(refused, ExchangeError::Exists { .. }), "{refused}");
        assert_eq!(fs::read_to_string(out.join("thesis.txt")).unwrap(), "the only copy");
        assert_eq!(fs::read_dir(out).unwrap().count(), 1);
    });
}

#[test]
fn a_folder_is_written_by_one_process() {
    each_way(|out, write| {
        let lock = Lock::beside(out).unwrap();
        let refused = write(out, &mut |_| true).unwrap_err();
        assert!(matches!(refused, ExchangeError::Lock(_)), "{refused}");
        drop(lock);
        write(out, &mut |_| {
            assert!(Lock::beside(out).is_err());
            true
        })
        .unwrap();
        assert!(out.join("model.safetensors").exists());
    });
}
