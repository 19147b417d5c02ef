//! Greedy continuation with the parameters of a model in training.

use f2_engine::{Device, Labels};

use super::{Feed, Incremental, Model, Network};
use crate::Error;

/// The cache and buffers for continuing sequences greedily while a network is trained.
pub struct GreedyContinuation<D: Device> {
    /// How many sequences there are.
    pub sequences: usize,
    /// How many tokens of each are given.
    pub prefix: usize,
    /// How many are added.
    pub length: usize,
    memory: Incremental<D>,
}

impl<D: Device> GreedyContinuation<D> {
    /// Allocates the buffers for the network's decoder.
    pub fn new(
        network: &Network<D>,
        sequences: usize,
        prefix: usize,
        length: usize,
    ) -> Result<Self, Error> {
        let memory = Incremental::new(&network.model, sequences, prefix + length)?;
        Ok(Self { sequences, prefix, length, memory })
    }
}

impl<D: Device> Network<D> {
    /// Continues sequences with the most likely token each time, without dropout. `prefixes:
    /// [sequences, prefix]`; returns `[sequences, length]`.
    pub fn continue_greedily(
        &mut self,
        prefixes: &[u32],
        continuation: &mut GreedyContinuation<D>,
    ) -> Result<Vec<u32>, Error> {
        let (sequences, length) = (continuation.sequences, continuation.length);
        let mut chosen = vec![0; sequences * length];
        let mut next = prefixes.to_vec();
        for place in 0..length {
            let cached = if place == 0 { 0 } else { continuation.prefix + place - 1 };
            next = self.next_tokens(&next, cached, continuation)?;
            for (sequence, &token) in next.iter().enumerate() {
                chosen[sequence * length + place] = token;
            }
        }
        Ok(chosen)
    }

    /// The most likely token after `new: [sequences, rows]`, with `cached` tokens before them.
    fn next_tokens(
        &mut self,
        new: &[u32],
        cached: usize,
        continuation: &mut GreedyContinuation<D>,
    ) -> Result<Vec<u32>, Error> {
        let Self { model, workspace, predictions, .. } = self;
        let Model { device, decoder, weights } = &*model;
        let targets = &mut workspace.targets;
        let rows = new.chunks(new.len() / continuation.sequences).enumerate();
        let feeds: Vec<Feed<'_>> =
            rows.map(|(sequence, tokens)| Feed { sequence, cached, tokens }).collect();
        continuation.memory.advance(model, &feeds)?;
        // Any target will do: only the prediction is used.
        let mut chosen = vec![0; continuation.sequences];
        let head = &decoder.head;
        device.load_targets(head, &Labels::uniform(&chosen, 0.0), targets);
        device.predictions(head, weights, targets, continuation.memory.hidden(), predictions);
        device.read_indices(predictions, &mut chosen)?;
        Ok(chosen)
    }
}
