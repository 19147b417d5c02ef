use f2_engine::Device;

use crate::Error;
use crate::model::{Decoder, Head};

/// Log-probabilities from hidden states, brought to the host.
pub(super) struct Scores<'a, D: Device> {
    pub(super) device: &'a D,
    pub(super) decoder: &'a Decoder,
    pub(super) weights: &'a D::Weights,
    logits: D::Floats,
    gathered: D::Activations,
    picked: D::Indices,
}

impl<'a, D: Device> Scores<'a, D> {
    /// Room for `rows` hidden states at a time.
    pub(super) fn new(
        device: &'a D,
        decoder: &'a Decoder,
        weights: &'a D::Weights,
        rows: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            device,
            decoder,
            weights,
            logits: device.floats(rows * decoder.shape.vocabulary)?,
            gathered: device.activations(rows * decoder.shape.model.width)?,
            picked: device.indices(rows)?,
        })
    }

    /// The full posterior, `[rows, vocabulary]`.
    pub(super) fn posterior(
        &mut self,
        rows: usize,
        hidden: &D::Activations,
    ) -> Result<Vec<f32>, Error> {
        let Self { device, decoder, weights, logits, .. } = self;
        let vocabulary = decoder.shape.vocabulary;
        match &decoder.head {
            Head::Plain(head) => {
                device.logits(rows, head.tokens, weights, hidden, logits);
                device.log_softmax(rows, vocabulary, logits);
            }
            Head::F2(head) => device.f2_log_posterior(rows, head, weights, hidden, logits),
        }
        self.read(rows * vocabulary)
    }

    /// The classes', `[rows, classes]`.
    pub(super) fn classes(
        &mut self,
        rows: usize,
        hidden: &D::Activations,
    ) -> Result<Vec<f32>, Error> {
        let Head::F2(head) = &self.decoder.head else { panic!("a plain head has no classes") };
        let Self { device, weights, logits, .. } = self;
        device.logits(rows, head.classes, weights, hidden, logits);
        device.log_softmax(rows, head.ends.len(), logits);
        self.read(rows * head.ends.len())
    }

    /// Those of one class's tokens within it, for some rows: `[picked, members]`.
    pub(super) fn members(
        &mut self,
        class: usize,
        rows: &[u32],
        hidden: &D::Activations,
    ) -> Result<Vec<f32>, Error> {
        let Head::F2(head) = &self.decoder.head else { panic!("a plain head has no classes") };
        let Self { device, weights, logits, gathered, picked, .. } = self;
        let members = head.members(class);
        let size = members.len();
        device.write_indices(rows, picked);
        device.gather(head.tokens.columns, picked, hidden, gathered);
        device.logits(rows.len(), head.tokens.slice(members), weights, gathered, logits);
        device.log_softmax(rows.len(), size, logits);
        self.read(rows.len() * size)
    }

    fn read(&self, len: usize) -> Result<Vec<f32>, Error> {
        let mut values = vec![0.0; len];
        self.device.read_floats(&self.logits, 0, &mut values)?;
        Ok(values)
    }
}
