//! Runs on documents, each a row of its own.

use std::ops::Range;

use f2_lm::Error;
use f2_lm::batch::{TokenSource, TrainingBatches};
use f2_lm::config::{BudgetConfig, ObjectiveName, WindowOrder};
use f2_lm::run::{Event, RunFolder};
use f2_lm::schedule::Budget;
use f2_lm::train::{Session, Splits};

use super::{VOCABULARY, class_ends, config, manifest, text, trainer};

/// Short documents, each a row with padding.
pub(super) struct Songs(pub(super) Vec<Vec<u32>>);

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

/// A limit in tokens counts targets, in the plan as in the run: padding does not count.
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

/// An untrained model has about the same loss at every token: with a batch that is mostly padding
/// the mean shows it only if it is over targets alone. Micro-batches share that mean.
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
