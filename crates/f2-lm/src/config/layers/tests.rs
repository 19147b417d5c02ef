//! Layers of settings: order, origins, fine-tuning, and the messages on mistakes.

use super::*;
use crate::config::ScheduleShape;

fn file(text: &str) -> Result<Resolved, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    ConfigLayers::new().preset(Preset::Demo).file(&path)?.resolve()
}

fn complaint(text: &str) -> String {
    let message = file(text).unwrap_err().to_string();
    // The name of the folder is random.
    let (before, after) = message.split_once('/').map_or((message.as_str(), ""), |parts| parts);
    let after = after.split_once("mine.toml").map_or("", |parts| parts.1);
    format!("{before}mine.toml{after}")
}

#[test]
fn every_preset_resolves() {
    for preset in Preset::ALL {
        ConfigLayers::new().preset(preset).resolve().unwrap();
    }
}

#[test]
fn mistakes_name_key_line_and_reason() {
    let cases = [
        "[model]\nlayers = 2\n\n[optimizer]\nlearning_rate = 1e-3\n",
        "[model]\nlayerz = 2\n",
        "learning_rate = 3\n",
        "[model]\nlayers = \"four\"\n",
        "[model]\nlayers = -4\n",
        "[objective]\nname = \"ml\"\n",
        "model = 3\n",
        "[model]\nheads = 3\n",
        "[batch]\n\nmicro = 3\n",
        "[optimiser]\nlearning_rate = nan\n",
        "[model]\nlayers = 2\nlayers = 3\n",
        "[model\nlayers = 2\n",
        "[budget]\nsteps = 0\n",
        "[unlikelihood]\nngram = 0\n",
        "[objective]\nname = \"unlikelihood-sequence\"\n[unlikelihood]\ncontinuation = 79\n",
        "[face]\nvariant = \"oprah\"\n",
    ];
    let complaints: Vec<String> = cases.iter().map(|text| complaint(text)).collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn the_last_layer_wins_and_its_limits_replace_all_below() {
    let resolved = ConfigLayers::new()
        .preset(Preset::Wikitext103)
        .set([("budget.steps", "100", "--steps 100"), ("seed", "7", "--seed 7")])
        .unwrap()
        .resolve()
        .unwrap();
    assert_eq!(resolved.config.budget.steps, Some(100));
    assert_eq!(resolved.config.budget.epochs, None);
    assert_eq!(resolved.config.seed, 7);
    assert_eq!(resolved.origins["model.width"], Origin::Preset(Preset::Wikitext103));
    assert_eq!(resolved.origins["seed"].to_string(), "--seed 7");
}

#[test]
fn fine_tuning_takes_a_tenth_of_what_is_below_and_yields_to_what_is_above() {
    let resolved = ConfigLayers::new()
        .preset(Preset::Wikitext103)
        .fine_tuning()
        .set([("schedule.warmup_steps", "7", "--set schedule.warmup_steps=7")])
        .unwrap()
        .resolve()
        .unwrap();
    assert_eq!(resolved.config.optimiser.learning_rate, 1e-5);
    assert_eq!((resolved.config.budget.steps, resolved.config.budget.epochs), (Some(1_500), None));
    assert_eq!(resolved.config.schedule.warmup_steps, 7);
    assert_eq!(resolved.config.schedule.shape, ScheduleShape::Constant);
    assert_eq!(resolved.origins["optimiser.learning_rate"], Origin::FineTuning);
    let from_default = ConfigLayers::new().fine_tuning().resolve().unwrap().config;
    assert_eq!(from_default.optimiser.learning_rate, 3e-5);
}

#[test]
fn a_resolved_configuration_reads_back_the_same() {
    let resolved = ConfigLayers::new().preset(Preset::Lyrics).resolve().unwrap();
    let text = toml::to_string(&resolved.config).unwrap();
    assert_eq!(file(&text).unwrap().config, resolved.config);
}

/// TOML's whole numbers end at 2⁶³ - 1, seeds at 2⁶⁴ - 1.
#[test]
fn any_seed_can_be_given_written_and_read() {
    for seed in [0, 7, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let given = seed.to_string();
        let layers = ConfigLayers::new().set([("seed", given.as_str(), "--seed")]).unwrap();
        let config = layers.resolve().unwrap().config;
        assert_eq!(config.seed, seed);
        assert_eq!(file(&toml::to_string(&config).unwrap()).unwrap().config.seed, seed);
        assert!(flatten(&config)["seed"].contains(&given));
    }
    for wrong in ["-1", "18446744073709551616", "1.5", "one"] {
        let refused = ConfigLayers::new().set([("seed", wrong, "--seed")]).unwrap_err();
        assert!(refused.to_string().contains("expected a whole number"), "{refused}");
    }
}

#[test]
fn every_setting_elsewhere_leads_to_one_of_ours() {
    let keys = known_keys();
    for name in ["lr", "batch_size", "epochs", "dropout", "n_head", "warmup", "seq_len", "loss"] {
        let refused = ConfigLayers::new().set([(name, "1", "--set")]).unwrap_err();
        let Error::UnknownKey { nearest: Some(key), .. } = &refused else { panic!("{refused}") };
        assert!(keys.contains(key), "{name}: {key}");
    }
}

#[test]
fn every_key_of_a_full_configuration_is_known() {
    assert!(known_keys().contains(&"budget.minutes".to_owned()));
    assert!(known_keys().contains(&"seed".to_owned()));
    assert!(known_keys().contains(&"model.vocabulary".to_owned()));
}
