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
    /// Targets grouped by class, with the workspace of the head's loss.
    type Targets;
    /// The buffers of [`draw`](Self::draw).
    type Draws;

    /// Buffers for the targets of `positions` hidden states and for the workspace of the head's loss.
    fn targets(&self, positions: usize, head: &Head) -> Result<Self::Targets, Error>;
    /// The bytes [`targets`](Self::targets) of these sizes take.
    fn target_bytes(positions: usize, head: &Head) -> usize;
    /// Writes a batch's targets and groups them by the head's classes.
    fn load_targets(&self, head: &Head, labels: &Labels<'_>, to: &mut Self::Targets);
    /// Gives the positions of loaded targets other weights, which may depend on the
    /// [`predictions`](Self::predictions) just made. From those to the loss, hidden states and
    /// parameters must stay as they are: the device may reuse logits.
    fn reweigh_targets(&self, weights: &[f32], to: &mut Self::Targets);

    /// The loss. `hidden: [positions, width]`, for the positions of `targets`; `losses: [2,
    /// positions]` gets two parts of each position's weighted loss, in nats, whose sum is the
    /// whole. With classes they are the negative log-likelihoods of the class and of the token
    /// within it; without, the token's and the penalties. Nothing of size positions × vocabulary
    /// is stored.
    fn loss(
        &self,
        head: &Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
    );
    /// [`loss`](Self::loss) with the gradients of hidden states and of the head's vectors.
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
    /// The most likely token of every position of `targets` that is not ignored (ties: the
    /// smallest id); ignored ones get [`IGNORED`].
    fn predictions(
        &self,
        head: &Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        predictions: &mut Self::Indices,
    );

    /// `logits: [rows, matrix.rows]`, the products of hidden states and the matrix's rows: class
    /// vectors, all token vectors, or one class's.
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

    /// Buffers for drawing `rows` tokens at a time; none if the device leaves drawing to the host.
    fn draws(&self, rows: usize) -> Result<Option<Self::Draws>, Error>;
    /// Whether [`draw`](Self::draw) takes this head with these settings.
    fn can_draw(&self, head: &Head, sampling: &Sampling) -> bool;
    /// Draws a token from every hidden state. `uniforms: [rows, 2]` are numbers from `[0, 1)`: the
    /// first decides the class and the second the token, or the first the token where there is no
    /// class to draw. `logits` is scratch of `[rows, vocabulary]`. Waits for the result.
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
/// softmax F², one over classes and one within each. F² with a single class is the plain softmax,
/// bit for bit.
#[derive(Clone, Debug)]
pub struct Head {
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
    /// The classes of F²; none for the plain softmax.
    pub classes: Option<Classes>,
}

/// The frequency classes of an F² head.
///
/// Ids are frequency ranks, so class `j` owns the contiguous ids `ends[j - 1]..ends[j]` and its
/// token vectors are a slice of the output matrix.
#[derive(Clone, Debug)]
pub struct Classes {
    /// `U`, `[classes, width]`.
    pub vectors: Parameter,
    /// Where each class ends, ascending; the last is the vocabulary.
    pub ends: Vec<u32>,
}

impl Head {
    /// The plain softmax over token vectors.
    pub fn plain(tokens: Parameter) -> Self {
        Self { tokens, classes: None }
    }

    /// Where each class ends; empty for the plain softmax.
    pub fn class_ends(&self) -> &[u32] {
        self.classes.as_ref().map_or(&[], |classes| &classes.ends)
    }

    /// How many softmaxes over tokens there are: one for each class, or one.
    pub(crate) fn parts(&self) -> usize {
        self.class_ends().len().max(1)
    }

    /// The token vectors of class `class`; all of them for the plain softmax, which is class 0.
    pub(crate) fn part(&self, class: usize) -> (Range<usize>, Parameter) {
        let all = || 0..self.tokens.rows;
        let members = self.classes.as_ref().map_or_else(all, |classes| classes.members(class));
        (members.clone(), self.tokens.slice(members))
    }
}

impl Classes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The ids class `class` owns.
    pub fn members(&self, class: usize) -> Range<usize> {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[class] as usize
    }

    /// The class that owns `id`.
    pub fn class_of(&self, id: u32) -> usize {
        self.ends.partition_point(|&end| end <= id)
    }
}
