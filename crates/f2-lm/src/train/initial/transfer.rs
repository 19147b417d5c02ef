//! Initialises a decoder with the parameters of a trained model.

use f2_engine::{Classes, Device, Parameter};

use super::InitialModel;
use crate::Error;
use crate::config::ClassVectors;
use crate::model::{Decoder, Model, Network};
use crate::run::checkpoint;

impl InitialModel {
    /// Loads its parameters into a network it was [checked](Self::check) for: rows of tokens in
    /// the order of the corpus, as many positions as the network has, and the embedding also as the
    /// output matrix if only the model's is tied. Class vectors are copied if the classes are the
    /// same; otherwise they keep their random values or become the mean of their tokens' vectors,
    /// weighted by `counts`, which are by rank.
    pub fn load<D: Device>(
        &self,
        network: &mut Network<D>,
        class_vectors: ClassVectors,
        counts: &[u64],
    ) -> Result<(), Error> {
        let Model { device, decoder, weights } = &mut network.model;
        let keeps_classes = self.keeps_classes(decoder);
        let layout = self.model.decoder().layout;
        checkpoint::read_model(&self.model.folder, &layout, |named, values| {
            let mut put = |values: &[f32], to| device.write_weights(values, to, weights);
            match named.name.as_str() {
                "embedding.tokens" => {
                    let values = self.in_order(values, named.parameter.columns);
                    put(&values, decoder.embedding.tokens);
                    if self.model.shape.model.tied && !decoder.shape.model.tied {
                        put(&values, decoder.head.tokens);
                    }
                }
                "head.tokens" => {
                    put(&self.in_order(values, named.parameter.columns), decoder.head.tokens);
                }
                "embedding.positions" => {
                    let positions = decoder.embedding.positions;
                    put(&values[..positions.len()], positions);
                }
                "head.classes" if !keeps_classes => {}
                name => put(values, parameter(decoder, name)),
            }
        })?;
        match &decoder.head.classes {
            Some(classes) if !keeps_classes && class_vectors == ClassVectors::Mean => {
                start_from_tokens(device, decoder.head.tokens, classes, counts, weights)
            }
            _ => Ok(()),
        }
    }

    fn keeps_classes(&self, decoder: &Decoder) -> bool {
        !self.is_transfer() && self.model.shape.class_ends == decoder.shape.class_ends
    }

    /// Token vectors in the order of the corpus's ranks. `values: [rows, width]`.
    fn in_order(&self, values: &[f32], width: usize) -> Vec<f32> {
        let Some(rows) = &self.rows else { return values.to_vec() };
        let row = |row: &u32| &values[*row as usize * width..][..width];
        rows.iter().flat_map(row).copied().collect()
    }
}

fn parameter(decoder: &Decoder, name: &str) -> Parameter {
    let mut all = decoder.layout.parameters().iter();
    all.find(|named| named.name == name).expect("the shapes agree").parameter
}

/// Makes each class vector the mean of its tokens' vectors, weighted by their counts. Tokens that
/// never occur count once, as they do when classes are chosen.
fn start_from_tokens<D: Device>(
    device: &D,
    tokens: Parameter,
    classes: &Classes,
    counts: &[u64],
    weights: &mut D::Weights,
) -> Result<(), Error> {
    let width = tokens.columns;
    let mut means = Vec::with_capacity(classes.count() * width);
    for class in 0..classes.count() {
        let members = classes.members(class);
        let slice = tokens.slice(members.clone());
        let mut vectors = vec![0.0; slice.len()];
        device.read_weights(weights, slice, &mut vectors)?;
        means.extend(weighted_mean(&vectors, &counts[members], width));
    }
    device.write_weights(&means, classes.vectors, weights);
    Ok(())
}

fn weighted_mean(vectors: &[f32], counts: &[u64], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f64; width];
    let mut total = 0.0;
    for (vector, count) in vectors.chunks_exact(width).zip(counts) {
        let weight = (*count).max(1) as f64;
        total += weight;
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * f64::from(*value));
    }
    sum.into_iter().map(|sum| (sum / total) as f32).collect()
}
