//! One pre-norm transformer block: its parameters, its forward pass with full or cached attention,
//! and its backward pass.
//!
//! A block has two branches, attention and the feed-forward layer. Each reads the normed residual
//! stream and is added back to it; the sum and the norm that follows are one operation, so that a
//! branch ends with the norm of the next one.

use f2_engine::{Device, Dropout, Error, Layout, Linear, Norm, Sequences};

use super::Model;
use crate::config::ModelConfig;

/// The parameters of one block, in the order they are used.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its number, from 0.
    pub layer: usize,
    /// Before attention.
    pub attention_norm: Norm,
    /// Queries, keys and values side by side.
    pub qkv: Linear,
    /// From the heads back into the residual stream.
    pub attention_out: Linear,
    /// Before the feed-forward layer.
    pub feed_forward_norm: Norm,
    /// Into the feed-forward layer.
    pub expand: Linear,
    /// Out of it, into the residual stream.
    pub contract: Linear,
}

/// The model and the dropout of a pass over some rows.
pub(super) struct Pass<'a, D: Device> {
    pub(super) model: &'a Model<D>,
    /// Positions of all sequences together.
    pub(super) rows: usize,
    /// The probability of dropout; 0 outside training.
    pub(super) dropout: f32,
    /// The moment dropout is drawn at.
    pub(super) clock: &'a D::Clock,
}

/// Where dropout acts. Every site draws its own numbers.
#[derive(Clone, Copy)]
pub(super) enum Site {
    Embedding,
    Attention(usize),
    FeedForward(usize),
}

/// The keys and values that the queries of a pass attend to.
pub(super) enum Attention<'a, D: Device> {
    /// Those of earlier positions of the same sequence, all in the same pass. Saves the
    /// log-sum-exps that the backward pass needs, `[heads, positions]`.
    Full { sequences: Sequences, log_sums: &'a mut D::Floats },
    /// Those, and the ones in a cache, to which the new keys and values are added.
    Cached { spans: &'a D::Spans, cache: &'a mut D::Cache },
}

/// The residual stream between two branches.
pub(super) struct Residual<D: Device> {
    /// The stream itself, `[rows, width]`.
    pub(super) sum: D::Activations,
    /// The stream after the norm that follows, `[rows, width]`.
    pub(super) normed: D::Activations,
    /// The norm's mean and reciprocal deviation, `[rows, 2]`.
    pub(super) statistics: D::Floats,
}

/// The activations inside a block that its backward pass needs.
pub(super) struct BlockActivations<D: Device> {
    /// `[rows, 3 · width]`.
    pub(super) qkv: D::Activations,
    /// `[rows, width]`.
    pub(super) attended: D::Activations,
    /// `[rows, feed_forward]`.
    pub(super) before_gelu: D::Activations,
    /// `[rows, feed_forward]`.
    pub(super) expanded: D::Activations,
}

/// Gradients of activations in a backward pass. All blocks share these buffers.
pub(super) struct ActivationGradients<D: Device> {
    /// Of a norm's output, `[rows, width]`; at first that of the hidden states.
    pub(super) normed: D::Activations,
    /// Of the residual stream, `[rows, width]`.
    pub(super) stream: D::Activations,
    /// Inside a branch: of queries, keys and values, or of the feed-forward layer.
    pub(super) wide: D::Activations,
}

/// A backward pass: its inputs, and the gradients at the current layer.
pub(super) struct Backward<'a, D: Device> {
    pub(super) pass: &'a Pass<'a, D>,
    /// Of a branch's output, `[rows, width]`.
    pub(super) branch: &'a mut D::Activations,
    pub(super) activations: &'a mut ActivationGradients<D>,
    /// Of the parameters; accumulated.
    pub(super) parameters: &'a mut D::Floats,
}

impl Block {
    /// Adds the parameters of block `layer` to the layout.
    pub(super) fn new(layout: &mut Layout, layer: usize, model: &ModelConfig) -> Self {
        let (width, inner) = (model.width, model.feed_forward);
        let name = |part: &str| format!("block.{layer}.{part}");
        Self {
            layer,
            attention_norm: add_norm(layout, &name("attention_norm"), width),
            qkv: add_linear(layout, &name("qkv"), width, 3 * width),
            attention_out: add_linear(layout, &name("attention_out"), width, width),
            feed_forward_norm: add_norm(layout, &name("feed_forward_norm"), width),
            expand: add_linear(layout, &name("expand"), width, inner),
            contract: add_linear(layout, &name("contract"), inner, width),
        }
    }

    /// The first branch, from the normed stream in `before` to the sum and norm in `after`.
    /// `branch: [rows, width]` is overwritten.
    pub(super) fn attention<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        attention: Attention<'_, D>,
        before: &Residual<D>,
        inside: &mut BlockActivations<D>,
        branch: &mut D::Activations,
        after: &mut Residual<D>,
    ) {
        let Model { device, decoder, weights } = pass.model;
        let BlockActivations { qkv, attended, .. } = inside;
        device.linear(pass.rows, self.qkv, weights, &before.normed, qkv);
        match attention {
            Attention::Full { sequences, log_sums } => {
                device.attention(sequences, decoder.heads, qkv, attended, log_sums);
            }
            Attention::Cached { spans, cache } => {
                device.attention_cached(self.layer, spans, qkv, cache, attended);
            }
        }
        device.linear(pass.rows, self.attention_out, weights, attended, branch);
        let dropout = pass.dropout(Site::Attention(self.layer));
        pass.add_branch(self.feed_forward_norm, dropout, before, branch, after);
    }

    /// The second branch, likewise. `next` is the norm that follows the block.
    pub(super) fn feed_forward<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        next: Norm,
        before: &Residual<D>,
        inside: &mut BlockActivations<D>,
        branch: &mut D::Activations,
        after: &mut Residual<D>,
    ) {
        let Model { device, weights, .. } = pass.model;
        self.expand(pass, before, inside);
        device.linear(pass.rows, self.contract, weights, &inside.expanded, branch);
        let dropout = pass.dropout(Site::FeedForward(self.layer));
        pass.add_branch(next, dropout, before, branch, after);
    }

    /// The first half of the second branch, whose activations the backward pass reads.
    pub(super) fn expand<D: Device>(
        &self,
        pass: &Pass<'_, D>,
        before: &Residual<D>,
        inside: &mut BlockActivations<D>,
    ) {
        let Model { device, weights, .. } = pass.model;
        let BlockActivations { before_gelu, expanded, .. } = inside;
        let (rows, input) = (pass.rows, &before.normed);
        device.linear_gelu(rows, self.expand, weights, input, before_gelu, expanded);
    }

    /// The backward pass of [`feed_forward`](Self::feed_forward).
    pub(super) fn feed_forward_backward<D: Device>(
        &self,
        backward: &mut Backward<'_, D>,
        next: Norm,
        [before, after]: [&Residual<D>; 2],
        inside: &BlockActivations<D>,
    ) {
        backward.add_branch(next, Site::FeedForward(self.layer), after);
        let Backward { pass, branch: d_branch, activations, parameters } = backward;
        let (Model { device, weights, .. }, rows) = (pass.model, pass.rows);
        let ActivationGradients { normed: d_normed, wide: d_before, .. } = &mut **activations;
        let BlockActivations { before_gelu, expanded, .. } = inside;
        device.linear_backward_gelu(
            rows,
            self.contract,
            weights,
            before_gelu,
            expanded,
            d_branch,
            d_before,
            parameters,
        );
        let input = &before.normed;
        device.linear_backward(rows, self.expand, weights, input, d_before, d_normed, parameters);
    }

    /// The backward pass of [`attention`](Self::attention) over whole sequences.
    pub(super) fn attention_backward<D: Device>(
        &self,
        backward: &mut Backward<'_, D>,
        sequences: Sequences,
        log_sums: &D::Floats,
        [before, after]: [&Residual<D>; 2],
        inside: &BlockActivations<D>,
    ) {
        backward.add_branch(self.feed_forward_norm, Site::Attention(self.layer), after);
        let Backward { pass, branch: d_branch, activations, parameters } = backward;
        let (Model { device, decoder, weights }, rows) = (pass.model, pass.rows);
        let ActivationGradients { normed: d_normed, wide: d_qkv, .. } = &mut **activations;
        let BlockActivations { qkv, attended, .. } = inside;
        // The norm's gradient is no longer needed: its buffer is reused for that of the heads.
        let d_attended = &mut *d_normed;
        let out = self.attention_out;
        device.linear_backward(rows, out, weights, attended, d_branch, d_attended, parameters);
        let heads = decoder.heads;
        device.attention_backward(sequences, heads, qkv, attended, log_sums, d_attended, d_qkv);
        let input = &before.normed;
        device.linear_backward(rows, self.qkv, weights, input, d_qkv, d_normed, parameters);
    }
}

impl<D: Device> Pass<'_, D> {
    pub(super) fn dropout(&self, site: Site) -> Dropout<'_, D> {
        Dropout { probability: self.dropout, site: site.number(), clock: self.clock }
    }

    /// Adds a branch to the residual stream and normalises the sum.
    fn add_branch(
        &self,
        norm: Norm,
        dropout: Dropout<'_, D>,
        before: &Residual<D>,
        branch: &D::Activations,
        after: &mut Residual<D>,
    ) {
        let Model { device, weights, .. } = self.model;
        let Residual { sum, normed, statistics } = after;
        device.residual_norm(
            self.rows,
            norm,
            weights,
            dropout,
            &before.sum,
            branch,
            sum,
            normed,
            statistics,
        );
    }
}

impl<D: Device> Backward<'_, D> {
    /// The backward pass of the sum and norm after a branch; leaves the gradient of the branch's
    /// output in `branch`.
    fn add_branch(&mut self, norm: Norm, site: Site, after: &Residual<D>) {
        let Self { pass, branch: d_branch, activations, parameters } = self;
        let Model { device, weights, .. } = pass.model;
        let ActivationGradients { normed: d_normed, stream: d_sum, .. } = &mut **activations;
        device.residual_norm_backward(
            pass.rows,
            norm,
            weights,
            pass.dropout(site),
            &after.sum,
            &after.statistics,
            d_normed,
            d_sum,
            d_branch,
            parameters,
        );
    }
}

impl Site {
    fn number(self) -> u32 {
        match self {
            Self::Embedding => 0,
            Self::Attention(layer) => 1 + 2 * layer as u32,
            Self::FeedForward(layer) => 2 + 2 * layer as u32,
        }
    }
}

impl<D: Device> Residual<D> {
    pub(super) fn new(device: &D, model: &ModelConfig, rows: usize) -> Result<Self, Error> {
        Ok(Self {
            sum: device.activations(rows * model.width)?,
            normed: device.activations(rows * model.width)?,
            statistics: device.floats(rows * 2)?,
        })
    }
}

impl<D: Device> BlockActivations<D> {
    pub(super) fn new(device: &D, model: &ModelConfig, rows: usize) -> Result<Self, Error> {
        let columns = |columns: usize| device.activations(rows * columns);
        Ok(Self {
            qkv: columns(3 * model.width)?,
            attended: columns(model.width)?,
            before_gelu: columns(model.feed_forward)?,
            expanded: columns(model.feed_forward)?,
        })
    }
}

pub(super) fn add_norm(layout: &mut Layout, name: &str, width: usize) -> Norm {
    Norm {
        gain: layout.add(format!("{name}.gain"), &[width], false),
        bias: layout.add(format!("{name}.bias"), &[width], false),
    }
}

fn add_linear(layout: &mut Layout, name: &str, inputs: usize, outputs: usize) -> Linear {
    Linear {
        weight: layout.add(format!("{name}.weight"), &[outputs, inputs], true),
        bias: layout.add(format!("{name}.bias"), &[outputs], false),
    }
}
