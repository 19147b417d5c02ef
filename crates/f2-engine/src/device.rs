//! What a model needs from a device.

use std::ops::Range;

use crate::{
    AdamW, DrawHead, Drawn, Dropout, Embedding, Error, F2Head, Heads, Labels, Linear, Moment,
    Moments, Norm, Parameter, Sequences, SoftmaxHead, Span, TokenLaw,
};

/// Memory and operations.
///
/// **Asynchronous.** An operation is asked for, not waited for; it returns nothing. Only the
/// methods that read wait, and they report what failed before. A training step needs none.
///
/// **Planned.** Buffers are allocated when a model is built; operations allocate nothing.
///
/// **Precision.** [`Activations`](Self::Activations) have the device's working precision (`f32`
/// on the CPU, bf16 on CUDA); parameters, gradients, moments, statistics and losses are `f32`.
/// [`Weights`](Self::Weights) may carry a rounded copy beside the `f32` values, which
/// [`adamw`](Self::adamw) and [`write_weights`](Self::write_weights) renew.
///
/// **Arguments** come in one order: sizes, parameters, what is read, what is written. Buffers may
/// be longer than the operation needs. A `d_` before a name is the gradient with respect to it.
/// Gradients of parameters are added to (`+=`), so micro-batches accumulate; gradients of
/// activations are overwritten unless said otherwise. Reductions have a fixed order: equal
/// input gives equal bits.
#[allow(clippy::too_many_arguments, reason = "an operation names all it reads and writes")]
pub trait Device: Sized + 'static {
    /// Numbers in working precision.
    type Activations;
    /// Numbers in `f32`.
    type Floats;
    /// Parameters, with whatever copies the device multiplies by.
    type Weights;
    /// Row or token numbers.
    type Indices;
    /// Input tokens, with the order their gradients are summed in.
    type Tokens;
    /// Targets grouped by class, with the workspace of the head's loss.
    type Targets;
    /// The [`Moment`] dropout reads.
    type Clock;
    /// Keys and values of earlier tokens.
    type Cache;
    /// [`Span`]s of a batch.
    type Spans;
    /// Room for drawing tokens.
    type Draws;
    /// One float on its way to the host.
    type Reading;
    /// Operations recorded for [`replay`](Self::replay).
    type Recording: Default;

    /// Bytes of one activation.
    const ACTIVATION_BYTES: usize;
    /// Bytes of one parameter, with its copies.
    const WEIGHT_BYTES: usize;
    /// Whether operations are done later than they are asked for, so that the host can ask for more
    /// meanwhile.
    const RUNS_BEHIND: bool;
    /// Texts to write at a time that make good use of it: more would gain little.
    const SEQUENCES: usize;

    // ---------------------------------------------------------------- the device

    /// The device in words, such as `cpu`.
    fn name(&self) -> &'static str;

    /// Bytes that could be had now of the device's own memory; none where it is the host's.
    fn available_memory(&self) -> Option<u64> {
        None
    }

    /// The floating-point operations per second of a large matrix product, measured now.
    fn measured_peak(&self) -> f64;

    /// Waits for all operations and reports what failed.
    fn synchronise(&self) -> Result<(), Error>;

    /// Runs `body`, whose operations, buffers and sizes are the same every time; a device that
    /// can record does so once and replays afterwards, so `body` must not touch anything but
    /// the device.
    fn replay(&self, recording: &mut Self::Recording, body: &mut dyn FnMut());

    // ---------------------------------------------------------------- memory, zero at first

    /// `len` activations.
    fn activations(&self, len: usize) -> Result<Self::Activations, Error>;
    /// `len` floats.
    fn floats(&self, len: usize) -> Result<Self::Floats, Error>;
    /// All parameters of a [`Layout`](crate::Layout) of length `len`.
    fn weights(&self, len: usize) -> Result<Self::Weights, Error>;
    /// Room for `len` indices.
    fn indices(&self, len: usize) -> Result<Self::Indices, Error>;
    /// Room for `positions` input tokens.
    fn tokens(&self, positions: usize) -> Result<Self::Tokens, Error>;
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
    /// A clock.
    fn clock(&self) -> Result<Self::Clock, Error>;
    /// Room for `layers` × `sequences` × `capacity` keys and values.
    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: Heads,
    ) -> Result<Self::Cache, Error>;
    /// Room for `count` spans.
    fn spans(&self, count: usize) -> Result<Self::Spans, Error>;
    /// Room for drawing `rows` tokens at a time; none where the host draws from what it reads.
    fn draws(&self, rows: usize) -> Result<Option<Self::Draws>, Error>;
    /// Room for a float that is read.
    fn reading(&self) -> Result<Self::Reading, Error>;

    // ---------------------------------------------------------------- to and from the host

    /// Writes the first `from.len()` activations, rounded to working precision.
    fn write_activations(&self, from: &[f32], to: &mut Self::Activations);
    /// Reads the first `to.len()` activations.
    fn read_activations(&self, from: &Self::Activations, to: &mut [f32]) -> Result<(), Error>;
    /// Writes `from` at `offset`.
    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Self::Floats);
    /// Reads `to.len()` floats at `offset`.
    fn read_floats(&self, from: &Self::Floats, offset: usize, to: &mut [f32]) -> Result<(), Error>;
    /// The first `len` floats, for the host to read and write over: where they lie, or in `copy`.
    fn host_floats<'a>(
        &self,
        from: &'a mut Self::Floats,
        len: usize,
        copy: &'a mut Vec<f32>,
    ) -> Result<&'a mut [f32], Error> {
        copy.resize(len, 0.0);
        self.read_floats(from, 0, copy)?;
        Ok(copy)
    }
    /// Begins to read the first float. Operations asked for later do not change what is read.
    fn begin_reading(&self, from: &Self::Floats, to: &mut Self::Reading);
    /// The float once it has arrived; waits for nothing that was asked for after it.
    fn finish_reading(&self, reading: &Self::Reading) -> Result<f32, Error>;
    /// Writes one parameter, `from.len() == parameter.len()`.
    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Self::Weights);
    /// Reads one parameter in full precision.
    fn read_weights(
        &self,
        from: &Self::Weights,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error>;
    /// Writes indices; their number becomes `from.len()`.
    fn write_indices(&self, from: &[u32], to: &mut Self::Indices);
    /// Reads the first `to.len()` indices.
    fn read_indices(&self, from: &Self::Indices, to: &mut [u32]) -> Result<(), Error>;
    /// Writes a batch's input tokens and sorts them for the backward pass.
    fn load_tokens(&self, ids: &[u32], to: &mut Self::Tokens);
    /// Writes a batch's targets and groups them by class.
    fn load_targets(&self, labels: &Labels<'_>, to: &mut Self::Targets);
    /// Gives the positions of loaded targets other weights, which may depend on what
    /// [`softmax_predictions`](Self::softmax_predictions) has just found. From those to the loss,
    /// hidden states and parameters must stay as they are: the device may keep logits.
    fn reweigh_targets(&self, weights: &[f32], to: &mut Self::Targets);
    /// Sets the moment dropout is drawn at.
    fn set_clock(&self, moment: Moment, to: &mut Self::Clock);
    /// Writes spans; their number becomes `from.len()`.
    fn load_spans(&self, from: &[Span], to: &mut Self::Spans);

    /// Sets the first `len` activations to zero.
    fn zero_activations(&self, len: usize, to: &mut Self::Activations);
    /// Sets all floats to zero.
    fn zero_floats(&self, to: &mut Self::Floats);
    /// `to[index] += Σ from[range]`.
    fn add_sum(
        &self,
        from: &Self::Floats,
        range: Range<usize>,
        to: &mut Self::Floats,
        index: usize,
    );

    // ---------------------------------------------------------------- the decoder

    /// Token vectors plus learned positions, with dropout. `x: [positions, width]`.
    fn embed(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Self::Weights,
        tokens: &Self::Tokens,
        dropout: Dropout<'_, Self>,
        x: &mut Self::Activations,
    );
    /// The gradients of token vectors and positions from `d_x: [positions, width]`.
    fn embed_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Self::Tokens,
        dropout: Dropout<'_, Self>,
        d_x: &Self::Activations,
        gradients: &mut Self::Floats,
    );

    /// Layer norm. `x, normed: [rows, width]`; `statistics: [rows, 2]` gets mean and
    /// reciprocal deviation.
    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        x: &Self::Activations,
        normed: &mut Self::Activations,
        statistics: &mut Self::Floats,
    );
    /// The gradient through a norm: `d_x += …`, all `[rows, width]`.
    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        x: &Self::Activations,
        statistics: &Self::Floats,
        d_normed: &Self::Activations,
        d_x: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// A residual and the norm after it: `sum = x + dropout(branch)`, `normed = norm(sum)`.
    /// All `[rows, width]`; `statistics: [rows, 2]`.
    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        dropout: Dropout<'_, Self>,
        x: &Self::Activations,
        branch: &Self::Activations,
        sum: &mut Self::Activations,
        normed: &mut Self::Activations,
        statistics: &mut Self::Floats,
    );
    /// The gradient through both. `d_sum` holds what comes down the residual stream from later
    /// layers; the norm's share is added, after which it is also the gradient of `x`.
    /// `d_branch` gets it through dropout. All `[rows, width]`.
    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Self::Weights,
        dropout: Dropout<'_, Self>,
        sum: &Self::Activations,
        statistics: &Self::Floats,
        d_normed: &Self::Activations,
        d_sum: &mut Self::Activations,
        d_branch: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );

    /// `y = x · weightᵀ + bias`. `x: [rows, inputs]`, `y: [rows, outputs]`.
    fn linear(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        y: &mut Self::Activations,
    );
    /// A linear layer and GELU (tanh form): `before = x · weightᵀ + bias`, `y = gelu(before)`,
    /// both `[rows, outputs]`.
    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        before: &mut Self::Activations,
        y: &mut Self::Activations,
    );
    /// The gradients of `x`, weight and bias from `d_y: [rows, outputs]`.
    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        x: &Self::Activations,
        d_y: &Self::Activations,
        d_x: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );
    /// [`linear_backward`](Self::linear_backward) of a layer whose input was
    /// `x = gelu(before)`: goes on through GELU, so that `d_before: [rows, inputs]` comes out.
    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Self::Weights,
        before: &Self::Activations,
        x: &Self::Activations,
        d_y: &Self::Activations,
        d_before: &mut Self::Activations,
        gradients: &mut Self::Floats,
    );

    /// Causal attention, scores divided by `√heads.width`. `qkv: [positions, 3 · width]` holds
    /// queries, keys and values of all heads side by side; `out: [positions, width]`;
    /// `log_sums: [heads, positions]` gets the logarithm of each softmax's denominator.
    fn attention(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Self::Activations,
        out: &mut Self::Activations,
        log_sums: &mut Self::Floats,
    );
    /// `d_qkv: [positions, 3 · width]` from `d_out: [positions, width]`.
    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Self::Activations,
        out: &Self::Activations,
        log_sums: &Self::Floats,
        d_out: &Self::Activations,
        d_qkv: &mut Self::Activations,
    );

    // ---------------------------------------------------------------- the heads

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

    // ---------------------------------------------------------------- the optimiser

    /// `norm[0] = √Σ gradients²`.
    fn global_norm(&self, gradients: &Self::Floats, norm: &mut Self::Floats);
    /// One update of all parameters, and gradients back to zero. `decayed` are the ranges weight
    /// decay works on, ascending. When `norm[0]` is not finite, parameters and moments stay.
    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Self::Floats,
        weights: &mut Self::Weights,
        moments: &mut Moments<Self>,
        gradients: &mut Self::Floats,
    );

    // ---------------------------------------------------------------- generation

    /// Embeds new tokens at the positions their spans say. `x: [tokens, width]`.
    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Self::Weights,
        tokens: &Self::Indices,
        spans: &Self::Spans,
        x: &mut Self::Activations,
    );
    /// Puts the new tokens' keys and values into the cache's `layer` and attends to it.
    /// `qkv: [tokens, 3 · width]`, `out: [tokens, width]`.
    fn attention_cached(
        &self,
        layer: usize,
        spans: &Self::Spans,
        qkv: &Self::Activations,
        cache: &mut Self::Cache,
        out: &mut Self::Activations,
    );
    /// Makes sequence `i` of the cache a copy of sequence `parents[i]`'s first `length` tokens:
    /// what beam search does after a step.
    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Self::Cache);
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
    /// Picks rows: `to[i] = from[rows[i]]`, each of `width`.
    fn gather(
        &self,
        width: usize,
        rows: &Self::Indices,
        from: &Self::Activations,
        to: &mut Self::Activations,
    );
}
