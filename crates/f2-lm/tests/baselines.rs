//! One step of every baseline beside PyTorch, on the decoder of `pytorch.rs`. `oracle/baselines.py`
//! froze the values; its sequence step keeps the graph of every token it chooses.

mod frozen;

use f2_engine::Cpu;
use f2_lm::config::{FaceVariant, ObjectiveName, TrainConfig};
use f2_lm::train::Trainer;
use frozen::{assert_gradients, batch, json, trainer};

/// Single precision against double, over a few hundred summed terms.
const LOSS_TOLERANCE: f64 = 1e-5;

/// A trainer after one batch, in micro-batches of `micro` windows, whose loss must be the one
/// frozen under `name`.
fn after_one_batch(
    name: &str,
    micro: usize,
    configure: impl FnOnce(&mut TrainConfig),
) -> Trainer<Cpu> {
    let about = json("baselines.json");
    let mut trainer = trainer(|config| {
        config.batch.micro = micro;
        let settings = &about["unlikelihood"];
        let size = |key: &str| settings[key].as_u64().unwrap() as usize;
        config.unlikelihood.alpha = settings["alpha"].as_f64().unwrap();
        config.unlikelihood.prefix = size("prefix");
        config.unlikelihood.continuation = size("continuation");
        config.unlikelihood.ngram = size("ngram");
        configure(config);
    });
    let (windows, text) = batch(0);
    trainer.accumulate(&windows, &text, 0).unwrap();
    let (found, expected) = (trainer.network.loss().unwrap(), &about["losses"][name]);
    let off = (f64::from(found) / expected.as_f64().unwrap() - 1.0).abs();
    assert!(off < LOSS_TOLERANCE, "{name}: {found} instead of {expected}");
    trainer
}

#[test]
fn token_unlikelihood() {
    for micro in [0, 1] {
        let trainer = after_one_batch("unlikelihood", micro, |config| {
            config.objective.name = ObjectiveName::Unlikelihood;
        });
        assert_gradients(&trainer, "baselines.safetensors", "unlikelihood");
    }
}

/// One pass over the finished continuations gives the gradients of the graph that made them.
#[test]
fn sequence_unlikelihood() {
    let sequence = |rate: f64| {
        move |config: &mut TrainConfig| {
            config.objective.name = ObjectiveName::UnlikelihoodSequence;
            config.unlikelihood.sequence_rate = rate;
            // Dropout must not act on what the model writes.
            config.model.dropout = if rate == 1.0 { 0.5 } else { 0.0 };
        }
    };
    for micro in [0, 1] {
        let trainer = after_one_batch("unlikelihood-sequence", micro, sequence(1.0));
        assert_gradients(&trainer, "baselines.safetensors", "unlikelihood-sequence");
        let trainer = after_one_batch("unlikelihood", micro, sequence(0.0));
        assert_gradients(&trainer, "baselines.safetensors", "unlikelihood");
    }
}

/// However the batch is split, all of it decides the weights.
#[test]
fn face_and_its_variants() {
    let variants = [
        ("face-opr", FaceVariant::Opr),
        ("face-opo", FaceVariant::Opo),
        ("face-gpr", FaceVariant::Gpr),
        ("face-gpo", FaceVariant::Gpo),
    ];
    for (name, variant) in variants {
        for micro in [0, 1] {
            let trainer = after_one_batch(name, micro, |config| {
                config.objective.name = ObjectiveName::Face;
                config.face.variant = variant;
            });
            if variant == FaceVariant::Opr {
                assert_gradients(&trainer, "baselines.safetensors", name);
            }
        }
    }
}
