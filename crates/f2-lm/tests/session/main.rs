//! Whole runs on a small text: that they learn, survive, and resume exactly where they were.

mod documents;
mod failures;
mod pairs;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use f2_engine::Cpu;
use f2_lm::Error;
use f2_lm::bench::zipf_tokens;
use f2_lm::config::{ObjectiveName, TrainConfig};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::{CorpusRecord, Event, Manifest, RunFolder, checkpoint, read_events};
use f2_lm::train::{Ending, Session, Splits, Trainer};

const VOCABULARY: usize = 53;
const STEPS: u64 = 12;

/// A text with structure to learn: each token is often followed by the same other.
fn text(tokens: usize, seed: u64) -> Vec<u32> {
    let mut text = zipf_tokens(VOCABULARY, tokens, seed);
    for place in 1..tokens {
        if place % 3 != 0 {
            text[place] = (text[place - 1] * 7 + 3) % VOCABULARY as u32;
        }
    }
    text
}

fn config(objective: ObjectiveName) -> TrainConfig {
    let mut config = TrainConfig { seed: 11, ..TrainConfig::default() };
    (config.model.layers, config.model.width) = (2, 20);
    (config.model.heads, config.model.feed_forward) = (2, 36);
    (config.batch.sequence, config.batch.size, config.batch.micro) = (9, 4, 2);
    config.objective.name = objective;
    (config.unlikelihood.prefix, config.unlikelihood.continuation) = (2, 3);
    config.unlikelihood.ngram = 1;
    config.optimiser.learning_rate = 1e-2;
    config.schedule.warmup_steps = 3;
    config.budget.steps = Some(STEPS);
    config.evaluation.every_steps = 4;
    (config.checkpoint.every_steps, config.checkpoint.every_minutes) = (3, 0.0);
    config
}

fn class_ends(objective: ObjectiveName) -> Vec<u32> {
    if objective.needs_classes() { vec![2, 9, VOCABULARY as u32] } else { Vec::new() }
}

fn manifest() -> Manifest {
    let corpus = CorpusRecord {
        path: "corpus".into(),
        counts_sha256: String::new(),
        tokenizer_sha256: String::new(),
        vocabulary: VOCABULARY,
        train_tokens: 0,
        valid_tokens: 0,
    };
    Manifest::new(corpus, None, 0, "cpu", 1)
}

fn trainer(config: &TrainConfig, class_ends: Vec<u32>) -> Trainer<Cpu> {
    let decoder = Decoder::new(ModelShape {
        model: config.model.clone(),
        positions: config.batch.sequence,
        vocabulary: VOCABULARY,
        class_ends,
    });
    Trainer::new(Cpu::new(2).unwrap(), decoder, config).unwrap()
}

/// One session in `folder`, begun or resumed. `observer` sees every event and may ask to stop.
fn session(
    folder: &Path,
    config: &TrainConfig,
    class_ends: Vec<u32>,
    resume: bool,
    observer: &mut dyn FnMut(&Event, &AtomicBool),
) -> Result<Ending, Error> {
    let stop = AtomicBool::new(false);
    let mut observe = |event: &Event| observer(event, &stop);
    let asked = || stop.load(Ordering::Relaxed);
    run_with(folder, config, class_ends, resume, &mut observe, &asked)
}

/// One session in `folder`, begun or resumed, until `stop` returns true.
fn run_with(
    folder: &Path,
    config: &TrainConfig,
    class_ends: Vec<u32>,
    resume: bool,
    observer: &mut dyn FnMut(&Event),
    stop: &dyn Fn() -> bool,
) -> Result<Ending, Error> {
    let (train, valid) = (text(400, 1), text(100, 2));
    let run = if resume {
        RunFolder::open(folder)?
    } else {
        RunFolder::create(folder, config.clone(), manifest())?
    };
    let latest = if resume { run.latest_checkpoint()? } else { None };
    let attachments = vec![("tokenizer.json".to_owned(), b"{}".to_vec())];
    let text = Splits { train: &train, valid: &valid, end_of_text: Some(0) };
    let trainer = trainer(config, class_ends);
    let mut session = Session::new(trainer, run, text, attachments, 2, observer)?;
    if let Some(latest) = latest {
        let state = checkpoint::open(&latest)?;
        session.restore(&latest, state)?;
    }
    session.run(stop)
}

fn whole_run(folder: &Path, objective: ObjectiveName) -> Result<Ending, Error> {
    session(folder, &config(objective), class_ends(objective), false, &mut |_, _| {})
}

fn tensors(folder: &Path, step: u64) -> [Vec<u8>; 2] {
    let checkpoint = checkpoint::path(&folder.join("checkpoints"), step);
    [checkpoint::MODEL, checkpoint::OPTIMISER].map(|name| fs::read(checkpoint.join(name)).unwrap())
}

fn losses(folder: &Path) -> Vec<(u64, f64)> {
    let events = read_events(&folder.join("events.jsonl")).unwrap();
    let loss = |event| match event {
        Event::Step { step, loss, .. } => Some((step, loss)),
        _ => None,
    };
    events.into_iter().filter_map(loss).collect()
}

#[test]
fn a_stopped_run_goes_on_bit_for_bit() {
    for objective in ObjectiveName::ALL {
        let parent = tempfile::tempdir().unwrap();
        let (whole, stopped) = (parent.path().join("whole"), parent.path().join("stopped"));
        assert_eq!(whole_run(&whole, objective).unwrap(), Ending::Complete);
        let (config, ends) = (config(objective), class_ends(objective));
        let mut stop_after_five = |event: &Event, stop: &AtomicBool| {
            stop.store(matches!(event, Event::Step { step: 5, .. }), Ordering::Relaxed);
        };
        let ending = session(&stopped, &config, ends.clone(), false, &mut stop_after_five);
        assert_eq!(ending.unwrap(), Ending::Stopped);
        assert!(stopped.join("checkpoints/step-5").exists());
        let ending = session(&stopped, &config, ends, true, &mut |_, _| {});
        assert_eq!(ending.unwrap(), Ending::Complete);
        assert_eq!(tensors(&whole, STEPS), tensors(&stopped, STEPS));
        assert_eq!(losses(&whole), losses(&stopped));
    }
}

#[test]
fn a_complete_run_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    whole_run(folder.path(), ObjectiveName::Mle).unwrap();
    let events = fs::read(folder.path().join("events.jsonl")).unwrap();
    let ending =
        session(folder.path(), &config(ObjectiveName::Mle), Vec::new(), true, &mut |_, _| {});
    assert_eq!(ending.unwrap(), Ending::AlreadyComplete);
    assert_eq!(events, fs::read(folder.path().join("events.jsonl")).unwrap());
}

/// At a rate of zero nothing gets better: the first evaluation is the best, and two more end it.
#[test]
fn patience_ends_a_run_that_no_longer_improves() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(ObjectiveName::Mle);
    config.optimiser.learning_rate = 0.0;
    (config.evaluation.every_steps, config.evaluation.patience) = (2, 2);
    let run = |resume| session(folder.path(), &config, Vec::new(), resume, &mut |_, _| {});
    assert_eq!(run(false).unwrap(), Ending::Complete);
    let state = checkpoint::open(&folder.path().join("checkpoints/step-6")).unwrap();
    assert_eq!((state.best.unwrap().step, state.evaluations_since_best), (2, 2));
    assert_eq!(run(true).unwrap(), Ending::AlreadyComplete);
}

/// Fine-tuning trades perplexity away: none of its checkpoints counts as the best.
#[test]
fn the_best_of_a_fine_tuned_model_is_its_last() {
    let folder = tempfile::tempdir().unwrap();
    whole_run(folder.path(), ObjectiveName::Face).unwrap();
    let state = checkpoint::open(&folder.path().join("checkpoints/step-12")).unwrap();
    assert_eq!(state.best, None);
    assert_eq!(checkpoint::steps(&folder.path().join("checkpoints")).unwrap(), [STEPS]);
}

#[test]
fn the_last_and_the_best_checkpoint_stay() {
    let folder = tempfile::tempdir().unwrap();
    whole_run(folder.path(), ObjectiveName::F2).unwrap();
    let steps = checkpoint::steps(&folder.path().join("checkpoints")).unwrap();
    let state = checkpoint::open(&folder.path().join("checkpoints/step-12")).unwrap();
    let best = state.best.unwrap().step;
    let mut expected = vec![best, STEPS];
    expected.dedup();
    assert_eq!(steps, expected);
    assert_eq!((state.step, state.updates, state.tokens), (12, 12, 12 * 4 * 9));
    assert!(state.files.contains_key("tokenizer.json"));
}

/// Objectives that train from scratch must learn the bigrams: the entropy of this text given the
/// token before is a third of that of a Zipf draw.
#[test]
fn objectives_learn() {
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Unlikelihood] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(objective);
        config.budget.steps = Some(150);
        config.model.dropout = 0.0;
        let mut perplexity = f64::INFINITY;
        let mut observer = |event: &Event, _: &AtomicBool| {
            if let Event::Evaluated { perplexity: now, .. } = event {
                perplexity = *now;
            }
        };
        session(folder.path(), &config, class_ends(objective), false, &mut observer).unwrap();
        assert!(perplexity < 15.0, "{objective:?}: {perplexity}");
    }
}

/// With one class F² is the plain softmax: the class costs nothing, and its vector gets no
/// gradient.
#[test]
fn one_class_is_maximum_likelihood_exactly() {
    let parent = tempfile::tempdir().unwrap();
    let (plain, f2) = (parent.path().join("plain"), parent.path().join("f2"));
    whole_run(&plain, ObjectiveName::Mle).unwrap();
    let one = vec![VOCABULARY as u32];
    session(&f2, &config(ObjectiveName::F2), one, false, &mut |_, _| {}).unwrap();
    assert_eq!(losses(&plain), losses(&f2));
    let [plain, _] = tensors(&plain, STEPS);
    let [f2, _] = tensors(&f2, STEPS);
    let plain = safetensors::SafeTensors::deserialize(&plain).unwrap();
    let f2 = safetensors::SafeTensors::deserialize(&f2).unwrap();
    for (name, tensor) in plain.iter() {
        assert_eq!(tensor.data(), f2.tensor(name).unwrap().data(), "{name}");
    }
}

/// A run that is stopped in an evaluation, before it, or at the very end makes the evaluation when
/// it is resumed: it ends with the same best checkpoint as one that was not stopped.
#[test]
fn an_evaluation_lost_by_a_stop_is_made_up() {
    let config = config(ObjectiveName::Mle);
    let parent = tempfile::tempdir().unwrap();
    let whole = parent.path().join("whole");
    whole_run(&whole, ObjectiveName::Mle).unwrap();
    let end = |folder: &Path| {
        let state = checkpoint::open(&folder.join("checkpoints/step-12")).unwrap();
        (state.best, state.evaluations_since_best, tensors(folder, STEPS))
    };
    for at in [4, 8, STEPS] {
        // At the first poll, and at the second, which is the first within the evaluation.
        for polls in [0, 1] {
            let folder = parent.path().join(format!("stopped-{at}-{polls}"));
            let asked = session_stopped_at(&folder, &config, at, polls);
            assert_eq!(asked.unwrap(), Ending::Stopped, "{at}, {polls}");
            // Stopped once more, it is still made.
            let again = session_stopped_at(&folder, &config, at, 0);
            assert_eq!(again.unwrap(), Ending::Stopped, "{at}, {polls}");
            let ending = session(&folder, &config, Vec::new(), true, &mut |_, _| {});
            assert_eq!(ending.unwrap(), Ending::Complete, "{at}, {polls}");
            assert_eq!(end(&folder), end(&whole), "{at}, {polls}");
            let ending = session(&folder, &config, Vec::new(), true, &mut |_, _| {});
            assert_eq!(ending.unwrap(), Ending::AlreadyComplete, "{at}, {polls}");
        }
    }
}

/// Starts or resumes a run and stops it once step `at` is done, after `polls` more polls of the
/// request to stop.
fn session_stopped_at(
    folder: &Path,
    config: &TrainConfig,
    at: u64,
    polls: usize,
) -> Result<Ending, Error> {
    let (reached, polled) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut observer = |event: &Event| {
        let now =
            matches!(event, Event::Step { step, .. } | Event::Started { step, .. } if *step == at);
        reached.fetch_or(now, Ordering::Relaxed);
    };
    let stop =
        || reached.load(Ordering::Relaxed) && polled.fetch_add(1, Ordering::Relaxed) >= polls;
    let resume = folder.join("config.toml").exists();
    run_with(folder, config, Vec::new(), resume, &mut observer, &stop)
}
