//! Losses that are not finite, saves that fail, and checkpoints that are damaged or another run's.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use f2_lm::Error;
use f2_lm::config::ObjectiveName;
use f2_lm::run::{Event, RunFolder, checkpoint, read_events};
use f2_lm::train::Ending;

use super::{STEPS, config, session, session_stopped_at, tensors, whole_run};

/// A perplexity that is not finite is never the best, and the checkpoint can still be read.
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

/// The checkpoint that a session resumed from, and whose missing evaluation it made, stays when the
/// next update ruins the parameters.
#[test]
fn an_evaluation_made_up_keeps_the_checkpoint_it_is_of() {
    let folder = tempfile::tempdir().unwrap();
    // Fine-tuning records no best checkpoint: this one stays only because it is proven.
    let mut config = config(ObjectiveName::Face);
    (config.schedule.warmup_steps, config.budget.steps) = (0, Some(4));
    (config.checkpoint.every_steps, config.evaluation.every_steps) = (1, 4);
    let stopped = session_stopped_at(folder.path(), &config, 4, 0);
    assert_eq!(stopped.unwrap(), Ending::Stopped);
    let good = tensors(folder.path(), 4);
    config.optimiser.learning_rate = 1e38;
    config.budget.steps = Some(STEPS);
    let mut run = RunFolder::open(folder.path()).unwrap();
    run.change_config(config.clone(), &["optimiser".to_owned(), "budget".to_owned()]).unwrap();
    let mut made_up = false;
    let mut observer = |event: &Event, _: &AtomicBool| {
        made_up |= matches!(event, Event::Evaluated { step: 4, best: false, .. });
    };
    let ended = session(folder.path(), &config, Vec::new(), true, &mut observer);
    assert!(made_up, "the session begins with the evaluation");
    assert!(matches!(ended, Err(Error::NotFinite { kept: Some(4), .. })), "{ended:?}");
    assert!(tensors(folder.path(), 4) == good);
}

/// Ruined before the first checkpoint, a run has none to resume from, and starts over.
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

/// A file in place of the folder makes every save fail, even for root.
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

/// The error of resuming a run whose newest checkpoint went through `damage`.
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
