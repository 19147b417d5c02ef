//! The list of operations, each in its own file.

use std::convert::Infallible;
use std::ops::Range;

use super::dropout::Mask;
use super::norm::{self, Scale};
use super::product::FEW_ROWS;
use super::{
    Buffer, Cache, Cpu, Targets, Tokens, adamw, attention, cache, embedding, f2_head, linear, peak,
    posterior, softmax_head,
};
use crate::{
    AdamW, Device, DrawHead, Drawn, Dropout, Embedding, Error, F2Head, Heads, Labels, Linear,
    Moment, Moments, Norm, Parameter, Sequences, SoftmaxHead, Span, TokenLaw,
};

impl Device for Cpu {
    type Activations = Buffer;
    type Floats = Buffer;
    type Weights = Buffer;
    type Indices = Vec<u32>;
    type Tokens = Tokens;
    type Targets = Targets;
    type Clock = Moment;
    type Cache = Cache;
    type Spans = Vec<Span>;
    type Draws = Infallible;
    type Reading = f32;
    type Recording = ();

    const ACTIVATION_BYTES: usize = size_of::<f32>();
    const WEIGHT_BYTES: usize = size_of::<f32>();
    const RUNS_BEHIND: bool = false;
    const SEQUENCES: usize = FEW_ROWS;

    fn name(&self) -> &'static str {
        "cpu"
    }
    fn measured_peak(&self) -> f64 {
        peak::measured_peak(self.products())
    }
    fn synchronise(&self) -> Result<(), Error> {
        Ok(())
    }
    fn replay(&self, (): &mut (), body: &mut dyn FnMut()) {
        body();
    }
    fn activations(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }
    fn floats(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }
    fn weights(&self, len: usize) -> Result<Buffer, Error> {
        Buffer::zeroed(len)
    }
    fn indices(&self, len: usize) -> Result<Vec<u32>, Error> {
        Ok(vec![0; len])
    }
    fn tokens(&self, positions: usize) -> Result<Tokens, Error> {
        Ok(Tokens::with_capacity(positions))
    }
    fn targets(
        &self,
        positions: usize,
        width: usize,
        vocabulary: usize,
        classes: usize,
    ) -> Result<Targets, Error> {
        Targets::new(positions, width, vocabulary, classes)
    }
    fn target_bytes(positions: usize, width: usize, vocabulary: usize, classes: usize) -> usize {
        Targets::bytes(positions, width, vocabulary, classes)
    }
    fn clock(&self) -> Result<Moment, Error> {
        Ok(Moment::default())
    }
    fn cache(
        &self,
        layers: usize,
        sequences: usize,
        capacity: usize,
        heads: Heads,
    ) -> Result<Cache, Error> {
        Cache::new(layers, sequences, capacity, heads)
    }
    fn spans(&self, count: usize) -> Result<Vec<Span>, Error> {
        Ok(Vec::with_capacity(count))
    }
    fn draws(&self, _rows: usize) -> Result<Option<Infallible>, Error> {
        Ok(None)
    }
    fn reading(&self) -> Result<f32, Error> {
        Ok(0.0)
    }
    fn write_activations(&self, from: &[f32], to: &mut Buffer) {
        to[..from.len()].copy_from_slice(from);
    }
    fn read_activations(&self, from: &Buffer, to: &mut [f32]) -> Result<(), Error> {
        to.copy_from_slice(&from[..to.len()]);
        Ok(())
    }
    fn write_floats(&self, from: &[f32], offset: usize, to: &mut Buffer) {
        to[offset..offset + from.len()].copy_from_slice(from);
    }
    fn read_floats(&self, from: &Buffer, offset: usize, to: &mut [f32]) -> Result<(), Error> {
        to.copy_from_slice(&from[offset..offset + to.len()]);
        Ok(())
    }
    fn host_floats<'a>(
        &self,
        from: &'a mut Buffer,
        len: usize,
        _: &'a mut Vec<f32>,
    ) -> Result<&'a mut [f32], Error> {
        Ok(&mut from[..len])
    }
    fn begin_reading(&self, from: &Buffer, to: &mut f32) {
        *to = from[0];
    }
    fn finish_reading(&self, reading: &f32) -> Result<f32, Error> {
        Ok(*reading)
    }
    fn write_weights(&self, from: &[f32], parameter: Parameter, to: &mut Buffer) {
        to[parameter.range()].copy_from_slice(from);
    }
    fn read_weights(
        &self,
        from: &Buffer,
        parameter: Parameter,
        to: &mut [f32],
    ) -> Result<(), Error> {
        to.copy_from_slice(&from[parameter.range()]);
        Ok(())
    }
    fn write_indices(&self, from: &[u32], to: &mut Vec<u32>) {
        to.clear();
        to.extend_from_slice(from);
    }
    fn read_indices(&self, from: &Vec<u32>, to: &mut [u32]) -> Result<(), Error> {
        to.copy_from_slice(&from[..to.len()]);
        Ok(())
    }
    fn load_tokens(&self, ids: &[u32], to: &mut Tokens) {
        to.load(ids);
    }
    fn load_targets(&self, labels: &Labels<'_>, to: &mut Targets) {
        to.load(labels);
    }
    fn reweigh_targets(&self, weights: &[f32], to: &mut Targets) {
        to.reweigh(weights);
    }
    fn set_clock(&self, moment: Moment, to: &mut Moment) {
        *to = moment;
    }
    fn load_spans(&self, from: &[Span], to: &mut Vec<Span>) {
        to.clear();
        to.extend_from_slice(from);
    }
    fn zero_activations(&self, len: usize, to: &mut Buffer) {
        to[..len].fill(0.0);
    }
    fn zero_floats(&self, to: &mut Buffer) {
        to.fill(0.0);
    }
    fn add_sum(&self, from: &Buffer, range: Range<usize>, to: &mut Buffer, index: usize) {
        to[index] += from[range].iter().copied().map(f64::from).sum::<f64>() as f32;
    }

    fn embed(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        weights: &Buffer,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        x: &mut Buffer,
    ) {
        let mask = Mask::of(dropout);
        embedding::embed(&self.threads, sequences, embedding, weights, tokens, mask, x);
    }

    fn embed_backward(
        &self,
        sequences: Sequences,
        embedding: Embedding,
        tokens: &Tokens,
        dropout: Dropout<'_, Self>,
        d_x: &Buffer,
        gradients: &mut Buffer,
    ) {
        let mask = Mask::of(dropout);
        let threads = &self.threads;
        embedding::embed_backward(threads, sequences, embedding, tokens, mask, d_x, gradients);
    }

    fn norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        x: &Buffer,
        normed: &mut Buffer,
        statistics: &mut Buffer,
    ) {
        let scale = Scale::of(norm, weights);
        norm::norm(&self.threads, rows, scale, x, normed, statistics);
    }

    fn norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        x: &Buffer,
        statistics: &Buffer,
        d_normed: &Buffer,
        d_x: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let from = norm::Backward { x, statistics, d_normed };
        let scale = Scale::of(norm, weights);
        self.with_partial(norm::partial_len(rows, norm.gain.columns), |partial| {
            norm::norm_backward(&self.threads, rows, scale, &from, d_x, None, partial);
            norm::add_partial(rows, norm, partial, gradients);
        });
    }

    fn residual_norm(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        dropout: Dropout<'_, Self>,
        x: &Buffer,
        branch: &Buffer,
        sum: &mut Buffer,
        normed: &mut Buffer,
        statistics: &mut Buffer,
    ) {
        let (scale, mask) = (Scale::of(norm, weights), Mask::of(dropout));
        let (from, to) = ([&**x, branch], [&mut **sum, normed]);
        norm::residual_norm(&self.threads, rows, scale, mask, from, to, statistics);
    }

    fn residual_norm_backward(
        &self,
        rows: usize,
        norm: Norm,
        weights: &Buffer,
        dropout: Dropout<'_, Self>,
        sum: &Buffer,
        statistics: &Buffer,
        d_normed: &Buffer,
        d_sum: &mut Buffer,
        d_branch: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let from = norm::Backward { x: sum, statistics, d_normed };
        let scale = Scale::of(norm, weights);
        let branch = Some((Mask::of(dropout), &mut **d_branch));
        self.with_partial(norm::partial_len(rows, norm.gain.columns), |partial| {
            norm::norm_backward(&self.threads, rows, scale, &from, d_sum, branch, partial);
            norm::add_partial(rows, norm, partial, gradients);
        });
    }

    fn linear(&self, rows: usize, linear: Linear, weights: &Buffer, x: &Buffer, y: &mut Buffer) {
        linear::linear(self.products(), rows, linear, weights, x, y);
    }

    fn linear_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        x: &Buffer,
        before: &mut Buffer,
        y: &mut Buffer,
    ) {
        linear::linear_gelu(self.products(), rows, linear, weights, x, before, y);
    }

    fn linear_backward(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        x: &Buffer,
        d_y: &Buffer,
        d_x: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        linear::linear_backward(self.products(), rows, linear, weights, x, d_y, d_x, gradients);
    }

    fn linear_backward_gelu(
        &self,
        rows: usize,
        linear: Linear,
        weights: &Buffer,
        before: &Buffer,
        x: &Buffer,
        d_y: &Buffer,
        d_before: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        linear::linear_backward_gelu(
            products, rows, linear, weights, before, x, d_y, d_before, gradients,
        );
    }

    fn attention(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Buffer,
        out: &mut Buffer,
        log_sums: &mut Buffer,
    ) {
        attention::attention(self.products(), sequences, heads, qkv, out, log_sums);
    }

    fn attention_backward(
        &self,
        sequences: Sequences,
        heads: Heads,
        qkv: &Buffer,
        out: &Buffer,
        log_sums: &Buffer,
        d_out: &Buffer,
        d_qkv: &mut Buffer,
    ) {
        let from = attention::Backward { qkv, out, log_sums, d_out };
        attention::attention_backward(self.products(), sequences, heads, &from, d_qkv);
    }

    fn softmax_loss(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
    ) {
        softmax_head::loss(self.products(), head, weights, targets, hidden, losses);
    }

    fn softmax_loss_backward(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
        d_hidden: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        softmax_head::loss_backward(
            products, head, weights, targets, hidden, losses, d_hidden, gradients,
        );
    }

    fn softmax_predictions(
        &self,
        head: SoftmaxHead,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        predictions: &mut Vec<u32>,
    ) {
        softmax_head::predictions(self.products(), head, weights, targets, hidden, predictions);
    }

    fn f2_loss(
        &self,
        head: &F2Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
    ) {
        f2_head::loss(self.products(), head, weights, targets, hidden, losses);
    }

    fn f2_loss_backward(
        &self,
        head: &F2Head,
        weights: &Buffer,
        targets: &mut Targets,
        hidden: &Buffer,
        losses: &mut Buffer,
        d_hidden: &mut Buffer,
        gradients: &mut Buffer,
    ) {
        let products = self.products();
        f2_head::loss_backward(
            products, head, weights, targets, hidden, losses, d_hidden, gradients,
        );
    }

    fn logits(
        &self,
        rows: usize,
        matrix: Parameter,
        weights: &Buffer,
        hidden: &Buffer,
        logits: &mut Buffer,
    ) {
        posterior::logits(self.products(), rows, matrix, weights, hidden, logits);
    }

    fn log_softmax(&self, rows: usize, columns: usize, logits: &mut Buffer) {
        posterior::log_softmax(&self.threads, rows, columns, logits);
    }

    fn f2_log_posterior(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Buffer,
        hidden: &Buffer,
        log_posterior: &mut Buffer,
    ) {
        posterior::f2_log_posterior(self.products(), rows, head, weights, hidden, log_posterior);
    }

    fn global_norm(&self, gradients: &Buffer, norm: &mut Buffer) {
        norm[0] = self.with_partial(adamw::partial_len(gradients.len()), |partial| {
            adamw::global_norm(&self.threads, gradients, partial)
        });
    }

    fn adamw(
        &self,
        settings: AdamW,
        decayed: &[Range<usize>],
        norm: &Buffer,
        weights: &mut Buffer,
        moments: &mut Moments<Self>,
        gradients: &mut Buffer,
    ) {
        let buffers = [&mut **weights, &mut moments.first, &mut moments.second, gradients];
        adamw::adamw(&self.threads, settings, decayed, norm[0], buffers);
    }

    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Buffer,
        tokens: &Vec<u32>,
        spans: &Vec<Span>,
        x: &mut Buffer,
    ) {
        embedding::embed_spans(embedding, weights, tokens, spans, x);
    }

    fn attention_cached(
        &self,
        layer: usize,
        spans: &Vec<Span>,
        qkv: &Buffer,
        cache: &mut Cache,
        out: &mut Buffer,
    ) {
        cache::attention_cached(&self.threads, layer, spans, qkv, cache, out);
    }

    fn reorder_cache(&self, parents: &[u32], length: usize, cache: &mut Cache) {
        cache.reorder(parents, length);
    }

    fn draw(
        &self,
        _head: DrawHead<'_>,
        _law: TokenLaw,
        _weights: &Buffer,
        _hidden: &Buffer,
        _uniforms: &[[f64; 2]],
        _logits: &mut Buffer,
        draws: &mut Infallible,
    ) -> Result<Vec<Drawn>, Error> {
        match *draws {}
    }

    fn gather(&self, width: usize, rows: &Vec<u32>, from: &Buffer, to: &mut Buffer) {
        for (&row, to) in rows.iter().zip(to.chunks_mut(width)) {
            to.copy_from_slice(&from[row as usize * width..][..width]);
        }
    }
}
