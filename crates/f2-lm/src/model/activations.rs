use f2_engine::{Device, Error};

use super::Decoder;

/// Everything a training step keeps between its forward and backward pass, allocated once for
/// the largest batch.
///
/// The residual stream has `2 · layers + 1` stations: before the first block, then after the
/// attention and after the feed-forward layer of each.
pub struct Activations<D: Device> {
    pub(super) layers: Vec<Kept<D>>,
    pub(super) stations: Vec<Station<D>>,
    /// What a branch adds to the residual stream, and later its gradient.
    pub(super) branch: D::Activations,
    pub(super) descent: Descent<D>,
}

/// The gradients on their way down.
pub(super) struct Descent<D: Device> {
    /// Of a norm's output, `[positions, width]`; at the start that of the hidden states.
    pub(super) normed: D::Activations,
    /// Of the residual stream, `[positions, width]`.
    pub(super) stream: D::Activations,
    /// Inside a branch: of queries, keys and values, or of the feed-forward layer.
    pub(super) wide: D::Activations,
}

/// A station of the residual stream.
pub(super) struct Station<D: Device> {
    /// The stream itself, `[positions, width]`.
    pub(super) sum: D::Activations,
    /// The stream after the norm that follows, `[positions, width]`.
    pub(super) normed: D::Activations,
    /// The norm's mean and reciprocal deviation, `[positions, 2]`.
    pub(super) statistics: D::Floats,
}

/// What one block keeps for its backward pass.
pub(super) struct Kept<D: Device> {
    /// `[positions, 3 · width]`.
    pub(super) qkv: D::Activations,
    /// `[positions, width]`.
    pub(super) attended: D::Activations,
    /// `[heads, positions]`.
    pub(super) log_sums: D::Floats,
    /// `[positions, feed_forward]`.
    pub(super) before_gelu: D::Activations,
    /// `[positions, feed_forward]`.
    pub(super) expanded: D::Activations,
}

impl<D: Device> Activations<D> {
    /// Room for batches of up to `positions` positions.
    pub fn new(device: &D, decoder: &Decoder, positions: usize) -> Result<Self, Error> {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let rows = |columns: usize| device.activations(positions * columns);
        let kept = || {
            Ok(Kept {
                qkv: rows(3 * width)?,
                attended: rows(width)?,
                log_sums: device.floats(positions * model.heads)?,
                before_gelu: rows(inner)?,
                expanded: rows(inner)?,
            })
        };
        let station = || {
            let statistics = device.floats(positions * 2)?;
            Ok(Station { sum: rows(width)?, normed: rows(width)?, statistics })
        };
        Ok(Self {
            layers: (0..model.layers).map(|_| kept()).collect::<Result<_, Error>>()?,
            stations: (0..=2 * model.layers).map(|_| station()).collect::<Result<_, Error>>()?,
            branch: rows(width)?,
            descent: Descent {
                normed: rows(width)?,
                stream: rows(width)?,
                wide: rows(inner.max(3 * width))?,
            },
        })
    }

    /// The bytes [`new`](Self::new) asks the device for.
    pub fn bytes(decoder: &Decoder, positions: usize) -> usize {
        let model = &decoder.shape.model;
        let (width, inner) = (model.width, model.feed_forward);
        let stations = 2 * model.layers + 1;
        let activations = model.layers * (4 * width + 2 * inner)
            + stations * 2 * width
            + 3 * width
            + inner.max(3 * width);
        let floats = model.layers * model.heads + stations * 2;
        positions * (activations * D::ACTIVATION_BYTES + floats * size_of::<f32>())
    }

    /// The hidden states the head reads, `[positions, width]`.
    pub fn hidden(&self) -> &D::Activations {
        &self.stations[self.stations.len() - 1].normed
    }

    /// The hidden states, and where the objective puts their gradient.
    pub fn hidden_and_gradient(&mut self) -> (&D::Activations, &mut D::Activations) {
        (&self.stations[self.stations.len() - 1].normed, &mut self.descent.normed)
    }
}
