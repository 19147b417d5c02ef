//! Training by several ranks, which are threads here: the same bits as one, whatever their number.

mod workshop;

use std::fs;
use std::path::Path;
use std::thread;

use f2_engine::{Cpu, Partition};
use f2_lm::Error;
use f2_lm::config::{ObjectiveName, TrainConfig};
use f2_lm::model::{Decoder, ModelShape};
use f2_lm::run::{Event, checkpoint, read_events};
use f2_lm::train::{Ending, GivenSettings, NewRun, Ranks, ResumedRun};
use f2_ranks::threads;

use workshop::Workshop;

const STEPS: u64 = 6;

fn settings(objective: ObjectiveName, shards: usize) -> GivenSettings {
    let name = objective.as_str();
    let settings = [
        ("seed", "11"),
        ("model.layers", "2"),
        ("model.width", "24"),
        ("model.heads", "2"),
        ("model.feed_forward", "40"),
        ("batch.sequence", "9"),
        ("batch.size", "12"),
        ("unlikelihood.prefix", "2"),
        ("unlikelihood.continuation", "3"),
        ("unlikelihood.ngram", "1"),
        ("optimiser.learning_rate", "0.01"),
        ("schedule.warmup_steps", "2"),
        ("evaluation.every_steps", "3"),
        ("evaluation.max_tokens", "300"),
        ("checkpoint.every_minutes", "0"),
    ];
    let settings =
        settings.iter().fold(GivenSettings::default(), |all, (key, value)| all.set(key, value));
    let settings = settings.set("budget.steps", &STEPS.to_string()).set("objective.name", name);
    if shards == 0 { settings } else { settings.set("batch.shards", &shards.to_string()) }
}

fn new_run(workshop: &Workshop, name: &str, objective: ObjectiveName, shards: usize) -> NewRun {
    let (corpus, out) = (workshop.path("corpus"), workshop.path(name));
    let mut run = NewRun::new(&corpus, &out, settings(objective, shards));
    run.init = objective.fine_tunes().then(|| workshop.path("initial"));
    run
}

/// Runs `body` as each of `size` ranks; without a connection if there is only one.
fn as_ranks<R: Send>(size: usize, body: impl Fn(Option<Ranks<Cpu>>, Cpu) -> R + Sync) -> Vec<R> {
    if size == 1 {
        return vec![body(None, Cpu::new(1).unwrap())];
    }
    as_joined_ranks(size, body)
}

/// Like [`as_ranks`], with a connection even for a single rank.
fn as_joined_ranks<R: Send>(
    size: usize,
    body: impl Fn(Option<Ranks<Cpu>>, Cpu) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let body = &body;
        let start = |(control, transport)| {
            scope.spawn(move || {
                let cpu = Cpu::new(1).unwrap();
                let ranks = Ranks::join(&cpu, control, Some(Box::new(transport))).unwrap();
                body(Some(ranks), cpu)
            })
        };
        let started: Vec<_> = threads(size).into_iter().map(start).collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn begin(size: usize, run: &NewRun, stop_at: u64) -> Vec<Result<Ending, Error>> {
    as_ranks(size, |mut ranks, cpu| {
        let prepared = run.prepare_among(&mut ranks, &cpu, 1)?;
        let reached = std::sync::atomic::AtomicU64::new(0);
        let mut observe = |event: &Event| {
            if let Event::Step { step, .. } = event {
                reached.store(*step, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let stop = || reached.load(std::sync::atomic::Ordering::Relaxed) >= stop_at;
        prepared.train_among(ranks, cpu, 1, &mut observe, &stop).map(|(ending, _)| ending)
    })
}

/// Settings of a model large enough that even four ranks send its gradient in several buckets, with
/// two micro-batches to a shard.
fn in_buckets(run: NewRun, tied: bool) -> NewRun {
    let settings = [("model.width", "64"), ("model.feed_forward", "160"), ("batch.micro", "1")];
    let settings = settings.iter().fold(run.settings, |all, (key, value)| all.set(key, value));
    let settings = settings.set("batch.size", "8").set("model.dropout", "0.1");
    NewRun { settings: settings.set("model.tied", &tied.to_string()), ..run }
}

/// Otherwise the test below would show nothing. A larger vocabulary would only add buckets.
fn has_several_buckets(config: &TrainConfig) {
    let (model, positions) = (config.model.clone(), config.batch.sequence);
    let decoder =
        Decoder::new(ModelShape { model, positions, vocabulary: 1, class_ends: Vec::new() });
    let partition = Partition::new(decoder.layout.len(), 4, &decoder.finals());
    assert!(partition.buckets() > 2, "{partition:?}");
}

#[test]
fn buckets_sent_during_the_backward_pass_give_the_bits_of_one() {
    let workshop = Workshop::new();
    for tied in [false, true] {
        let initial = workshop.path(&format!("initial-{tied}"));
        let mut run = in_buckets(new_run(&workshop, "initial", ObjectiveName::Mle, 0), tied);
        run.out.clone_from(&initial);
        all_complete(begin(1, &run, u64::MAX), Ending::Complete);
        for objective in ObjectiveName::ALL {
            let run = |ranks: usize, overlap: bool| {
                let name = format!("{}-{tied}-{ranks}-{overlap}", objective.as_str());
                let mut run = in_buckets(new_run(&workshop, &name, objective, 4), tied);
                run.init = objective.fine_tunes().then(|| initial.clone());
                let endings = as_ranks(ranks, |mut ranks, cpu| {
                    ranks.iter_mut().for_each(|ranks| ranks.overlap = overlap);
                    let prepared = run.prepare_among(&mut ranks, &cpu, 1)?;
                    has_several_buckets(&prepared.run.config);
                    let trained = prepared.train_among(ranks, cpu, 1, &mut |_| {}, &|| false);
                    trained.map(|(ending, _)| ending)
                });
                all_complete(endings, Ending::Complete);
                outcome(&workshop.path(&name))
            };
            let one = run(1, true);
            for (ranks, overlap) in [(2, true), (3, true), (4, true), (3, false)] {
                let several = run(ranks, overlap);
                let words = format!("{objective:?}, tied: {tied}, {ranks} ranks, {overlap}");
                assert_eq!(several.2, one.2, "{words}");
                assert!(several == one, "{words}");
            }
        }
    }
}

fn resume(size: usize, path: &Path) -> Vec<Result<Ending, Error>> {
    as_ranks(size, |mut ranks, cpu| {
        let prepared = ResumedRun::new(path).prepare_among(&mut ranks, &cpu)?;
        let trained = prepared.train_among(ranks, cpu, 1, &mut |_| {}, &|| false);
        trained.map(|(ending, _)| ending)
    })
}

/// The parameters, the moments, and every loss.
fn outcome(folder: &Path) -> (Vec<u8>, Vec<u8>, Vec<String>) {
    let checkpoint = checkpoint::path(&folder.join("checkpoints"), STEPS);
    let read = |name| fs::read(checkpoint.join(name)).unwrap();
    let events = read_events(&folder.join("events.jsonl")).unwrap().into_iter();
    let losses = events.filter_map(|event| match event {
        Event::Step { step, loss, gradient_norm, .. } => {
            Some(format!("{step} {loss} {gradient_norm}"))
        }
        Event::Evaluated { step, loss, .. } => Some(format!("{step} valid {loss}")),
        _ => None,
    });
    (read(checkpoint::MODEL), read(checkpoint::OPTIMISER), losses.collect())
}

fn all_complete(endings: Vec<Result<Ending, Error>>, expected: Ending) {
    for ending in endings {
        assert_eq!(ending.unwrap(), expected);
    }
}

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    let initial = new_run(&workshop, "initial", ObjectiveName::Mle, 0);
    all_complete(begin(1, &initial, u64::MAX), Ending::Complete);
    workshop
}

#[test]
fn any_number_of_ranks_gives_the_bits_of_one() {
    let workshop = workshop();
    for objective in ObjectiveName::ALL {
        // Three divides the batch and is no power of two, so that the tree is lopsided.
        for shards in [4, 6] {
            let run = |ranks: usize| {
                let name = format!("{}-{shards}-{ranks}", objective.as_str());
                let run = new_run(&workshop, &name, objective, shards);
                all_complete(begin(ranks, &run, u64::MAX), Ending::Complete);
                outcome(&workshop.path(&name))
            };
            let one = run(1);
            for ranks in 2..=4 {
                let several = run(ranks);
                assert_eq!(several.2, one.2, "{objective:?}, {shards} shards, {ranks} ranks");
                assert!(several == one, "{objective:?}, {shards} shards, {ranks} ranks");
            }
        }
    }
}

#[test]
fn a_rank_that_is_alone_gives_the_bits_of_none() {
    let workshop = workshop();
    for shards in [1, 4] {
        let alone = new_run(&workshop, &format!("alone-{shards}"), ObjectiveName::F2, shards);
        all_complete(begin(1, &alone, u64::MAX), Ending::Complete);
        let joined = new_run(&workshop, &format!("joined-{shards}"), ObjectiveName::F2, shards);
        let ended = as_joined_ranks(1, |mut ranks, cpu| {
            let prepared = joined.prepare_among(&mut ranks, &cpu, 1)?;
            let trained = prepared.train_among(ranks, cpu, 1, &mut |_| {}, &|| false);
            trained.map(|(ending, _)| ending)
        });
        all_complete(ended, Ending::Complete);
        assert!(outcome(&joined.out) == outcome(&alone.out), "{shards} shards");
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let workshop = workshop();
    for objective in [ObjectiveName::F2, ObjectiveName::Face] {
        let whole = new_run(&workshop, &format!("whole-{}", objective.as_str()), objective, 4);
        all_complete(begin(1, &whole, u64::MAX), Ending::Complete);
        for (before, after) in [(1, 3), (4, 1), (2, 4)] {
            let name = format!("{}-{before}-{after}", objective.as_str());
            let run = new_run(&workshop, &name, objective, 4);
            all_complete(begin(before, &run, 4), Ending::Stopped);
            all_complete(resume(after, &workshop.path(&name)), Ending::Complete);
            let (found, expected) = (outcome(&workshop.path(&name)), outcome(&whole.out));
            assert_eq!(found.2, expected.2, "{name}");
            assert!(found == expected, "{name}");
        }
    }
}

#[test]
fn ranks_decide_the_shards_where_nobody_does() {
    let workshop = workshop();
    let run = new_run(&workshop, "five", ObjectiveName::Mle, 0);
    all_complete(begin(5, &run, u64::MAX), Ending::Complete);
    let written = fs::read_to_string(run.out.join("config.toml")).unwrap();
    assert!(written.contains("shards = 6"), "{written}");
    let same = new_run(&workshop, "same", ObjectiveName::Mle, 6);
    all_complete(begin(1, &same, u64::MAX), Ending::Complete);
    assert!(outcome(&run.out) == outcome(&same.out));
    // The others keep a log of their own.
    for rank in 1..5 {
        let log = read_events(&run.out.join(format!("ranks/rank-{rank}.log"))).unwrap();
        let steps = log.iter().filter(|event| matches!(event, Event::Step { .. })).count();
        assert_eq!(steps as u64, STEPS);
    }
}

#[test]
fn more_ranks_than_windows_are_refused() {
    let workshop = workshop();
    let run = new_run(&workshop, "many", ObjectiveName::Mle, 0);
    for refused in begin(13, &run, u64::MAX) {
        let error = refused.unwrap_err().to_string();
        assert_eq!(error, "13 ranks are too many: a step has 12 windows to share");
    }
    assert!(!run.out.exists());
}

#[test]
fn ranks_with_other_settings_are_named_and_nothing_is_written() {
    let workshop = workshop();
    let refused = as_ranks(3, |mut ranks, cpu| {
        let rank = ranks.as_ref().unwrap().control.rank();
        let mut run = new_run(&workshop, "different", ObjectiveName::Mle, 0);
        if rank == 2 {
            run.settings = run.settings.set("optimiser.clip", "0.5");
        }
        run.prepare_among(&mut ranks, &cpu, 1).map(drop)
    });
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        let expected =
            "rank 2 differs from rank 0 in the setting optimiser.clip: 0.5 instead of 0.25";
        assert_eq!(error, expected);
    }
    assert!(!workshop.path("different").exists());
}

/// A rank that cannot continue ends all, and the checkpoint before is whole.
#[test]
fn the_failure_of_one_ends_all() {
    let workshop = workshop();
    let mut run = new_run(&workshop, "failed", ObjectiveName::Mle, 0);
    run.settings = run.settings.set("checkpoint.every_steps", "2");
    let endings = as_ranks(3, |mut ranks, cpu| {
        let rank = ranks.as_ref().unwrap().control.rank();
        let prepared = run.prepare_among(&mut ranks, &cpu, 1)?;
        let mut observe = |event: &Event| {
            let fifth = matches!(event, Event::Step { step: 5, .. });
            assert!(rank != 1 || !fifth, "the fifth step is too much for rank 1");
        };
        let trained = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            prepared.train_among(ranks, cpu, 1, &mut observe, &|| false).map(drop)
        }));
        trained.unwrap_or(Ok(()))
    });
    for (rank, ending) in endings.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
        let error = ending.unwrap_err().to_string();
        assert!(error.contains("rank 1 is lost"), "{rank}: {error}");
    }
    let newest = checkpoint::path(&run.out.join("checkpoints"), 4);
    assert_eq!(checkpoint::open(&newest).unwrap().step, 4);
    all_complete(resume(2, &run.out), Ending::Complete);
}

#[test]
fn a_rank_without_its_log_tells_the_others_why() {
    let workshop = workshop();
    let run = new_run(&workshop, "unlogged", ObjectiveName::Mle, 0);
    let endings = as_ranks(2, |mut ranks, cpu| {
        let prepared = run.prepare_among(&mut ranks, &cpu, 1)?;
        // A folder where rank 1 would write.
        fs::create_dir_all(run.out.join("ranks/rank-1.log")).unwrap();
        prepared.train_among(ranks, cpu, 1, &mut |_| {}, &|| false).map(drop)
    });
    for ending in endings {
        let error = ending.unwrap_err().to_string();
        assert!(error.contains("rank-1.log"), "{error}");
    }
}
