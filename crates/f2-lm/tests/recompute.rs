//! Activations recomputed for the backward pass: less memory, the same bits.

mod workshop;

use std::fs;

use f2_engine::{Bf16, Cpu, Cuda};
use f2_lm::config::{ConfigLayers, ObjectiveName, Preset};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::{Event, checkpoint, read_events};
use f2_lm::train::{Ending, GivenSettings, NewRun, RunCost};

use workshop::Workshop;

const STEPS: u64 = 4;

fn settings(objective: ObjectiveName, recompute: bool) -> GivenSettings {
    let settings = [
        ("seed", "11"),
        ("model.layers", "3"),
        ("model.width", "24"),
        ("model.heads", "2"),
        ("model.feed_forward", "40"),
        ("model.dropout", "0.2"),
        ("batch.sequence", "9"),
        ("batch.size", "4"),
        ("batch.micro", "2"),
        ("unlikelihood.prefix", "2"),
        ("unlikelihood.continuation", "3"),
        ("unlikelihood.ngram", "1"),
        ("optimiser.learning_rate", "0.01"),
        ("schedule.warmup_steps", "2"),
        ("evaluation.every_steps", "2"),
        ("evaluation.max_tokens", "300"),
    ];
    let settings =
        settings.iter().fold(GivenSettings::default(), |all, (key, value)| all.set(key, value));
    let settings = settings.set("budget.steps", &STEPS.to_string());
    let settings = settings.set("objective.name", objective.as_str());
    if recompute { settings.set("batch.recompute", "true") } else { settings }
}

/// The parameters, the moments, and every loss.
fn trained(
    workshop: &Workshop,
    name: &str,
    objective: ObjectiveName,
    recompute: bool,
) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let out = workshop.path(name);
    let mut run = NewRun::new(&workshop.path("corpus"), &out, settings(objective, recompute));
    run.init = objective.fine_tunes().then(|| workshop.path("initial"));
    let cpu = Cpu::new(2).unwrap();
    let prepared = run.prepare(&cpu, 2).unwrap();
    let (ending, _) = prepared.train(cpu, 2, &mut |_| {}, &|| false).unwrap();
    assert_eq!(ending, Ending::Complete);
    let checkpoint = checkpoint::path(&out.join("checkpoints"), STEPS);
    let read = |name| fs::read(checkpoint.join(name)).unwrap();
    let losses = read_events(&out.join("events.jsonl")).unwrap().into_iter();
    let losses = losses.filter_map(|event| match event {
        Event::Step { loss, gradient_norm, .. } => Some(format!("{loss} {gradient_norm}")),
        Event::Evaluated { loss, .. } => Some(format!("valid {loss}")),
        _ => None,
    });
    (read(checkpoint::MODEL), read(checkpoint::OPTIMISER), losses.collect())
}

#[test]
fn every_objective_ends_in_the_same_bits() {
    let workshop = Workshop::new();
    trained(&workshop, "initial", ObjectiveName::Mle, false);
    for objective in ObjectiveName::ALL {
        let [kept, again] = [false, true].map(|recompute| {
            let name = format!("{}-{recompute}", objective.as_str());
            trained(&workshop, &name, objective, recompute)
        });
        assert_eq!(again.2, kept.2, "{objective:?}");
        assert!(again == kept, "{objective:?}");
    }
}

/// Runs that save all activations do not mention it, as before the setting existed.
#[test]
fn the_setting_is_written_where_it_is_given() {
    let workshop = Workshop::new();
    for recompute in [false, true] {
        let name = format!("written-{recompute}");
        trained(&workshop, &name, ObjectiveName::Mle, recompute);
        let text = fs::read_to_string(workshop.path(&name).join("config.toml")).unwrap();
        assert_eq!(text.contains("recompute = true"), recompute, "{text}");
        assert_eq!(text.contains("recompute"), recompute, "{text}");
    }
}

/// GPT-2 medium with 32 windows in memory, in bf16.
#[test]
fn the_inputs_of_blocks_are_a_fifth_of_all() {
    let mut config = ConfigLayers::new().preset(Preset::Gpt2Medium).resolve().unwrap().config;
    let (model, positions) = (config.model.clone(), config.batch.sequence);
    let shape = ModelShape { model, positions, vocabulary: 50_257, class_ends: Vec::new() };
    let decoder = Decoder::new(shape);
    let bytes = [false, true].map(|recompute| {
        config.batch.recompute = recompute;
        let cost = RunCost::new::<Cuda<Bf16>>(&decoder, &config, 50_257.0);
        println!("recompute = {recompute}: {cost:?}");
        assert!(cost.bytes() < 139 << 30, "{cost:?}");
        cost.activation_bytes as f64
    });
    let share = bytes[1] / bytes[0];
    assert!((0.15..0.2).contains(&share), "{share}");
}
