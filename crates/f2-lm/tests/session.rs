//! Whole runs on a small text: that they learn, survive, and go on exactly where they were.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use f2_engine::Cpu;
use f2_lm::Error;
use f2_lm::batch::{TokenSource, TrainingBatches};
use f2_lm::bench::zipf_tokens;
use f2_lm::config::{BudgetConfig, ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::{CorpusRecord, Event, Manifest, RunFolder, checkpoint, read_events};
use f2_lm::schedule::Budget;
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

/// One session in `folder`, begun or resumed, until `stop` says so.
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

/// Fine-tuning gives perplexity away: none of its checkpoints is called the best by it.
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

/// Objectives from scratch must find what a bigram knows: the entropy of this text given the token
/// before is a third of a Zipf draw's.
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

/// Stopped within an evaluation, after a step that asks for one, or at the very end, a run makes the
/// evaluation up: it ends with the same best checkpoint as one that was left alone.
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
        // Asked at once, and on the second look, which is the first within the evaluation.
        for looks in [0, 1] {
            let folder = parent.path().join(format!("stopped-{at}-{looks}"));
            let asked = session_stopped_at(&folder, &config, at, looks);
            assert_eq!(asked.unwrap(), Ending::Stopped, "{at}, {looks}");
            // Stopped in it once more, it is still made up.
            let again = session_stopped_at(&folder, &config, at, 0);
            assert_eq!(again.unwrap(), Ending::Stopped, "{at}, {looks}");
            let ending = session(&folder, &config, Vec::new(), true, &mut |_, _| {});
            assert_eq!(ending.unwrap(), Ending::Complete, "{at}, {looks}");
            assert_eq!(end(&folder), end(&whole), "{at}, {looks}");
            let ending = session(&folder, &config, Vec::new(), true, &mut |_, _| {});
            assert_eq!(ending.unwrap(), Ending::AlreadyComplete, "{at}, {looks}");
        }
    }
}

/// Begins or goes on with a run and stops it once step `at` is done, after looking `looks` times
/// more whether to stop.
fn session_stopped_at(
    folder: &Path,
    config: &TrainConfig,
    at: u64,
    looks: usize,
) -> Result<Ending, Error> {
    let (reached, looked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut observer = |event: &Event| {
        let now =
            matches!(event, Event::Step { step, .. } | Event::Started { step, .. } if *step == at);
        reached.fetch_or(now, Ordering::Relaxed);
    };
    let stop =
        || reached.load(Ordering::Relaxed) && looked.fetch_add(1, Ordering::Relaxed) >= looks;
    let resume = folder.join("config.toml").exists();
    run_with(folder, config, Vec::new(), resume, &mut observer, &stop)
}

/// A perplexity beyond all numbers is neither the best nor in the way of reading the checkpoint.
#[test]
fn a_perplexity_that_is_no_number_is_never_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(ObjectiveName::Mle);
    config.optimiser.learning_rate = 10.0;
    (config.schedule.warmup_steps, config.optimiser.clip) = (0, 0.0);
    config.evaluation.every_steps = 3;
    let mut worst = 0.0_f64;
    let mut called_best = false;
    let mut observer = |event: &Event, _: &AtomicBool| {
        if let Event::Evaluated { perplexity, best, .. } = event {
            worst = if worst.is_nan() { worst } else { worst.max(*perplexity) };
            called_best |= *best && !perplexity.is_finite();
        }
    };
    let ending = session(folder.path(), &config, Vec::new(), false, &mut observer);
    assert_eq!(ending.unwrap(), Ending::Complete);
    assert!(!worst.is_finite(), "{worst}: the test must see one");
    assert!(!called_best);
    let run = RunFolder::open(folder.path()).unwrap();
    let state = checkpoint::open(&run.latest_checkpoint().unwrap().unwrap()).unwrap();
    assert!(state.best.is_none_or(|best| best.perplexity.is_finite()));
    let evaluated = read_events(&folder.path().join("events.jsonl")).unwrap();
    let evaluated = evaluated.iter().filter(|event| matches!(event, Event::Evaluated { .. }));
    assert_eq!(evaluated.count(), 4);
}

/// The update before the first bad step ruined the parameters: no checkpoint with them stays.
#[test]
fn a_loss_that_is_not_finite_ends_the_run_and_leaves_the_last_good_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(ObjectiveName::Mle);
    config.schedule.warmup_steps = 0;
    (config.checkpoint.every_steps, config.evaluation.every_steps) = (1, 0);
    config.budget.steps = Some(4);
    let calm = session(folder.path(), &config, Vec::new(), false, &mut |_, _| {});
    assert_eq!(calm.unwrap(), Ending::Complete);
    config.optimiser.learning_rate = 1e38;
    config.budget.steps = Some(STEPS);
    let mut run = RunFolder::open(folder.path()).unwrap();
    let changed = ["optimiser".to_owned(), "budget".to_owned()];
    run.change_config(config.clone(), &changed).unwrap();
    let good = tensors(folder.path(), 4);
    let mut skipped = 0;
    let mut observer = |event: &Event, _: &AtomicBool| {
        skipped += u32::from(matches!(event, Event::Skipped { .. }));
    };
    let ended = session(folder.path(), &config, Vec::new(), true, &mut observer);
    assert!(matches!(ended, Err(Error::NotFinite { in_a_row: 5, kept: Some(4), .. })), "{ended:?}");
    assert_eq!(skipped, 5);
    let latest = run.latest_checkpoint().unwrap().unwrap();
    assert_eq!(checkpoint::open(&latest).unwrap().step, 4);
    assert!(tensors(folder.path(), 4) == good);
}

/// Ruined before the first checkpoint, a run has none to go on from, and begins anew.
#[test]
fn a_run_that_was_ruined_from_the_start_keeps_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(ObjectiveName::Mle);
    (config.schedule.warmup_steps, config.optimiser.learning_rate) = (0, 1e15);
    (config.checkpoint.every_steps, config.evaluation.every_steps) = (1, 0);
    let mut saved = 0;
    let mut observer = |event: &Event, _: &AtomicBool| {
        saved += u32::from(matches!(event, Event::Saved { .. }));
    };
    let ended = session(folder.path(), &config, Vec::new(), false, &mut observer);
    assert!(matches!(ended, Err(Error::NotFinite { kept: None, .. })), "{ended:?}");
    assert!(saved > 0, "the test must see a ruined checkpoint");
    let run = RunFolder::open(folder.path()).unwrap();
    assert_eq!(run.latest_checkpoint().unwrap(), None);
}

/// A file where the folder should be refuses every save, whoever runs the test.
#[test]
fn a_failed_save_is_reported_and_training_continues() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = folder.path().join("checkpoints");
    let aside = folder.path().join("aside");
    let mut failures = Vec::new();
    let mut observer = |event: &Event, _: &AtomicBool| match event {
        Event::Saved { step: 3 } => {
            fs::rename(&checkpoints, &aside).unwrap();
            fs::write(&checkpoints, "in the way").unwrap();
        }
        Event::SaveFailed { step, reason } => failures.push((*step, reason.clone())),
        Event::Step { step: 8, .. } => {
            fs::remove_file(&checkpoints).unwrap();
            fs::rename(&aside, &checkpoints).unwrap();
            assert!(checkpoints.join("step-3/state.json").exists());
        }
        _ => {}
    };
    let ending =
        session(folder.path(), &config(ObjectiveName::Mle), Vec::new(), false, &mut observer);
    assert_eq!(ending.unwrap(), Ending::Complete);
    let steps: Vec<u64> = failures.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [3, 4, 6]);
    assert!(failures.iter().all(|(_, reason)| reason.contains("cannot write")), "{failures:?}");
}

/// A run whose newest checkpoint went through `damage`; gives the complaint of resuming it.
fn complaint(damage: impl FnOnce(PathBuf)) -> String {
    let folder = tempfile::tempdir().unwrap();
    whole_run(folder.path(), ObjectiveName::Mle).unwrap();
    damage(folder.path().join("checkpoints/step-12"));
    let mut longer = config(ObjectiveName::Mle);
    longer.budget.steps = Some(20);
    let mut run = RunFolder::open(folder.path()).unwrap();
    run.change_config(longer.clone(), &["budget".to_owned()]).unwrap();
    let error = session(folder.path(), &longer, Vec::new(), true, &mut |_, _| {}).unwrap_err();
    error.to_string().replace(&folder.path().display().to_string(), "RUN")
}

fn edit(path: PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_checkpoints_are_named() {
    let complaints = [
        complaint(|folder| edit(folder.join(checkpoint::MODEL), |bytes| bytes.truncate(100))),
        complaint(|folder| edit(folder.join(checkpoint::STATE), |bytes| bytes.truncate(40))),
        complaint(|folder| fs::remove_file(folder.join(checkpoint::OPTIMISER)).unwrap()),
        complaint(|folder| fs::remove_file(folder.join(checkpoint::STATE)).unwrap()),
    ];
    insta::assert_snapshot!(complaints.join("\n"));
    let flipped = complaint(|folder| {
        edit(folder.join(checkpoint::OPTIMISER), |bytes| {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        });
    });
    assert!(
        flipped.contains("optimizer.safetensors cannot be used: its content changed"),
        "{flipped}"
    );
}

/// A whole checkpoint of another model: the tensor that does not fit is named with both shapes.
#[test]
fn a_foreign_checkpoint_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (mine, other) = (parent.path().join("mine"), parent.path().join("other"));
    whole_run(&mine, ObjectiveName::Mle).unwrap();
    let mut narrow = config(ObjectiveName::Mle);
    narrow.model.width = 10;
    session(&other, &narrow, Vec::new(), false, &mut |_, _| {}).unwrap();
    let (from, to) = (other.join("checkpoints/step-12"), mine.join("checkpoints/step-13"));
    fs::rename(from, to).unwrap();
    let refused = session(&mine, &config(ObjectiveName::Mle), Vec::new(), true, &mut |_, _| {});
    let message = refused.unwrap_err().to_string();
    assert!(
        message.ends_with("tensor `embedding.tokens` has shape [53, 10]; the model needs [53, 20]"),
        "{message}"
    );
}

/// Short documents, each a row with room to spare.
struct Songs(Vec<Vec<u32>>);

impl TokenSource for Songs {
    fn len(&self) -> u64 {
        self.0.iter().map(|song| song.len() as u64).sum()
    }

    fn read(&self, range: Range<u64>, out: &mut [u32]) {
        self.0.concat().read(range, out);
    }

    fn documents(&self) -> Vec<Range<u64>> {
        let starts = self.0.iter().scan(0, |end, song| {
            *end += song.len() as u64;
            Some(*end - song.len() as u64..*end)
        });
        starts.collect()
    }
}

/// A limit in tokens counts targets, in the plan as in the run: padding is none of them.
#[test]
fn a_limit_in_tokens_is_reached_whatever_the_padding() {
    let songs = Songs((0..40).map(|song| text(6 + song % 9, song as u64)).collect());
    let mut config = config(ObjectiveName::Mle);
    (config.batch.sequence, config.batch.order) = (64, WindowOrder::Documents);
    config.budget = BudgetConfig { tokens: Some(500), ..BudgetConfig::default() };
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), config.clone(), manifest()).unwrap();
    let splits = Splits { train: &songs, valid: &Vec::new(), end_of_text: None };
    let mut tokens = Vec::new();
    let mut observe = |event: &Event| {
        if let Event::Step { tokens: so_far, .. } = event {
            tokens.push(*so_far);
        }
    };
    let trainer = trainer(&config, Vec::new());
    let mut session = Session::new(trainer, run, splits, Vec::new(), 2, &mut observe).unwrap();
    session.run(&|| false).unwrap();
    assert!(tokens[tokens.len() - 1] >= 500 && tokens[tokens.len() - 2] < 500, "{tokens:?}");
    let batches = TrainingBatches::new(&songs, &config.batch, config.seed).unwrap();
    assert_eq!(Budget::new(&config.budget, &batches).steps, Some(tokens.len() as u64));
}

/// An untrained model is about as surprised by every token: where a batch is mostly padding, its
/// loss says so only if the mean is over targets alone. Micro-batches share that mean.
#[test]
fn padding_counts_for_nothing() {
    let songs = Songs((0..12).map(|song| text(4 + song % 3, song as u64)).collect());
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Unlikelihood] {
        let mut config = config(objective);
        (config.batch.sequence, config.batch.order) = (40, WindowOrder::Documents);
        config.unlikelihood.alpha = 0.0;
        let batches = TrainingBatches::new(&songs, &config.batch, 5).unwrap();
        let mut loss = |micro: usize| {
            config.batch.micro = micro;
            let mut trainer = trainer(&config, class_ends(objective));
            let update = config.optimiser.update(1, 1.0);
            trainer.step(&batches, &songs, 0, update, false).unwrap().loss
        };
        let (whole, halves) = (loss(4), loss(2));
        assert!((whole - (VOCABULARY as f32).ln()).abs() < 1.5, "{objective:?}: {whole}");
        assert!((whole - halves).abs() < 1e-5, "{objective:?}: {whole}, {halves}");
    }
}

/// Each document is a context of its own, so that their order does not matter; those that training
/// leaves out are not scored.
#[test]
fn validation_goes_document_by_document_where_training_does() {
    let mut config = config(ObjectiveName::Mle);
    (config.batch.sequence, config.batch.order) = (16, WindowOrder::Documents);
    config.batch.shortest = 6;
    let songs =
        |order: &[u64]| Songs(order.iter().map(|song| text(3 * *song as usize, *song)).collect());
    let evaluated = |valid: Songs| {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path(), config.clone(), manifest()).unwrap();
        let train = songs(&[2, 3, 4, 5, 6, 7, 8]);
        let splits = Splits { train: &train, valid: &valid, end_of_text: None };
        let mut found = None;
        let mut observe = |event: &Event| {
            if let Event::Evaluated { loss, tokens, .. } = event {
                found = Some((*loss, *tokens));
            }
        };
        let trainer = trainer(&config, Vec::new());
        let mut session = Session::new(trainer, run, splits, Vec::new(), 2, &mut observe)?;
        session.run(&|| false)?;
        assert_eq!(session.state.shortest_document, Some(6));
        Ok::<_, Error>(found.unwrap())
    };
    // Of 3, 21, 6 and 12 tokens: the second is two windows, of 16 and 5 tokens.
    let (loss, tokens) = evaluated(songs(&[1, 7, 2, 4])).unwrap();
    assert_eq!(tokens, 15 + 4 + 5 + 11);
    let (other, same) = evaluated(songs(&[4, 2, 1, 7])).unwrap();
    assert!((loss - other).abs() < 1e-12 && tokens == same, "{loss} is not {other}");
    let refused = evaluated(songs(&[1, 1])).unwrap_err().to_string();
    assert!(refused.starts_with("none of the 2 documents"), "{refused}");
}
