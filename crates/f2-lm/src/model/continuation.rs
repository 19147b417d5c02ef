use f2_engine::{Device, Labels, Sequences, Span};

use super::{Head, Network, NewTokens, Pass};
use crate::Error;

/// Room for continuing sequences greedily, token by token.
pub struct Continuation<D: Device> {
    /// How many sequences there are.
    pub sequences: usize,
    /// How many tokens of each are given.
    pub prefix: usize,
    /// How many are added.
    pub length: usize,
    cache: D::Cache,
    spans: D::Spans,
    tokens: D::Indices,
    /// The hidden states that decide the next tokens, `[sequences, width]`.
    last: D::Activations,
    last_rows: D::Indices,
}

impl<D: Device> Continuation<D> {
    /// Allocates it for the network's decoder.
    pub fn new(
        network: &Network<D>,
        sequences: usize,
        prefix: usize,
        length: usize,
    ) -> Result<Self, Error> {
        let (device, decoder) = (&network.device, &network.decoder);
        let layers = decoder.blocks.len();
        let width = decoder.shape.model.width;
        Ok(Self {
            sequences,
            prefix,
            length,
            cache: device.cache(layers, sequences, prefix + length, decoder.heads)?,
            spans: device.spans(sequences)?,
            tokens: device.indices(sequences * prefix)?,
            last: device.activations(sequences * width)?,
            last_rows: device.indices(sequences)?,
        })
    }

    /// The spans of `rows` new tokens for every sequence, `cached` tokens before them.
    fn spans(&self, cached: usize, rows: usize) -> Vec<Span> {
        let span = |sequence: usize| Span {
            sequence: sequence as u32,
            cached: cached as u32,
            first_row: (sequence * rows) as u32,
            rows: rows as u32,
        };
        (0..self.sequences).map(span).collect()
    }
}

impl<D: Device> Network<D> {
    /// Continues sequences with the most likely token each time, without dropout. `prefixes:
    /// [sequences, prefix]`; returns `[sequences, length]`.
    ///
    /// # Panics
    /// With a head of classes, or where the prefixes do not fit the network.
    pub fn continue_greedily(
        &mut self,
        prefixes: &[u32],
        room: &mut Continuation<D>,
    ) -> Result<Vec<u32>, Error> {
        let (sequences, length) = (room.sequences, room.length);
        let mut chosen = vec![0; sequences * length];
        let mut next = prefixes.to_vec();
        for place in 0..length {
            let cached = if place == 0 { 0 } else { room.prefix + place - 1 };
            next = self.next_tokens(&next, cached, room)?;
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
        room: &mut Continuation<D>,
    ) -> Result<Vec<u32>, Error> {
        let Self { device, decoder, weights, tokens, clock, activations, targets, .. } = self;
        let rows = new.len() / room.sequences;
        device.write_indices(new, &mut room.tokens);
        device.load_spans(&room.spans(cached, rows), &mut room.spans);
        let sequences = Sequences { count: new.len(), length: 1 };
        let pass = Pass { device, sequences, weights, tokens, clock, training: false };
        let Continuation { cache, spans, tokens, last, last_rows, .. } = room;
        let mut new = NewTokens { tokens, spans, cache };
        decoder.forward_new(&pass, &mut new, activations);
        let ends: Vec<u32> = (1..=room.sequences).map(|end| (end * rows - 1) as u32).collect();
        device.write_indices(&ends, last_rows);
        device.gather(decoder.shape.model.width, last_rows, activations.hidden(), last);
        // Any target will do: all that is asked for is the prediction.
        device.load_targets(&Labels::plain(&vec![0; room.sequences], 0.0), targets);
        let Head::Plain(head) = decoder.head else { panic!("only a plain head predicts") };
        device.softmax_predictions(head, weights, targets, last, &mut self.predictions);
        let mut chosen = vec![0; room.sequences];
        device.read_indices(&self.predictions, &mut chosen)?;
        Ok(chosen)
    }
}
