//! Pairs: the source is given, the target is learned and scored, and nothing else is.

use std::ops::Range;

use f2_engine::{Cpu, IGNORED};
use f2_lm::batch::{SeparatedTokens, TokenSource, TrainingBatches};
use f2_lm::config::{ObjectiveName, TrainConfig, WindowOrder};
use f2_lm::perplexity::{Contexts, Likelihood, ScoredWindows, SlidingWindows, score_on};
use f2_lm::run::{Event, RunFolder};
use f2_lm::train::{Session, Splits};
use f2_lm::{Devices, Error};

use super::documents::Songs;
use super::{VOCABULARY, class_ends, config, manifest, text, trainer};

/// Neither is among the tokens of a text below.
const SEPARATOR: u32 = VOCABULARY as u32 - 1;
const END: u32 = VOCABULARY as u32 - 2;

/// Sources and targets of several lengths.
fn sides() -> Vec<[Vec<u32>; 2]> {
    let side = |length: usize, seed: u64| {
        let ids = text(length, seed).into_iter();
        ids.map(|id| id.min(END - 1)).collect::<Vec<u32>>()
    };
    (0..12).map(|n| [side(2 + n % 5, n as u64), side(1 + n % 4, 50 + n as u64)]).collect()
}

fn corpus(pairs: impl IntoIterator<Item = [Vec<u32>; 2]>) -> SeparatedTokens<Songs> {
    let document =
        |[source, target]: [Vec<u32>; 2]| [source, vec![SEPARATOR], target, vec![END]].concat();
    let tokens = Songs(pairs.into_iter().map(document).collect());
    SeparatedTokens { tokens, separator: Some(SEPARATOR) }
}

fn of_pairs(objective: ObjectiveName) -> TrainConfig {
    let mut config = config(objective);
    (config.batch.sequence, config.batch.order) = (24, WindowOrder::Documents);
    // Ignored for pairs, however short.
    config.batch.shortest = 50;
    config.model.dropout = 0.0;
    config
}

fn score(config: &TrainConfig, text: &dyn TokenSource, contexts: Contexts) -> Likelihood {
    let load = |_: Cpu| Ok(trainer(config, class_ends(config.objective.name)).network.model);
    let open = |_| Ok::<_, Error>(Cpu::new(1)?);
    let sliding = SlidingWindows::new(None, None, config.batch.sequence).unwrap();
    let windows = ScoredWindows::new(text, sliding, contexts, 0).unwrap();
    let devices = Devices::one(&open);
    score_on(&devices, &load, text, &windows, &mut |_| {}, &|| false).unwrap().unwrap()
}

/// By the chain rule a target after its source has the likelihood of both less that of the source,
/// which ordinary documents give. The loss of a step is the same sum, over targets alone.
#[test]
fn the_loss_is_that_of_the_targets_after_their_sources() {
    let pairs = corpus(sides());
    let documents = Contexts::Documents { shortest: 0 };
    let given =
        Songs(sides().into_iter().map(|[source, _]| [source, vec![SEPARATOR]].concat()).collect());
    for objective in [ObjectiveName::Mle, ObjectiveName::F2, ObjectiveName::Unlikelihood] {
        let mut config = of_pairs(objective);
        (config.batch.size, config.batch.micro, config.unlikelihood.alpha) = (12, 0, 0.0);
        let contexts = Contexts::of_text(&pairs, &config.batch);
        assert_eq!(contexts, Contexts::Pairs { separator: SEPARATOR });
        let [targets, whole, sources] = [
            score(&config, &pairs, contexts),
            score(&config, &pairs.tokens, documents),
            score(&config, &given, documents),
        ];
        let expected: u64 = sides().iter().map(|[_, target]| target.len() as u64 + 1).sum();
        assert_eq!(targets.scored, expected);
        // Sums of single precision logits, some hundred nats.
        let difference = whole.nats - sources.nats;
        assert!((targets.nats - difference).abs() < 1e-3, "{} {difference}", targets.nats);
        let batches = TrainingBatches::new(&pairs, &config.batch, config.seed).unwrap();
        assert_eq!(batches.targets(0), expected);
        let mut trainer = trainer(&config, class_ends(objective));
        let update = config.optimiser.update(1, 1.0);
        let loss = trainer.step(&batches, &pairs, 0, update, false).unwrap().loss;
        assert!((f64::from(loss) - targets.mean()).abs() < 1e-5, "{objective:?} {loss}");
    }
}

/// The rows of a batch against the pairs themselves, where some are longer than a row.
#[test]
fn rows_hold_whole_targets_and_the_ends_of_sources() {
    let pairs = corpus(sides());
    for sequence in [24, 8, 6, 5, 3] {
        let mut config = of_pairs(ObjectiveName::Mle);
        (config.batch.sequence, config.batch.size) = (sequence, 12);
        let batches = TrainingBatches::new(&pairs, &config.batch, 3).unwrap();
        let length = batches.length(0);
        let [mut inputs, mut ids] = [(); 2].map(|()| vec![0; 12 * length]);
        batches.fill(&pairs, 0, 0..12, &mut inputs, &mut ids);
        let mut found: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for (inputs, ids) in inputs.chunks(length).zip(ids.chunks(length)) {
            let first = ids.iter().position(|id| *id != IGNORED).unwrap();
            assert_eq!(inputs[first], SEPARATOR);
            let target: Vec<u32> =
                ids[first..].iter().copied().take_while(|id| *id != IGNORED).collect();
            assert!(ids[first + target.len()..].iter().all(|id| *id == IGNORED));
            assert_eq!(inputs[first + 1..][..target.len() - 1], target[..target.len() - 1]);
            found.push((inputs[..first].to_vec(), target));
        }
        let cut = |[source, target]: [Vec<u32>; 2]| {
            let target = [target, vec![END]].concat();
            let kept = target.len().min(sequence);
            let room = (sequence - kept).min(source.len());
            (source[source.len() - room..].to_vec(), target[..kept].to_vec())
        };
        let mut expected: Vec<_> = sides().into_iter().map(cut).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{sequence}");
    }
}

/// FACE counts its predictions of targets, and no source.
#[test]
fn face_counts_targets_alone() {
    let mut config = of_pairs(ObjectiveName::Face);
    (config.batch.size, config.batch.micro) = (12, 4);
    let pairs = corpus(sides());
    let batches = TrainingBatches::new(&pairs, &config.batch, 3).unwrap();
    let mut trainer = trainer(&config, Vec::new());
    let update = config.optimiser.update(1, 1.0);
    let loss = trainer.step(&batches, &pairs, 0, update, false).unwrap().loss;
    assert!(loss.is_finite());
    let state = trainer.objective.state();
    let counts = state["counts"].as_str().unwrap().split(' ');
    let total: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(total, batches.targets(0));
}

/// A model learns what follows a source, and its checkpoint records that it is of pairs.
#[test]
fn a_run_on_pairs_learns_validates_and_says_so() {
    // The target repeats the source's last token.
    let pair = |n: u32| [vec![n % 5, n % 7], vec![n % 7, n % 7]];
    let (train, valid) = (corpus((0..60).map(pair)), corpus((60..70).map(pair)));
    let mut config = of_pairs(ObjectiveName::F2);
    config.budget.steps = Some(60);
    config.evaluation.every_steps = 30;
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(folder.path(), config.clone(), manifest()).unwrap();
    let splits = Splits { train: &train, valid: &valid, end_of_text: Some(END) };
    let mut found = Vec::new();
    let mut observe = |event: &Event| {
        if let Event::Evaluated { perplexity, tokens, .. } = event {
            found.push((*perplexity, *tokens));
        }
    };
    let trainer = trainer(&config, class_ends(ObjectiveName::F2));
    let mut session = Session::new(trainer, run, splits, Vec::new(), 2, &mut observe).unwrap();
    session.run(&|| false).unwrap();
    assert_eq!((session.state.separator, session.state.shortest_document), (Some(SEPARATOR), None));
    drop(session);
    let (perplexity, tokens) = *found.last().unwrap();
    assert_eq!(tokens, 10 * 3);
    assert!(perplexity < 3.0, "{found:?}");
}

#[test]
fn what_has_no_meaning_on_pairs_is_refused() {
    let pairs = corpus(sides());
    let mut config = of_pairs(ObjectiveName::UnlikelihoodSequence);
    let check = |config: &TrainConfig, train: &dyn TokenSource| {
        f2_lm::train::check_run(config, train, &Vec::new()).unwrap_err()
    };
    assert!(matches!(check(&config, &pairs), Error::ObjectiveOfPairs { .. }));
    config.objective.name = ObjectiveName::Mle;
    for order in [WindowOrder::Shuffled, WindowOrder::Streams] {
        config.batch.order = order;
        assert!(matches!(check(&config, &pairs), Error::OrderOfPairs));
    }
    config.batch.order = WindowOrder::Documents;
    let broken =
        SeparatedTokens { tokens: Songs(vec![vec![1, 2, 3]; 9]), separator: Some(SEPARATOR) };
    assert!(matches!(check(&config, &broken), Error::NoTarget { document: 1 }));
    let range: Range<u64> = broken.documents()[1].clone();
    assert_eq!(range, 3..6);
}
