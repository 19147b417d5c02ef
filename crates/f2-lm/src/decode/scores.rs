//! Log-probabilities of classes and tokens from hidden states, computed on the device.

use f2_engine::{Classes, Device, Drawn, Sampling};

use super::truncation::kth_largest;
use crate::Error;
use crate::memory::bytes;
use crate::model::{Decoder, Model, ModelShape};

/// A token of a text under the model's full posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Its frequency rank.
    pub id: u32,
    /// In nats.
    pub log_probability: f32,
    /// The most likely tokens in its place with their log-probabilities, best first, ties by id.
    pub alternatives: Vec<(u32, f32)>,
}

impl Scored {
    /// Token `id` and the `alternatives` most likely ones, given the log-probabilities of all.
    pub(super) fn new(logs: &[f32], id: u32, alternatives: usize) -> Self {
        let log_probability = logs[id as usize];
        if alternatives == 0 {
            return Self { id, log_probability, alternatives: Vec::new() };
        }
        let threshold = kth_largest(logs.iter().map(|log| f64::from(*log)), alternatives);
        let is_large = |log: f32| f64::from(log) >= threshold;
        let large = (0..).zip(logs.iter().copied()).filter(|(_, log)| is_large(*log));
        let mut large: Vec<(u32, f32)> = large.collect();
        large.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        large.truncate(alternatives);
        Self { id, log_probability, alternatives: large }
    }
}

/// A model, and buffers for its log-probabilities.
pub(super) struct Scores<'a, D: Device> {
    pub(super) model: &'a Model<D>,
    logits: D::Floats,
    gathered: D::Activations,
    picked: D::Indices,
    /// Values read from the device; the allocation is reused.
    values: Vec<f32>,
    /// `None` if the device does not draw.
    draws: Option<D::Draws>,
}

impl<'a, D: Device> Scores<'a, D> {
    /// Buffers for `rows` hidden states at a time.
    pub(super) fn new(model: &'a Model<D>, rows: usize) -> Result<Self, Error> {
        let Model { device, decoder, .. } = model;
        Ok(Self {
            model,
            logits: device.floats(rows * decoder.shape.vocabulary)?,
            gathered: device.activations(rows * decoder.shape.model.width)?,
            picked: device.indices(rows)?,
            values: Vec::new(),
            draws: device.draws(rows)?,
        })
    }

    /// The bytes [`new`](Self::new) allocates on the device, except for a small list.
    pub(super) fn bytes(decoder: &Decoder, rows: usize) -> u64 {
        let ModelShape { vocabulary, ref model, .. } = decoder.shape;
        let logits = bytes(&[rows, vocabulary, size_of::<f32>()]);
        logits.saturating_add(bytes(&[rows, model.width, D::ACTIVATION_BYTES]))
    }

    /// The full posterior, `[rows, vocabulary]`.
    pub(super) fn posterior(
        &mut self,
        rows: usize,
        hidden: &D::Activations,
    ) -> Result<&mut [f32], Error> {
        let Self { model: Model { device, decoder, weights }, logits, .. } = self;
        let vocabulary = decoder.shape.vocabulary;
        device.log_posterior(rows, &decoder.head, weights, hidden, logits);
        Ok(device.host_floats(logits, rows * vocabulary, &mut self.values)?)
    }

    /// Log-probabilities of the classes, `[rows, classes]`.
    pub(super) fn classes(
        &mut self,
        rows: usize,
        hidden: &D::Activations,
    ) -> Result<Vec<f32>, Error> {
        let classes = self.class_list();
        let Self { model: Model { device, weights, .. }, logits, .. } = self;
        device.logits(rows, classes.vectors, weights, hidden, logits);
        device.log_softmax(rows, classes.count(), logits);
        let mut values = vec![0.0; rows * classes.count()];
        device.read_floats(logits, 0, &mut values)?;
        Ok(values)
    }

    /// The head's classes; only called for a head with classes.
    fn class_list(&self) -> &'a Classes {
        self.model.decoder.head.classes.as_ref().expect("a plain head has no classes")
    }

    /// Whether [`draw`](Self::draw) is supported.
    pub(super) fn can_draw(&self) -> bool {
        let Model { device, decoder, .. } = self.model;
        self.draws.is_some() && device.can_draw(&decoder.head)
    }

    /// Draws a token for every hidden state with the random numbers `uniforms`.
    pub(super) fn draw(
        &mut self,
        sampling: &Sampling,
        hidden: &D::Activations,
        uniforms: &[[f64; 2]],
    ) -> Result<Vec<Drawn>, Error> {
        let Self { model: Model { device, decoder, weights }, logits, draws, .. } = self;
        let draws = draws.as_mut().expect("the device draws");
        Ok(device.draw(&decoder.head, sampling, weights, hidden, uniforms, logits, draws)?)
    }

    /// Log-probabilities of some classes' tokens within their class: for each `(class, rows)` the
    /// matrix `[rows, members]`, one after the other.
    pub(super) fn members(
        &mut self,
        wanted: &[(usize, Vec<u32>)],
        hidden: &D::Activations,
    ) -> Result<&mut [f32], Error> {
        let classes = self.class_list();
        let Self { model, logits, gathered, picked, values, .. } = self;
        let Model { device, decoder, weights } = model;
        let vectors = decoder.head.tokens;
        let len = |(class, rows): &(usize, Vec<u32>)| rows.len() * classes.members(*class).len();
        values.resize(wanted.iter().map(len).sum(), 0.0);
        let mut rest = &mut values[..];
        for (class, rows) in wanted {
            let members = classes.members(*class);
            let size = members.len();
            device.write_indices(rows, picked);
            device.gather(vectors.columns, picked, hidden, gathered);
            device.logits(rows.len(), vectors.slice(members), weights, gathered, logits);
            device.log_softmax(rows.len(), size, logits);
            let (read, after) = std::mem::take(&mut rest).split_at_mut(rows.len() * size);
            device.read_floats(logits, 0, read)?;
            rest = after;
        }
        Ok(values)
    }
}
