//! The list of operations, each in its own file.

use std::ops::Range;

use super::cache::{Cache, Spans};
use super::draw::Draws;
use super::embedding::{Clock, Mask};
use super::graph::Recording;
use super::launch::{Grid, arguments};
use super::memory::{Buffer, Weights};
use super::reading::Reading;
use super::softmax_head::Gradients;
use super::targets::Targets;
use super::tokens::Tokens;
use super::upload::Upload;
use super::{Cuda, DEVICE, Precision, attention, norm};
use crate::{
    AdamW, Device, DrawHead, Drawn, Dropout, Embedding, Error, F2Head, Heads, Labels, Linear,
    Moment, Moments, Norm, Parameter, Sequences, SoftmaxHead, Span, TokenLaw,
};

/// Zeros behind the last parameter: products over whole eights of rows may read up to seven rows
/// beyond a matrix.
const SPARE_WEIGHTS: usize = 1 << 15;

/// Row or token numbers.
#[derive(Debug)]
pub struct Indices {
    words: Upload,
    len: usize,
}

impl<P: Precision> Device for Cuda<P> {
    type Activations = Buffer<P::Element>;
    type Floats = Buffer<f32>;
    type Weights = Weights<P>;
    type Indices = Indices;
    type Tokens = Tokens;
    type Targets = Targets<P::Element>;
    type Clock = Clock;
    type Cache = Cache<P::Element>;
    type Spans = Spans;
    type Draws = Draws;
    type Reading = Reading;
    type Recording = Recording;

    const ACTIVATION_BYTES: usize = size_of::<P::Element>();
    const WEIGHT_BYTES: usize = if size_of::<P::Element>() < size_of::<f32>() {
        size_of::<f32>() + size_of::<P::Element>()
    } else {
        size_of::<f32>()
    };

    const RUNS_BEHIND: bool = true;
    // A step reads all weights once; with so many texts its products take longer than that.
    const SEQUENCES: usize = 2048;

    fn name(&self) -> &'static str {
        DEVICE
    }
    fn available_memory(&self) -> Option<u64> {
        self.stream.available_memory().ok()
    }
    fn measured_peak(&self) -> f64 {
        self.peak().unwrap_or(f64::NAN)
    }
    fn synchronise(&self) -> Result<(), Error> {
        self.stream.synchronise()
    }
    fn replay(&self, recording: &mut Recording, body: &mut dyn FnMut()) {
        self.replay_body(recording, body);
    }
    fn activations(&self, len: usize) -> Result<Buffer<P::Element>, Error> {
        Buffer::zeroed(&self.stream, len)
    }
    fn floats(&self, len: usize) -> Result<Buffer<f32>, Error> {
        Buffer::zeroed(&self.stream, len)
    }
    fn weights(&self, len: usize) -> Result<Weights<P>, Error> {
        let len = len + SPARE_WEIGHTS;
        let values = Buffer::zeroed(&self.stream, len)?;
        let is_rounded = size_of::<P::Element>() < size_of::<f32>();
        let rounded = is_rounded.then(|| Buffer::zeroed(&self.stream, len)).transpose()?;
        Ok(Weights { values, rounded })
    }
    fn indices(&self, len: usize) -> Result<Indices, Error> {
        Ok(Indices { words: Upload::new(&self.stream, len)?, len })
    }
    fn tokens(&self, positions: usize) -> Result<Tokens, Error> {
        Tokens::new(&self.stream, positions)
    }
    fn targets(
        &self,
        positions: usize,
        width: usize,
        vocabulary: usize,
        classes: usize,
    ) -> Result<Targets<P::Element>, Error> {
        Targets::new(&self.stream, positions, width, vocabulary, classes)
    }
    fn target_bytes(positions: usize, width: usize, vocabulary: usize, classes: usize) -> usize {
        Targets::<P::Element>::bytes(positions, width, vocabulary, classes)
    }
    fn clock(&self) -> Result<Clock, Error> {
        Clock::new(&self.stream)
    }
    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: Heads,
    ) -> Result<Cache<P::Element>, Error> {
        Cache::new(&self.stream, layers, sequences, capacity, heads)
    }
    fn spans(&self, count: usize) -> Result<Spans, Error> {
        Spans::new(&self.stream, count)
    }
    fn draws(&self, rows: usize) -> Result<Option<Draws>, Error> {
        Draws::new(&self.stream, rows).map(Some)
    }
    fn reading(&self) -> Result<Reading, Error> {
        Reading::new(&self.stream)
    }
    fn write_activations(&self, from: &[f32], to: &mut Buffer<P::Element>) {
        let rounded: Vec<P::Element> = from.iter().map(|&value| P::narrow(value)).collect();
        to.write(0, &rounded);
    }
    fn read_activations(&self, from: &Buffer<P::Element>, to: &mut [f32]) -> Result<(), Error> {
        let mut rounded = vec![P::Element::default(); to.len()];
        from.read(0, &mut rounded)?;
        to.iter_mut().zip(rounded).for_each(|(to, from)| *to = P::widen(from));
        Ok(())
    }
    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Buffer<f32>) {
        to.write(offset, from);
    }
    fn read_floats(&self, from: &Buffer<f32>, offset: usize, to: &mut [f32]) -> Result<(), Error> {
        from.read(offset, to)
    }
    fn begin_reading(&self, from: &Buffer<f32>, to: &mut Reading) {
        to.begin(from);
    }
    fn finish_reading(&self, reading: &Reading) -> Result<f32, Error> {
        reading.finish()
    }
    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Weights<P>) {
        to.values.write(parameter.offset, from);
        if to.rounded.is_some() {
            let (count, values) = (from.len(), to.value(parameter));
            let arguments = arguments![count, values, to.real(parameter)];
            self.launch("round_weights", Grid::items(count), arguments);
        }
    }
    fn read_weights(
        &self,
        from: &Weights<P>,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error> {
        from.values.read(parameter.offset, to)
    }
    fn write_indices(&self, from: &[u32], to: &mut Indices) {
        to.words.write_all(from);
        to.len = from.len();
    }
    fn read_indices(&self, from: &Indices, to: &mut [u32]) -> Result<(), Error> {
        from.words.read(to)
    }
    fn load_tokens(&self, ids: &[u32], to: &mut Tokens) {
        to.load(ids);
    }
    fn load_targets(&self, labels: &Labels<'_>, to: &mut Targets<P::Element>) {
        to.load(labels);
    }
    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets<P::Element>) {
        to.reweigh(weights);
    }
    fn set_clock(&self, moment: Moment, to: &mut Clock) {
        to.set(moment);
    }
    fn load_spans(&self, from: &[Span], to: &mut Spans) {
        to.load(from);
    }
    fn zero_activations(&self, len: usize, to: &mut Buffer<P::Element>) {
        to.zero(0..len);
    }
    fn zero_floats(&self, to: &mut Buffer<f32>) {
        to.zero(0..to.len());
    }
    fn add_sum(&self, from: &Buffer<f32>, range: Range<usize>, to: &mut Buffer<f32>, index: usize) {
        let arguments = arguments![range.len(), from.at(range.start), to.at(index)];
        self.launch("add_sum", Grid::blocks(1, 1024), arguments);
    }

    fn embed(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        x: &mut Buffer<P::Element>,
    ) {
        self.embed_rows(sequences, embedding, weights, tokens, Mask::of(dropout), x);
    }

    fn embed_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        d_x: &Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        self.embed_rows_backward(sequences, embedding, tokens, Mask::of(dropout), d_x, gradients);
    }

    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        normed: &mut Buffer<P::Element>,
        statistics: &mut Buffer<f32>,
    ) {
        self.norm_rows(rows, norm, weights, x, normed, statistics);
    }

    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        statistics: &Buffer<f32>,
        d_normed: &Buffer<P::Element>,
        d_x: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let from = norm::Backward { x, statistics, d_normed };
        self.norm_rows_backward(rows, norm, weights, &from, d_x, None, gradients);
    }

    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        dropout: Dropout<'_, Self>,
        x: &Buffer<P::Element>,
        branch: &Buffer<P::Element>,
        sum: &mut Buffer<P::Element>,
        normed: &mut Buffer<P::Element>,
        statistics: &mut Buffer<f32>,
    ) {
        let buffers = [x, branch, &*sum, &*normed];
        self.residual_norm_rows(rows, norm, weights, Mask::of(dropout), buffers, statistics);
    }

    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Weights<P>,
        dropout: Dropout<'_, Self>,
        sum: &Buffer<P::Element>,
        statistics: &Buffer<f32>,
        d_normed: &Buffer<P::Element>,
        d_sum: &mut Buffer<P::Element>,
        d_branch: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let from = norm::Backward { x: sum, statistics, d_normed };
        let branch = Some((Mask::of(dropout), &*d_branch));
        self.norm_rows_backward(rows, norm, weights, &from, d_sum, branch, gradients);
    }

    fn linear(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        y: &mut Buffer<P::Element>,
    ) {
        self.linear_rows(rows, linear, weights, x, y);
    }

    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        before: &mut Buffer<P::Element>,
        y: &mut Buffer<P::Element>,
    ) {
        self.linear_gelu_rows(rows, linear, weights, x, before, y);
    }

    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        d_x: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        self.linear_rows_backward(rows, linear, weights, None, x, d_y, d_x, gradients);
    }

    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Weights<P>,
        before: &Buffer<P::Element>,
        x: &Buffer<P::Element>,
        d_y: &Buffer<P::Element>,
        d_before: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        self.linear_rows_backward(rows, linear, weights, Some(before), x, d_y, d_before, gradients);
    }

    fn attention(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Buffer<P::Element>,
        out: &mut Buffer<P::Element>,
        log_sums: &mut Buffer<f32>,
    ) {
        self.attend(sequences, heads, qkv, out, log_sums);
    }

    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Buffer<P::Element>,
        out: &Buffer<P::Element>,
        log_sums: &Buffer<f32>,
        d_out: &Buffer<P::Element>,
        d_qkv: &mut Buffer<P::Element>,
    ) {
        let from = attention::Backward { qkv, out, log_sums, d_out };
        self.attend_backward(sequences, heads, &from, d_qkv);
    }

    fn softmax_loss(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
    ) {
        self.plain_loss(head, weights, targets, hidden, losses, None);
    }

    fn softmax_loss_backward(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
        d_hidden: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let gradients = Gradients { d_hidden, parameters: gradients };
        self.plain_loss(head, weights, targets, hidden, losses, Some(&gradients));
    }

    fn softmax_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        predictions: &mut Indices,
    ) {
        assert!(targets.positions <= predictions.words.len(), "too few predictions");
        predictions.len = targets.positions;
        self.plain_predictions(head, weights, targets, hidden, predictions.words.at(0));
    }

    fn f2_loss(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
    ) {
        self.factorised_loss(head, weights, targets, hidden, losses, None);
    }

    fn f2_loss_backward(
        &self,
        head: &F2Head,
        weights: &Weights<P>,
        targets: &mut Targets<P::Element>,
        hidden: &Buffer<P::Element>,
        losses: &mut Buffer<f32>,
        d_hidden: &mut Buffer<P::Element>,
        gradients: &mut Buffer<f32>,
    ) {
        let gradients = Gradients { d_hidden, parameters: gradients };
        self.factorised_loss(head, weights, targets, hidden, losses, Some(&gradients));
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        logits: &mut Buffer<f32>,
    ) {
        self.logits_at(rows, matrix, weights, hidden, logits.at(0));
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer<f32>) {
        self.launch("log_softmax", Grid::blocks(rows, 512), arguments![columns, logits.at(0)]);
    }

    fn f2_log_posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        log_posterior: &mut Buffer<f32>,
    ) {
        self.posterior(rows, head, weights, hidden, log_posterior);
    }

    fn global_norm(&self, gradients: &Buffer<f32>, norm: &mut Buffer<f32>) {
        self.norm_of(gradients, norm);
    }

    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer<f32>,
        weights: &mut Weights<P>,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer<f32>,
    ) {
        self.update(settings, decayed, norm, weights, moments, gradients);
    }

    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Weights<P>,
        tokens: &Indices,
        spans: &Spans,
        x: &mut Buffer<P::Element>,
    ) {
        self.embed_span_rows(embedding, weights, tokens.words.at(0), spans, x);
    }

    fn attention_cached(
        &self,
        layer: usize,
        spans: &Spans,
        qkv: &Buffer<P::Element>,
        cache: &mut Cache<P::Element>,
        out: &mut Buffer<P::Element>,
    ) {
        self.attend_cached(layer, spans, qkv, cache, out);
    }

    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Cache<P::Element>) {
        self.reorder(parents, length, cache);
    }

    fn draw(
        &self,
        head: DrawHead<'_>,
        law: TokenLaw,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        uniforms: &[[f64; 2]],
        logits: &mut Buffer<f32>,
        draws: &mut Draws,
    ) -> Result<Vec<Drawn>, Error> {
        self.draw_tokens(head, law, weights, hidden, uniforms, logits, draws)
    }

    fn gather(
        &self,
        width: usize,
        rows: &Indices,
        from: &Buffer<P::Element>,
        to: &mut Buffer<P::Element>,
    ) {
        self.gather_rows(rows.len, width, rows.words.at(0), from.at(0), to.at(0));
    }
}
