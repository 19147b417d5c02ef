//! Hidden states of texts: points that stand for them where texts are compared.

use f2_engine::{Device, Sequences};

use crate::Error;
use crate::memory::{Purpose, check_memory};
use crate::model::{Batch, Model, Recordings, Workspace};

/// Positions read at a time, at most, unless one text has more.
const MOST_POSITIONS: usize = 2048;
/// Lengths are padded to a multiple of this, so that a device meets few different shapes.
const BUCKET: usize = 32;

/// Which hidden states stand for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// That of its last token.
    Last,
    /// The mean of all its tokens'.
    Mean,
}

/// The last layer's hidden states of texts, after the final norm: `width` numbers for each text. Of a
/// text longer than the model sees, the first tokens are read; an empty text has zeros.
///
/// `progress` is called with the number of tokens read since its last call. `None` if stopped.
pub fn hidden_states<D: Device>(
    model: &Model<D>,
    texts: &[Vec<u32>],
    pooling: Pooling,
    progress: &dyn Fn(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Option<Vec<f32>>, Error> {
    let shape = &model.decoder.shape;
    let (width, longest) = (shape.model.width, shape.positions);
    let tokens = |text: usize| &texts[text][..texts[text].len().min(longest)];
    let padded = |text: usize| tokens(text).len().next_multiple_of(BUCKET).min(longest);
    for text in texts {
        if let Some(&token) = text.iter().find(|token| **token as usize >= shape.vocabulary) {
            return Err(Error::TokenOutside { token, vocabulary: shape.vocabulary });
        }
    }
    let mut order: Vec<usize> = (0..texts.len()).filter(|&text| !texts[text].is_empty()).collect();
    order.sort_by_key(|&text| padded(text));
    let most = order.last().map_or(0, |&text| padded(text)).max(MOST_POSITIONS);
    let needed = Workspace::<D>::activation_bytes(&model.decoder, most)
        + Workspace::<D>::head_bytes(&model.decoder, most);
    check_memory(&model.device, Purpose::Embedding, needed)?;
    let mut workspace = Workspace::new(model, most)?;
    let mut recordings = Recordings::default();
    let mut points = vec![0.0; texts.len() * width];
    let mut hidden = Vec::new();
    for same in order.chunk_by(|one, other| padded(*one) == padded(*other)) {
        let length = padded(same[0]);
        for batch in same.chunks((most / length).max(1)) {
            if stop() {
                return Ok(None);
            }
            let sequences = Sequences { count: batch.len(), length };
            let mut inputs = vec![0; sequences.positions()];
            for (row, &text) in inputs.chunks_mut(length).zip(batch) {
                row[..tokens(text).len()].copy_from_slice(tokens(text));
            }
            let read = Batch { sequences, inputs: &inputs, dropout: None };
            workspace.forward(model, read, &mut recordings);
            hidden.resize(sequences.positions() * width, 0.0);
            model.device.read_activations(workspace.hidden(), &mut hidden)?;
            for (states, &text) in hidden.chunks(length * width).zip(batch) {
                let states = &states[..tokens(text).len() * width];
                pool(states, pooling, &mut points[text * width..][..width]);
            }
            progress(batch.iter().map(|&text| tokens(text).len() as u64).sum());
        }
    }
    Ok(Some(points))
}

/// The point of a text from the hidden states of its tokens.
fn pool(states: &[f32], pooling: Pooling, point: &mut [f32]) {
    let width = point.len();
    match pooling {
        Pooling::Last => point.copy_from_slice(&states[states.len() - width..]),
        Pooling::Mean => {
            let tokens = (states.len() / width) as f64;
            for (at, mean) in point.iter_mut().enumerate() {
                let sum: f64 = states.iter().skip(at).step_by(width).map(|x| f64::from(*x)).sum();
                *mean = (sum / tokens) as f32;
            }
        }
    }
}
