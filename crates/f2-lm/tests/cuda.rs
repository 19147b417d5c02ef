//! Training and generation on a GPU. Skipped, with a remark, if there is none.

use std::ops::Range;

use f2_engine::{Bf16, Cpu, Cuda, Device, F32, Parameter, cuda_is_present};
use f2_lm::batch::{TokenSource, TrainingBatches};
use f2_lm::bench::{zipf_class_ends, zipf_tokens};
use f2_lm::config::{ConfigLayers, ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::decode::{Generator, Request, Strategy, Truncations};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::train::Trainer;

const VOCABULARY: usize = 300;

/// Whether the GPU is the one of `emulator/`, which is slow.
fn is_emulated() -> bool {
    let model = Cuda::<F32>::new(0).and_then(|device| device.model());
    model.is_ok_and(|model| model.starts_with("emulated"))
}

/// Steps of a training: operations are recorded in the second and replayed from the third on.
fn steps() -> u64 {
    if is_emulated() { 4 } else { 8 }
}

fn config(objective: ObjectiveName) -> TrainConfig {
    let mut config = ConfigLayers::new().resolve().unwrap().config;
    (config.model.layers, config.model.width, config.model.heads) = (2, 128, 2);
    config.model.feed_forward = 256;
    (config.batch.sequence, config.batch.size, config.batch.micro) = (48, 8, 4);
    config.objective.name = objective;
    config.optimiser.learning_rate = 1e-3;
    config
}

fn decoder(config: &TrainConfig) -> Decoder {
    let classes = config.objective.name.needs_classes();
    Decoder::new(ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary: VOCABULARY,
        class_ends: if classes { zipf_class_ends(VOCABULARY, 5) } else { Vec::new() },
    })
}

/// A trainer after some steps, and the losses on the way.
fn train<D: Device>(device: D, config: &TrainConfig, ahead: bool) -> (Trainer<D>, Vec<f32>) {
    train_on(device, config, &zipf_tokens(VOCABULARY, 4000, 3), ahead)
}

fn train_on<D: Device>(
    device: D,
    config: &TrainConfig,
    text: &dyn TokenSource,
    ahead: bool,
) -> (Trainer<D>, Vec<f32>) {
    let mut trainer = Trainer::new(device, decoder(config), config).unwrap();
    let batches = TrainingBatches::new(text, &config.batch, 1).unwrap();
    let losses = (0..steps()).map(|step| {
        let update = config.optimiser.update(step + 1, 1.0);
        // The last step is followed by one that is never made.
        trainer.step(&batches, text, step, update, ahead).unwrap().loss
    });
    let losses = losses.collect();
    (trainer, losses)
}

fn weights<D: Device>(trainer: &Trainer<D>) -> Vec<u32> {
    let model = &trainer.network.model;
    let read =
        |parameter: Parameter| model.values(parameter).unwrap().into_iter().map(f32::to_bits);
    model.decoder.layout.parameters().iter().flat_map(|named| read(named.parameter)).collect()
}

fn is_skipped() -> bool {
    cuda_is_present().inspect_err(|reason| eprintln!("skipped: {reason}")).is_err()
}

#[test]
fn a_step_begun_ahead_is_the_same_step() {
    if is_skipped() {
        return;
    }
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Face] {
        let config = config(objective);
        let (one, losses) = train(Cuda::<Bf16>::new(0).unwrap(), &config, false);
        let (other, losses_ahead) = train(Cuda::<Bf16>::new(0).unwrap(), &config, true);
        assert_eq!(losses, losses_ahead, "{objective:?}");
        assert_eq!(weights(&one), weights(&other), "{objective:?}");
    }
}

#[test]
fn activations_computed_again_give_the_same_bits() {
    if is_skipped() {
        return;
    }
    for (objective, ahead) in [(ObjectiveName::Mle, false), (ObjectiveName::F2, true)] {
        let mut config = config(objective);
        (config.model.layers, config.model.dropout) = (3, 0.1);
        let (saved, losses) = train(Cuda::<Bf16>::new(0).unwrap(), &config, ahead);
        config.batch.recompute = true;
        let (computed, losses_again) = train(Cuda::<Bf16>::new(0).unwrap(), &config, ahead);
        assert_eq!(losses, losses_again, "{objective:?}");
        assert_eq!(weights(&saved), weights(&computed), "{objective:?}");
    }
}

/// The sums of shards are made by operations of their own; the losses are the CPU's all the same.
#[test]
fn a_step_in_shards_is_that_of_the_cpu() {
    if is_skipped() {
        return;
    }
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Face] {
        let mut config = config(objective);
        (config.batch.shards, config.batch.micro) = (4, 1);
        let (_, expected) = train(Cpu::new(0).unwrap(), &config, false);
        let (one, losses) = train(Cuda::<F32>::new(0).unwrap(), &config, false);
        let (other, losses_ahead) = train(Cuda::<F32>::new(0).unwrap(), &config, true);
        assert_eq!(losses, losses_ahead, "{objective:?}");
        assert_eq!(weights(&one), weights(&other), "{objective:?}");
        for (loss, expected) in losses.iter().zip(&expected) {
            assert!((loss - expected).abs() < 1e-3, "{objective:?}: {losses:?}, {expected}");
        }
    }
}

/// Documents of many lengths.
struct Songs(Vec<u32>);

impl TokenSource for Songs {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        self.0.read(range, out);
    }

    fn documents(&self) -> Vec<Range<u64>> {
        let mut ends = vec![0];
        while ends[ends.len() - 1] < TokenSource::len(self) {
            let length = 20 + 37 * ends.len() as u64 % 150;
            ends.push((ends[ends.len() - 1] + length).min(TokenSource::len(self)));
        }
        ends.windows(2).map(|bounds| bounds[0]..bounds[1]).collect()
    }
}

/// Batches of documents change their shape from step to step. If operations recorded for one shape
/// were replayed for another, the result would differ from the CPU's.
#[test]
fn batches_of_many_shapes_train_as_on_the_cpu() {
    if is_skipped() {
        return;
    }
    let songs = Songs(zipf_tokens(VOCABULARY, 12_000, 4));
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Unlikelihood] {
        let mut config = config(objective);
        (config.batch.order, config.batch.shortest) = (WindowOrder::Documents, 20);
        config.batch.sequence = if is_emulated() { 70 } else { 160 };
        config.model.dropout = 0.0;
        let batches = TrainingBatches::new(&songs, &config.batch, 1).unwrap();
        let mut lengths: Vec<usize> = (0..steps()).map(|step| batches.length(step)).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 2, "{lengths:?}");
        let (_, cpu) = train_on(Cpu::new(0).unwrap(), &config, &songs, false);
        let (one, gpu) = train_on(Cuda::<F32>::new(0).unwrap(), &config, &songs, false);
        for (cpu, gpu) in cpu.iter().zip(&gpu) {
            assert!((cpu - gpu).abs() < 1e-3, "{objective:?}: {cpu} is not {gpu}");
        }
        let (other, ahead) = train_on(Cuda::<F32>::new(0).unwrap(), &config, &songs, true);
        assert_eq!((gpu, weights(&one)), (ahead, weights(&other)), "{objective:?}");
    }
}

/// Draws on the GPU against those on the host from the CPU's probabilities: in full precision they
/// differ only if a random number falls on the border of two tokens; from there on the texts
/// differ.
#[test]
fn texts_drawn_by_the_gpu_are_the_cpus() {
    if is_skipped() {
        return;
    }
    let prompts: Vec<Vec<u32>> = (0..40).map(|i| zipf_tokens(VOCABULARY, 5, i)).collect();
    for objective in [ObjectiveName::Mle, ObjectiveName::F2] {
        let config = config(objective);
        let (cpu, _) = train(Cpu::new(0).unwrap(), &config, false);
        let (gpu, _) = train(Cuda::<F32>::new(0).unwrap(), &config, false);
        let accounts = Strategy { deterministic: true, ..Strategy::top_k(3) };
        let joint = Strategy::top_k(3).joint();
        for strategy in [Strategy::greedy(), Strategy::top_k(3), joint, accounts] {
            let expected = write(&cpu, &prompts, &strategy);
            let written = write(&gpu, &prompts, &strategy);
            let same = expected.iter().zip(&written).filter(|(one, other)| one == other).count();
            println!("{objective:?} {strategy:?}: {same} of {} texts", prompts.len());
            assert!(same * 100 >= 95 * prompts.len(), "{objective:?}: {same} texts are the same");
        }
    }
}

/// Every rule, and rules that act on the result of others, with settings that drop tokens of a
/// model that has hardly been trained.
fn truncations() -> Vec<Truncations> {
    let all = Truncations::default();
    let list = vec![
        all.with_top_k(5),
        all.with_top_n_sigma(0.5),
        all.with_typical(0.3),
        all.with_top_p(0.3),
        all.with_min_p(0.8),
        all.with_epsilon_cutoff(0.01),
        all.with_eta_cutoff(1.0),
        all.with_top_k(10).with_top_n_sigma(0.8).with_top_p(0.7),
        all.with_typical(0.6).with_top_p(0.7).with_min_p(0.9),
        all.with_typical(0.5).with_epsilon_cutoff(0.005).with_eta_cutoff(0.9),
    ];
    for rule in Truncations::rules() {
        assert!(list.iter().any(|truncations| truncations.get(rule).is_some()), "{}", rule.key);
    }
    list
}

/// The host draws from the probabilities of the same GPU, because of a penalty that changes none of
/// them.
#[test]
fn the_gpu_truncates_as_the_host_does() {
    if is_skipped() {
        return;
    }
    let decoupled = Strategy { temperature: 0.7, ..Strategy::default() };
    let joint = decoupled.clone().joint();
    truncates_as_the_host(ObjectiveName::Mle, &joint);
    truncates_as_the_host(ObjectiveName::F2, &joint);
    truncates_as_the_host(ObjectiveName::F2, &decoupled);
}

fn truncates_as_the_host(objective: ObjectiveName, strategy: &Strategy) {
    let (gpu, _) = train(Cuda::<F32>::new(0).unwrap(), &config(objective), false);
    let texts = if is_emulated() { 12 } else { 40 };
    let prompts: Vec<Vec<u32>> = (0..texts).map(|i| zipf_tokens(VOCABULARY, 5, i)).collect();
    let unrestricted = write(&gpu, &prompts, strategy);
    for truncations in truncations() {
        let on_gpu = Strategy { truncations, ..strategy.clone() };
        let on_host = Strategy { repetition_penalty: 1.0 + 1e-12, ..on_gpu.clone() };
        let expected = write(&gpu, &prompts, &on_host);
        let written = write(&gpu, &prompts, &on_gpu);
        let same = expected.iter().zip(&written).filter(|(one, other)| one == other).count();
        println!("{objective:?} {truncations:?}: {same} of {texts} texts");
        assert!(expected != unrestricted, "{truncations:?}");
        assert!(same * 100 >= 95 * prompts.len(), "{objective:?} {truncations:?}: {same} texts");
    }
}

fn write<D: Device>(
    trainer: &Trainer<D>,
    prompts: &[Vec<u32>],
    strategy: &Strategy,
) -> Vec<Vec<u32>> {
    let generator = Generator { model: &trainer.network.model };
    let request = Request {
        prompts,
        samples: 1,
        new_tokens: 20,
        strategy,
        seed: 7,
        end: None,
        stops: None,
        earlier: &[],
        batch: Some(16),
    };
    let written = generator.generate(&request, &mut |_| {}, &|| false).unwrap();
    written.texts.iter().map(|text| text.tokens.iter().map(|token| token.id).collect()).collect()
}
