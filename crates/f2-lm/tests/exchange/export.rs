//! Export of models to folders of `transformers`.

use std::fs;
use std::path::Path;

use f2_classes::{Method, RankCounts, select};
use f2_engine::Cpu;
use f2_lm::config::ModelConfig;
use f2_lm::exchange::export;
use f2_lm::model::{Decoder, Model, ModelShape};
use f2_lm::run::{Pick, SavedModel, checkpoint};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{assert_close, fixture, hub, import, run, tensors};

const VOCABULARY: usize = 61;
const CLASSES: usize = 5;

/// A tokenizer of as many words as the frozen decoder has tokens.
fn tokenizer() -> Value {
    let words = (0..VOCABULARY).map(|word| (format!("w{word}"), json!(word)));
    json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words.collect::<Value>(), "unk_token": "w0"},
    })
}

/// The decoder of `oracle/decoder.py` as a model of `f2`.
pub(crate) fn model(folder: &Path, f2: bool, tied: bool) -> SavedModel {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer().to_string()).unwrap();
    let mut class_ends = Vec::new();
    if f2 {
        let counts: Vec<u64> = (0..VOCABULARY as u64).rev().collect();
        let counts = RankCounts::new(&counts).unwrap();
        let selection = select(&counts, Method::EqualTokens, Some(CLASSES)).unwrap();
        selection.save(&folder.join("classes.json")).unwrap();
        class_ends = selection.classes().ends().iter().map(|end| *end as u32).collect();
    }
    let model = ModelConfig {
        layers: 2,
        width: 24,
        heads: 3,
        feed_forward: 40,
        tied,
        ..ModelConfig::default()
    };
    let decoder =
        Decoder::new(ModelShape { model, positions: 13, vocabulary: VOCABULARY, class_ends });
    let mut model = Model::zeros(Cpu::new(1).unwrap(), decoder.clone()).unwrap();
    let bytes = fs::read(fixture("decoder.safetensors")).unwrap();
    let frozen = SafeTensors::deserialize(&bytes).unwrap();
    for named in decoder.layout.parameters() {
        let values = frozen.tensor(&format!("weight/{}", named.name)).unwrap();
        let values = values.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        model.set_values(named.parameter, &values.collect::<Vec<f32>>());
    }
    checkpoint::save_model(folder, &model).unwrap();
    SavedModel::open(folder, Pick::Best).unwrap()
}

/// A hash of the names, shapes and bytes of all tensors of an exported folder.
fn fingerprint(folder: &Path) -> Value {
    let hash = |name: &str| {
        let mut hash = Sha256::new();
        for (name, shape, bytes) in tensors(&folder.join(name)) {
            hash.update(format!("{name} {shape:?}\n"));
            hash.update(bytes);
        }
        format!("{:x}", hash.finalize())
    };
    json!({"model.safetensors": hash("model.safetensors")})
}

fn floats(value: &Value) -> Vec<f32> {
    let rows = value.as_array().unwrap().iter();
    rows.flat_map(|row| row.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32))
        .collect()
}

/// The frozen values are what `transformers` computed from the same tensors as are exported here.
/// If `F2_EXPORTED` names a folder, the exported models are left there for the oracle.
#[test]
fn transformers_computes_what_the_exported_models_do() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("F2_EXPORTED");
    let target = kept.as_deref().map_or(folder.path(), Path::new);
    let [plain, f2] = [("plain", false), ("f2", true)].map(|(name, f2)| {
        let model = model(&folder.path().join(format!("{name}-model")), f2, false);
        export(&model, None, &target.join(name), &mut |_| true).unwrap();
        model
    });
    if kept.is_some() {
        return;
    }
    let text = fs::read_to_string(fixture("exported.json")).unwrap();
    let frozen: Value = serde_json::from_str(&text).unwrap();
    let tokens: Vec<u32> = serde_json::from_value(frozen["tokens"].clone()).unwrap();
    for (name, model, values) in [("plain", plain, "logits"), ("f2", f2, "log_posterior")] {
        let frozen = &frozen[name];
        assert_eq!(fingerprint(&target.join(name)), frozen["sha256"], "{name}");
        assert_close(&run(&model, &tokens).1, &floats(&frozen[values]), name);
    }
}

/// A model that `transformers` saved is exported unchanged, tensor by tensor, names included.
#[test]
fn an_exported_plain_model_has_the_tensors_transformers_writes() {
    for name in ["tied", "untied"] {
        let folder = tempfile::tempdir().unwrap();
        let model = import(&hub(name), &folder.path().join("model")).unwrap();
        let out = folder.path().join("exported");
        export(&model, None, &out, &mut |_| true).unwrap();
        let saved = tensors(&hub(name).join("model.safetensors"));
        assert_eq!(tensors(&out.join("model.safetensors")), saved, "{name}");
    }
}

#[test]
fn a_folder_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(&folder.path().join("model"), true, false);
    let out = folder.path().join("exported");
    export(&model, None, &out, &mut |_| true).unwrap();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    insta::assert_snapshot!("config", read("config.json"));
    insta::assert_snapshot!("card", read("README.md"));
    insta::assert_snapshot!("tokenizer_config", read("tokenizer_config.json"));
    let all = tensors(&out.join("model.safetensors"));
    let head = all.iter().filter(|(name, ..)| name.starts_with("lm_head."));
    let shapes: Vec<String> = head.map(|(name, shape, _)| format!("{name} {shape:?}")).collect();
    insta::assert_snapshot!(shapes.join("\n"), @r"
    lm_head.tokens.weight [61, 24]
    lm_head.weight [5, 24]
    ");
    for file in ["configuration_f2.py", "modeling_f2.py", "custom_generate/generate.py"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let taken = export(&model, None, &out, &mut |_| true).unwrap_err();
    assert!(taken.to_string().ends_with("exported exists already"), "{taken}");
}
