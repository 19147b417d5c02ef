//! Output heads: losses, predictions, posteriors and draws; the targets of a batch, on the host, and
//! how a device samples tokens.

use std::ops::Range;

use super::Memory;
use crate::{Error, Parameter};

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
    /// Whether [`draw`](Self::draw) supports this head.
    fn can_draw(&self, head: &Head) -> bool;
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

/// The target of an ignored position, which contributes no likelihood and no gradient of it.
pub const IGNORED: u32 = u32::MAX;

/// The weights of the positions' losses.
///
/// A mean over `n` positions is `Uniform(1.0 / n as f32)`, with `n` counted over the whole step so
/// that micro-batches add up.
#[derive(Clone, Copy, Debug)]
pub enum Weighting<'a> {
    /// The same weight for all.
    Uniform(f32),
    /// A weight for each: `[positions]`.
    Each(&'a [f32]),
}

impl Weighting<'_> {
    /// The weight of one position.
    pub fn of(self, position: usize) -> f32 {
        match self {
            Self::Uniform(weight) => weight,
            Self::Each(weights) => weights[position],
        }
    }
}

/// Unlikelihood's negative candidates.
///
/// Each candidate `c` adds `-weight · ln max(1 - p(c), floor)`; at the floor it has no gradient.
/// A position's own target is skipped, so the earlier targets of a row can be given as one list of
/// distinct tokens in order of appearance, with a growing range of it for every position. An
/// [`IGNORED`] target skips no candidate.
#[derive(Clone, Copy, Debug)]
pub struct Penalties<'a> {
    /// Lists of distinct tokens, concatenated.
    pub candidates: &'a [u32],
    /// The range of `candidates` for each position; ranges may overlap or be empty.
    pub ranges: &'a [Range<u32>],
    /// α divided by the number of positions.
    pub weight: f32,
    /// The lower bound of `1 - p`.
    pub floor: f32,
}

/// One batch's targets.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// `[positions]`: the next token at each, or [`IGNORED`].
    pub ids: &'a [u32],
    /// The weight of each.
    pub weights: Weighting<'a>,
    /// Unlikelihood, for the plain softmax only.
    pub penalties: Option<Penalties<'a>>,
}

impl<'a> Labels<'a> {
    /// Targets of equal weight, without penalties.
    pub fn uniform(ids: &'a [u32], weight: f32) -> Self {
        Self { ids, weights: Weighting::Uniform(weight), penalties: None }
    }
}

/// How the next token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Draws a class first, then a token within it; `None` draws a token from the full posterior.
    /// Only for a head with classes.
    pub class: Option<ClassSampling>,
    /// How the token is drawn, within its class or from all tokens.
    pub token: TokenSampling,
}

/// How a class is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassSampling {
    /// Divides the log-probabilities; 0 selects the most likely class.
    pub temperature: f64,
    /// Keeps the k most likely classes and any that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the most likely classes whose total probability does not exceed this, at least one.
    pub top_p: f64,
}

/// How a token is drawn: the temperature, and the rules that decide which tokens may be drawn.
///
/// Top-nσ and top-k are applied first, both to all tokens, before the temperature; then the others
/// in this order, each to the distribution left by those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSampling {
    /// Divides the log-probabilities; 0 selects the most likely token.
    pub temperature: f64,
    /// Keeps tokens whose log-probability is within this many standard deviations of the largest.
    pub top_n_sigma: Option<f64>,
    /// Keeps the k most likely tokens and any that tie with the last of them.
    pub top_k: Option<usize>,
    /// Keeps the fewest tokens that reach this mass, those first whose information is closest to
    /// the entropy.
    pub typical: Option<f64>,
    /// Keeps the fewest tokens that reach this mass, the most likely first.
    pub top_p: Option<f64>,
    /// Keeps tokens with at least this fraction of the highest probability.
    pub min_p: Option<f64>,
    /// Keeps tokens with at least this probability, and the most likely.
    pub epsilon_cutoff: Option<f64>,
    /// Keeps tokens with at least the probability `min(η, √η · exp(−entropy))`, and the most
    /// likely.
    pub eta_cutoff: Option<f64>,
}

impl TokenSampling {
    /// A draw from all tokens.
    pub fn all(temperature: f64) -> Self {
        Self {
            temperature,
            top_n_sigma: None,
            top_k: None,
            typical: None,
            top_p: None,
            min_p: None,
            epsilon_cutoff: None,
            eta_cutoff: None,
        }
    }
}

/// A drawn token, with its probability under the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The token; `None` if the model's logits are NaN.
    pub id: Option<u32>,
    /// The logarithm of its probability, including that of its class.
    pub log_probability: f32,
    /// Its class and the logarithm of the class's probability; `None` for the plain softmax.
    pub class: Option<(u32, f32)>,
}
