//! Output heads: losses, predictions, posteriors and draws.

mod draw;
mod labels;

use super::Memory;
use crate::{Error, Parameter};

pub use draw::{ClassLaw, DrawHead, Drawn, TokenLaw};
pub use labels::{IGNORED, Labels, Penalties, Weighting};

/// Output heads.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Heads: Memory {
    /// Targets grouped by class, with the workspace of the head's loss.
    type Targets;
    /// Room for drawing tokens.
    type Draws;

    /// Room for the targets of `positions` hidden states of `width`, and for the workspace of a
    /// head over `vocabulary` tokens in `classes` classes (1 for the plain softmax).
    fn targets(
        &self,
        positions: usize,
        width: usize,
        vocabulary: usize,
        classes: usize,
    ) -> Result<Self::Targets, Error>;
    /// The bytes [`targets`](Self::targets) of these sizes take.
    fn target_bytes(positions: usize, width: usize, vocabulary: usize, classes: usize) -> usize;
    /// Writes a batch's targets and groups them by class.
    fn load_targets(&self, labels: &Labels<'_>, to: &mut Self::Targets);
    /// Gives the positions of loaded targets other weights, which may depend on what
    /// [`softmax_predictions`](Self::softmax_predictions) has just found. From those to the loss,
    /// hidden states and parameters must stay as they are: the device may keep logits.
    fn reweigh_targets(&self, weights: &[f32], to: &mut Self::Targets);
    /// Room for drawing `rows` tokens at a time; none where the host draws from what it reads.
    fn draws(&self, rows: usize) -> Result<Option<Self::Draws>, Error>;

    /// The plain softmax's loss. `hidden: [positions, width]`, for the positions of `targets`;
    /// `losses: [2, positions]` gets each position's weighted negative log-likelihood and its
    /// weighted penalties, in nats. Nothing of size positions × vocabulary is stored.
    fn softmax_loss(
        &self,
        head: SoftmaxHead,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
    );
    /// The same with the gradients of hidden states and token vectors.
    fn softmax_loss_backward(
        &self,
        head: SoftmaxHead,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
        d_hidden: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// The most likely token of every position of `targets` that is not ignored (ties: the
    /// smallest id); ignored ones get [`IGNORED`](crate::IGNORED).
    fn softmax_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        predictions: &mut Self::Indices,
    );
    /// F²'s loss: `losses: [2, positions]` gets each position's weighted negative log-likelihood
    /// of the class and of the token within it. Their sum is that of the full posterior.
    fn f2_loss(
        &self,
        head: &F2Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
    );
    /// The same with the gradients of hidden states, class vectors and token vectors.
    fn f2_loss_backward(
        &self,
        head: &F2Head,
        weights: &Self::Weights,
        targets: &mut Self::Targets,
        hidden: &Self::Activations,
        losses: &mut Self::Floats,
        d_hidden: &mut Self::Activations,
        gradients: &mut Self::Floats,
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
    /// F²'s full posterior: `log_posterior: [rows, vocabulary]`, in nats.
    fn f2_log_posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Self::Weights,
        hidden: &Self::Activations,
        log_posterior: &mut Self::Floats,
    );
    /// Draws a token from every hidden state. `uniforms: [rows, 2]` are numbers from `[0, 1)`: the
    /// first decides the class and the second the token, or the first the token where there is no
    /// class to draw. `logits` has room for `[rows, vocabulary]`. Waits for the result.
    fn draw(
        &self,
        head: DrawHead<'_>,
        law: TokenLaw,
        weights: &Self::Weights,
        hidden: &Self::Activations,
        uniforms: &[[f64; 2]],
        logits: &mut Self::Floats,
        draws: &mut Self::Draws,
    ) -> Result<Vec<Drawn>, Error>;
}

/// The plain output layer: one softmax over the vocabulary, no biases.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxHead {
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
}

/// The frequency-factorised output layer: a softmax over classes and one within each class.
///
/// Ids are frequency ranks, so class `j` owns the contiguous ids `ends[j - 1]..ends[j]` and its
/// token vectors are a slice of the output matrix.
#[derive(Clone, Debug)]
pub struct F2Head {
    /// `U`, `[classes, width]`.
    pub classes: Parameter,
    /// `O`, `[vocabulary, width]`.
    pub tokens: Parameter,
    /// Where each class ends, ascending; the last is the vocabulary.
    pub ends: Vec<u32>,
}

impl F2Head {
    /// The ids class `class` owns.
    pub fn members(&self, class: usize) -> std::ops::Range<usize> {
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[class] as usize
    }

    /// The class that owns `id`.
    pub fn class_of(&self, id: u32) -> usize {
        self.ends.partition_point(|&end| end <= id)
    }
}
