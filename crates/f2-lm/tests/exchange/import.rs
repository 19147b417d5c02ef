//! Import of folders of `transformers`.

use std::fs;

use safetensors::SafeTensors;

use crate::{FOLDERS, assert_close, hub, import, run};

#[test]
fn logits_are_those_of_transformers() {
    let bytes = fs::read(hub("logits.safetensors")).unwrap();
    let frozen = SafeTensors::deserialize(&bytes).unwrap();
    let ids = frozen.tensor("tokens").unwrap();
    let tokens: Vec<u32> =
        ids.data().as_chunks().0.iter().map(|id| i64::from_le_bytes(*id) as u32).collect();
    let (_, about) = SafeTensors::read_metadata(&bytes).unwrap();
    let text = about.metadata().as_ref().unwrap()["text"].clone();
    for folder in FOLDERS {
        let out = tempfile::tempdir().unwrap();
        let model = import(&hub(folder), &out.path().join("model")).unwrap();
        let encoded = model.vocabulary.encode(&text).unwrap();
        assert_eq!(encoded[..tokens.len()], tokens, "{folder}");
        assert_eq!(model.vocabulary.decode(&encoded).unwrap(), text, "{folder}");
        assert_eq!(model.vocabulary.encode("<|endoftext|>").unwrap(), [0], "{folder}");
        let expected = frozen.tensor(folder).unwrap();
        let expected: Vec<f32> =
            expected.data().as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
        assert_close(&run(&model, &tokens).1, &expected, folder);
        assert_eq!(model.shape.model.tied, !folder.contains("untied") && folder != "sharded");
    }
}

/// The configuration says tied, the weights say otherwise: `transformers` believes the weights.
#[test]
fn an_output_matrix_of_its_own_is_kept_whatever_the_configuration_says() {
    let folder = tempfile::tempdir().unwrap();
    let claimed = folder.path().join("claimed");
    crate::copy(&hub("untied"), &claimed);
    let config = fs::read_to_string(claimed.join("config.json")).unwrap();
    let lie = config.replace("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    assert_ne!(lie, config);
    fs::write(claimed.join("config.json"), lie).unwrap();
    let believed = import(&claimed, &folder.path().join("believed")).unwrap();
    let untied = import(&hub("untied"), &folder.path().join("untied-model")).unwrap();
    assert!(!believed.shape.model.tied);
    assert_eq!(run(&believed, &[5, 9, 2]), run(&untied, &[5, 9, 2]));
}

#[test]
fn a_stopped_import_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("model");
    let model = f2_lm::exchange::ForeignModel::open(&hub("tied")).unwrap();
    let mut written = 0;
    let stopped = model.write(&out, &mut |parameters| {
        written += parameters;
        written < 1_000
    });
    assert!(matches!(stopped, Err(f2_lm::exchange::ExchangeError::Interrupted)));
    assert!(written < model.parameters());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
