//! Output heads: losses, predictions, posteriors and draws.

mod labels;
mod sampling;

use std::ops::Range;

use super::Memory;
use crate::{Error, Parameter};

pub use labels::{IGNORED, Labels, Penalties, Weighting};
pub use sampling::{ClassSampling, Drawn, Sampling, TokenSampling};

/// Output heads.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Heads: Memory {
    /// Targets grouped by class, with the workspace for the head's loss.
    type Targets;
    /// The buffers of [`draw`](Self::draw).
    type Draws;

    /// Buffers for the targets of `positions` hidden states and the workspace for the head's loss.
    fn targets(&self, positions: usize, head: &Head) -> Result<Self::Targets, Error>;
    /// The size in bytes of [`targets`](Self::targets) with these arguments.
    fn target_bytes(positions: usize, head: &Head) -> usize;
    /// Writes a batch's targets and groups them by the head's classes.
    fn load_targets(&self, head: &Head, labels: &Labels<'_>, to: &mut Self::Targets);
    /// Replaces the weights of the loaded targets, which may depend on the
    /// [`predictions`](Self::predictions) just made. Hidden states and parameters must not change
    /// between these predictions and the loss: the device may reuse logits.
    fn reweigh_targets(&self, weights: &[f32], to: &mut Self::Targets);

    /// The loss. `hidden: [positions, width]`, for the positions of `targets`;
    /// `losses: [2, positions]` receives the two terms of each position's weighted loss, in nats.
    /// With classes they are the negative log-likelihoods of the class and of the token within it;
    /// without, the token's negative log-likelihood and the penalties. Nothing of size
    /// positions × vocabulary is stored.
    fn loss(
        &self,
        head: &Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
    );
    /// [`loss`](Self::loss), with the gradients of the hidden states and of the head's vectors.
    fn loss_backward(
        &self,
        head: &Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
        d_hidden: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// The most likely token at every position of `targets` (ties: the smallest id), or [`IGNORED`]
    /// at ignored positions.
    fn predictions(
        &self,
        head: &Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        predictions: &mut Self::Indices,
    );

    /// `logits: [rows, matrix.rows]`, the products of hidden states and the rows of a matrix: class
    /// vectors, all token vectors, or those of one class.
    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Self::Weights,
        hidden: &Self::Activations,
        logits: &mut Self::Floats,
    );
    /// Turns logits into log-probabilities in place. `logits: [rows, columns]`.
    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Self::Floats);
    /// The full posterior: `log_posterior: [rows, vocabulary]`, in nats.
    fn log_posterior(
        &self,
        rows: usize,
        head: &Head,
        weights: &Self::Weights,
        hidden: &Self::Activations,
        log_posterior: &mut Self::Floats,
    );

    /// Buffers for drawing `rows` tokens at a time; `None` if the device leaves drawing to the
    /// host.
    fn draws(&self, rows: usize) -> Result<Option<Self::Draws>, Error>;
    /// Whether [`draw`](Self::draw) supports this head with these settings.
    fn can_draw(&self, head: &Head, sampling: &Sampling) -> bool;
    /// Draws a token for every hidden state. `uniforms: [rows, 2]` are numbers in `[0, 1)`: the
    /// first selects the class and the second the token, or the first selects the token if no class
    /// is drawn. `logits: [rows, vocabulary]` is scratch space. Waits for the result.
    fn draw(
        &self,
        head: &Head,
        sampling: &Sampling,
        weights: &Self::Weights,
        hidden: &Self::Activations,
        uniforms: &[[f64; 2]],
        logits: &mut Self::Floats,
        draws: &mut Self::Draws,
    ) -> Result<Vec<Drawn>, Error>;
}

/// An output head, without biases: one softmax over all tokens, or the frequency-factorised
/// softmax F², with one softmax over classes and one within each class. F² with a single class
/// equals the plain softmax, bit for bit.
#[derive(Clone, Debug)]
pub struct Head {
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
    /// The classes of F²; `None` for the plain softmax.
    pub classes: Option<Classes>,
}

/// The frequency classes of an F² head.
///
/// Ids are frequency ranks, so class `j` has the contiguous ids `ends[j - 1]..ends[j]` and its
/// token vectors are a slice of the output matrix.
#[derive(Clone, Debug)]
pub struct Classes {
    /// `U`, `[classes, width]`.
    pub vectors: Parameter,
    /// The end of each class, ascending; the last is the size of the vocabulary.
    pub ends: Vec<u32>,
}

impl Head {
    /// The plain softmax over token vectors.
    pub fn plain(tokens: Parameter) -> Self {
        Self { tokens, classes: None }
    }

    /// The end of each class; empty for the plain softmax.
    pub fn class_ends(&self) -> &[u32] {
        self.classes.as_ref().map_or(&[], |classes| &classes.ends)
    }

    /// The number of softmaxes over tokens: one for each class, or a single one.
    pub(crate) fn parts(&self) -> usize {
        self.class_ends().len().max(1)
    }

    /// The ids and token vectors of a class; all of them for the plain softmax, whose class is 0.
    pub(crate) fn part(&self, class: usize) -> (Range<usize>, Parameter) {
        let all = || 0..self.tokens.rows;
        let members = self.classes.as_ref().map_or_else(all, |classes| classes.members(class));
        (members.clone(), self.tokens.slice(members))
    }
}

impl Classes {
    /// The number of classes.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The ids in a class.
    pub fn members(&self, class: usize) -> Range<usize> {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[class] as usize
    }

    /// The class of a token.
    pub fn class_of(&self, id: u32) -> usize {
        self.ends.partition_point(|&end| end <= id)
    }
}
