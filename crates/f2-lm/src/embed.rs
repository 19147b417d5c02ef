//! Hidden states of texts, as points by which texts are compared.

use f2_engine::{Device, Sequences};

use crate::Error;
use crate::memory::{Purpose, check_memory};
use crate::model::{Batch, Model, Recordings, Workspace};

/// The most positions of a batch, unless a single text has more.
const MOST_POSITIONS: usize = 2048;
/// Lengths are padded to a multiple of this, so that a device meets few different shapes.
const BUCKET: usize = 32;

/// How the hidden states of a text become one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The state of its last token.
    Last,
    /// The mean over all its tokens.
    Mean,
}

/// The last layer's hidden states of texts, after the final norm: `width` numbers for each text.
/// Texts longer than the model's context are truncated to their first tokens; an empty text has
/// zeros.
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
    let needed = Workspace::<D>::activation_bytes(&model.decoder, most, false)
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

#[cfg(test)]
mod tests {
    use f2_engine::Cpu;

    use super::*;
    use crate::config::ModelConfig;
    use crate::model::{Decoder, ModelShape};

    /// A text has the same states alone and among longer ones, and is truncated to its first tokens
    /// if it is longer than the model's context.
    #[test]
    fn neither_padding_nor_the_batch_changes_a_text() {
        let model =
            ModelConfig { layers: 2, width: 8, heads: 2, feed_forward: 8, ..Default::default() };
        let shape = ModelShape { model, positions: 40, vocabulary: 61, class_ends: vec![] };
        let model = Model::initialised(Cpu::new(1).unwrap(), Decoder::new(shape), 7).unwrap();
        let text = |length: u32| (0..length).map(|place| place * place % 61).collect::<Vec<u32>>();
        let read = |texts: &[Vec<u32>], pooling| {
            hidden_states(&model, texts, pooling, &|_| {}, &|| false).unwrap().unwrap()
        };
        let texts = [text(5), text(1), vec![], text(40), text(33), text(60)];
        for pooling in [Pooling::Last, Pooling::Mean] {
            let together = read(&texts, pooling);
            for (text, states) in texts.iter().zip(together.chunks(8)) {
                let alone = read(std::slice::from_ref(text), pooling);
                let apart = states.iter().zip(&alone).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-5, "{} tokens", text.len());
            }
            assert_eq!(together[2 * 8..3 * 8], [0.0; 8]);
            // The texts of 40 and 60 tokens have the same first 40.
            assert_eq!(together[3 * 8..4 * 8], together[5 * 8..]);
        }
        // The mean of the prefixes' last states.
        let prefixes: Vec<Vec<u32>> = (1..=5).map(text).collect();
        let last = read(&prefixes, Pooling::Last);
        let mean = read(&prefixes[4..], Pooling::Mean);
        for (at, mean) in mean.iter().enumerate() {
            let expected = last.iter().skip(at).step_by(8).sum::<f32>() / 5.0;
            assert!((mean - expected).abs() < 1e-5);
        }
        let outside = hidden_states(&model, &[vec![61]], Pooling::Last, &|_| {}, &|| false);
        assert!(matches!(outside, Err(Error::TokenOutside { token: 61, .. })));
        assert!(hidden_states(&model, &texts, Pooling::Last, &|_| {}, &|| true).unwrap().is_none());
    }
}
