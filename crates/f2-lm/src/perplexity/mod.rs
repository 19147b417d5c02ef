//! Perplexity: the negative log-likelihood of a text under a model's full posterior.
//!
//! [`Scorer`] is used by validation in training, with the trainer's buffers, and by [`score_on`],
//! with buffers of its own on each device.

mod windows;

use f2_engine::{Device, IGNORED, Sequences, Weighting};

use self::windows::Window;
pub use self::windows::{Contexts, ScoredWindows, SlidingWindows};
use crate::Error;
use crate::batch::TokenSource;
use crate::memory::{Purpose, check_memory};
use crate::model::{Batch, Model, Recordings, Workspace};
use crate::{Devices, Parts, Worker};

/// The most positions [`score_on`] scores at a time, unless one window has more.
const MOST_POSITIONS: usize = 2048;

/// The likelihood of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihood {
    /// The summed negative log-likelihood, in nats.
    pub nats: f64,
    /// Tokens scored.
    pub scored: u64,
}

impl Likelihood {
    /// The mean over scored tokens, in nats.
    pub fn mean(&self) -> f64 {
        self.nats / self.scored as f64
    }

    /// Adds the likelihood of another part of the text.
    fn add(&mut self, more: Self) {
        self.nats += more.nats;
        self.scored += more.scored;
    }
}

/// Scores the windows of a text on all devices, each with a copy of the model loaded by `load`.
/// `progress` is called with the number of tokens scored since its last call. `None` if stopped.
///
/// Batches are dealt out to the devices and their sums added in order: the result is bit-identical
/// for any number of devices.
pub fn score_on<D: Device, E: From<Error> + Send>(
    devices: &Devices<'_, D, E>,
    load: &(dyn Fn(D) -> Result<Model<D>, E> + Sync),
    text: &dyn TokenSource,
    windows: &ScoredWindows,
    progress: &mut dyn FnMut(u64),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Likelihood>, E> {
    let positions = positions_at_a_time(windows);
    let batches = windows.batches(positions);
    let work = |device: D, worker: Worker<'_, u64>| {
        let model = load(device)?;
        let mut workspace = checked_workspace(&model, positions)?;
        let mut scorer = Scorer::default();
        let mut found = Vec::new();
        while let Some(number) = worker.parts.next()
            && !(worker.stop)()
        {
            let (sequences, batch) = &batches[number];
            let likelihood = scorer.score_batch(&model, &mut workspace, text, *sequences, batch)?;
            (worker.tell)(likelihood.scored);
            found.push((number, likelihood));
        }
        Ok(found)
    };
    let parts = Parts::new(batches.len());
    let mut found = devices.share(&parts, &work, progress, stop)?.concat();
    if found.len() < batches.len() {
        return Ok(None);
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    let mut total = Likelihood { nats: 0.0, scored: 0 };
    found.iter().for_each(|(_, likelihood)| total.add(*likelihood));
    if total.nats.is_finite() { Ok(Some(total)) } else { Err(Error::NoProbabilities.into()) }
}

/// How many positions are scored at a time: whole windows.
fn positions_at_a_time(windows: &ScoredWindows) -> usize {
    let sequence = windows.sequence();
    (MOST_POSITIONS / sequence).max(1) * sequence
}

/// A workspace, if there is memory for it.
fn checked_workspace<D: Device>(model: &Model<D>, positions: usize) -> Result<Workspace<D>, Error> {
    let needed = Workspace::<D>::activation_bytes(&model.decoder, positions, false)
        + Workspace::<D>::head_bytes(&model.decoder, positions);
    check_memory(&model.device, Purpose::Perplexity, needed)?;
    Workspace::new(model, positions)
}

/// Scores texts, batch by batch.
pub struct Scorer<D: Device> {
    recordings: Recordings<D>,
    /// A batch on the host: the tokens, and for each the next token or [`IGNORED`].
    inputs: Vec<u32>,
    ids: Vec<u32>,
}

impl<D: Device> Default for Scorer<D> {
    fn default() -> Self {
        Self { recordings: Recordings::default(), inputs: Vec::new(), ids: Vec::new() }
    }
}

impl<D: Device> Scorer<D> {
    /// Scores the windows of a text, as many at a time as the workspace holds. The sum may not be
    /// finite.
    pub fn score(
        &mut self,
        model: &Model<D>,
        workspace: &mut Workspace<D>,
        text: &dyn TokenSource,
        windows: &ScoredWindows,
        progress: &mut dyn FnMut(u64),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Likelihood>, Error> {
        let mut total = Likelihood { nats: 0.0, scored: 0 };
        for (sequences, batch) in windows.batches(workspace.positions()) {
            if stop() {
                return Ok(None);
            }
            let likelihood = self.score_batch(model, workspace, text, sequences, &batch)?;
            total.add(likelihood);
            progress(likelihood.scored);
        }
        Ok(Some(total))
    }

    /// Scores every `turns`-th batch of windows, starting with number `turn`: the share of one of
    /// several ranks. Returns the sum of each batch. `stop` is called equally often on every rank.
    pub(crate) fn score_in_turn(
        &mut self,
        model: &Model<D>,
        workspace: &mut Workspace<D>,
        text: &dyn TokenSource,
        windows: &ScoredWindows,
        [turn, turns]: [usize; 2],
        stop: &mut dyn FnMut() -> Result<bool, Error>,
    ) -> Result<Option<Vec<f64>>, Error> {
        let mut sums = Vec::new();
        for round in windows.batches(workspace.positions()).chunks(turns) {
            if stop()? {
                return Ok(None);
            }
            if let Some((sequences, batch)) = round.get(turn) {
                let part = self.score_batch(model, workspace, text, *sequences, batch)?;
                sums.push(part.nats);
            }
        }
        Ok(Some(sums))
    }

    fn score_batch(
        &mut self,
        model: &Model<D>,
        workspace: &mut Workspace<D>,
        text: &dyn TokenSource,
        sequences: Sequences,
        batch: &[Window],
    ) -> Result<Likelihood, Error> {
        let scored = self.fill(text, sequences, batch, model.decoder.shape.vocabulary)?;
        let Self { recordings, inputs, ids } = self;
        workspace.forward(model, Batch { sequences, inputs, dropout: None }, recordings);
        workspace.set_targets(model, ids, Weighting::Uniform(1.0), None);
        Ok(Likelihood { nats: workspace.negative_log_likelihood(model)?, scored })
    }

    /// Reads a batch, and returns how many of its tokens are scored. Padding, after the last window
    /// and after a window's end, has no target, and no scored position sees its input.
    fn fill(
        &mut self,
        text: &dyn TokenSource,
        sequences: Sequences,
        batch: &[Window],
        vocabulary: usize,
    ) -> Result<u64, Error> {
        self.inputs.clear();
        self.inputs.resize(sequences.positions(), 0);
        self.ids.clear();
        self.ids.resize(sequences.positions(), IGNORED);
        let length = sequences.length;
        let rows = self.inputs.chunks_mut(length).zip(self.ids.chunks_mut(length));
        for (Window { tokens, scored }, (inputs, ids)) in batch.iter().zip(rows) {
            let inputs = &mut inputs[..(tokens.end - tokens.start) as usize];
            text.read(tokens.clone(), inputs);
            if let Some(&token) = inputs.iter().find(|token| **token as usize >= vocabulary) {
                return Err(Error::TokenOutside { token, vocabulary });
            }
            for place in scored.clone() {
                let place = (place - tokens.start) as usize;
                ids[place - 1] = inputs[place];
            }
        }
        Ok(batch.iter().map(|window| window.scored.end - window.scored.start).sum())
    }
}

#[cfg(test)]
mod tests {
    use f2_engine::Cpu;

    use super::*;
    use crate::config::ModelConfig;
    use crate::model::{Decoder, ModelShape};

    /// With all parameters 0 every token is equally likely, so that all have the same loss. Single
    /// precision could not hold the exact sum.
    #[test]
    fn losses_are_added_up_in_double_precision() {
        let model =
            ModelConfig { layers: 1, width: 8, heads: 1, feed_forward: 8, ..Default::default() };
        for class_ends in [vec![], vec![5, 61]] {
            let (positions, vocabulary) = (16, 61);
            let model = model.clone();
            let shape = ModelShape { model, positions, vocabulary, class_ends };
            let nats = |text: Vec<u32>| {
                let sliding = SlidingWindows::new(None, None, positions).unwrap();
                let windows = ScoredWindows::new(&text, sliding, Contexts::Text, 0).unwrap();
                let load = |device| Model::zeros(device, Decoder::new(shape.clone()));
                let open = |_| Ok::<_, Error>(Cpu::new(1)?);
                let devices = Devices::one(&open);
                let found = score_on(&devices, &load, &text, &windows, &mut |_| {}, &|| false);
                found.unwrap().unwrap()
            };
            let one = nats(vec![60, 60]);
            let text = vec![60; 12_345];
            let all = nats(text);
            assert_eq!((one.scored, all.scored), (1, 12_345 - 772));
            assert_eq!(all.nats, one.nats * all.scored as f64);
            assert_ne!(f64::from(all.nats as f32), all.nats);
        }
    }
}
