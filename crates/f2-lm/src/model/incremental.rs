//! The forward pass over new tokens alone: keys and values of earlier ones are in a cache.

use f2_engine::{Device, Error, Span};

use super::block::{Attention, BlockActivations, Pass, Residual};
use super::{Decoder, Model};
use crate::memory::bytes;

/// The most rows of a pass with few sequences; longer prompts are split. Every pass reads, and
/// with many rows copies, all weights.
const MOST_ROWS: usize = 1024;

/// New tokens of one sequence.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    /// Which sequence of the cache they continue.
    pub sequence: usize,
    /// How many of its tokens the cache holds already.
    pub cached: usize,
    /// The tokens after them; at least one.
    pub tokens: &'a [u32],
}

/// The key-value cache of several sequences, and the buffers one pass over new tokens needs.
pub struct Incremental<D: Device> {
    cache: D::Cache,
    rows: usize,
    tokens: D::Indices,
    spans: D::Spans,
    picked: D::Indices,
    clock: D::Clock,
    /// The residual stream before a block, and between its branches.
    residuals: [Residual<D>; 2],
    /// Inside a block; reused by every block.
    inside: BlockActivations<D>,
    branch: D::Activations,
    /// The hidden states of every feed's last token, `[feeds, width]`.
    hidden: D::Activations,
    /// The recorded operations of the last pass, and its number of rows.
    recording: D::Recording,
    recorded_rows: usize,
}

/// Some rows of one pass: a whole feed or a part of it.
struct FeedRows {
    feed: usize,
    span: Span,
    /// Whether the feed's last token is in it.
    last: bool,
}

impl<D: Device> Incremental<D> {
    /// Tokens that one pass can take, whatever the number of sequences.
    pub const MOST_TOKENS: usize = MOST_ROWS;

    /// A cache of `sequences` sequences of up to `capacity` tokens.
    pub fn new(model: &Model<D>, sequences: usize, capacity: usize) -> Result<Self, Error> {
        let Model { device, decoder, .. } = model;
        let shape = &decoder.shape.model;
        let rows = MOST_ROWS.max(sequences);
        let residual = || Residual::new(device, shape, rows);
        Ok(Self {
            cache: device.cache(shape.layers, sequences, capacity, decoder.heads)?,
            rows,
            tokens: device.indices(rows)?,
            spans: device.spans(rows)?,
            picked: device.indices(rows)?,
            clock: device.clock()?,
            residuals: [residual()?, residual()?],
            inside: BlockActivations::new(device, shape, rows)?,
            branch: device.activations(rows * shape.width)?,
            hidden: device.activations(rows * shape.width)?,
            recording: D::Recording::default(),
            recorded_rows: 0,
        })
    }

    /// The bytes [`new`](Self::new) allocates on the device, except for a few small lists.
    pub fn bytes(decoder: &Decoder, sequences: usize, capacity: usize) -> u64 {
        let model = &decoder.shape.model;
        // A device may need a copy of one layer's keys to reorder the cache.
        let parts = 2 * model.layers + 1;
        let cache = bytes(&[parts, sequences, capacity, model.width, D::ACTIVATION_BYTES]);
        let columns = 10 * model.width + 2 * model.feed_forward;
        let rows = bytes(&[MOST_ROWS.max(sequences), columns, D::ACTIVATION_BYTES]);
        cache.saturating_add(rows)
    }

    /// The hidden states that the last [`advance`](Self::advance) left, `[feeds, width]`.
    pub fn hidden(&self) -> &D::Activations {
        &self.hidden
    }

    /// Makes sequence `i` a copy of sequence `parents[i]`'s first `length` tokens.
    pub fn reorder(&mut self, device: &D, parents: &[u32], length: usize) {
        device.reorder_cache(parents, length, &mut self.cache);
    }

    /// Feeds new tokens, and leaves the hidden state of the last token of each feed in
    /// [`hidden`](Self::hidden). It does not depend on the other feeds.
    pub fn advance(&mut self, model: &Model<D>, feeds: &[Feed<'_>]) -> Result<(), Error> {
        let device = &model.device;
        let passes = cut(feeds, self.rows);
        let width = model.decoder.shape.model.width;
        let mut states = vec![0.0; if passes.len() > 1 { feeds.len() * width } else { 0 }];
        for parts in &passes {
            let ids: Vec<u32> = parts.iter().flat_map(|part| part.tokens(feeds)).copied().collect();
            let spans: Vec<Span> = parts.iter().map(|part| part.span).collect();
            device.write_indices(&ids, &mut self.tokens);
            device.load_spans(&spans, &mut self.spans);
            self.pass(model, ids.len());
            let ended: Vec<&FeedRows> = parts.iter().filter(|part| part.last).collect();
            let rows: Vec<u32> =
                ended.iter().map(|part| part.span.first_row + part.span.rows - 1).collect();
            device.write_indices(&rows, &mut self.picked);
            device.gather(width, &self.picked, &self.residuals[0].normed, &mut self.hidden);
            if passes.len() > 1 {
                let mut read = vec![0.0; ended.len() * width];
                device.read_activations(&self.hidden, &mut read)?;
                for (part, state) in ended.iter().zip(read.chunks(width)) {
                    states[part.feed * width..][..width].copy_from_slice(state);
                }
            }
        }
        if passes.len() > 1 {
            device.write_activations(&states, &mut self.hidden);
        }
        Ok(())
    }

    /// Feeds at most [`MOST_TOKENS`](Self::MOST_TOKENS) new tokens of one sequence, and leaves the
    /// hidden states of all of them, `[tokens, width]`.
    pub fn advance_and_keep_all(&mut self, model: &Model<D>, feed: Feed<'_>) {
        let device = &model.device;
        let rows = feed.tokens.len();
        let span = Span {
            sequence: feed.sequence as u32,
            cached: feed.cached as u32,
            first_row: 0,
            rows: rows as u32,
        };
        device.write_indices(feed.tokens, &mut self.tokens);
        device.load_spans(&[span], &mut self.spans);
        self.pass(model, rows);
        let all: Vec<u32> = (0..rows as u32).collect();
        device.write_indices(&all, &mut self.picked);
        let width = model.decoder.shape.model.width;
        device.gather(width, &self.picked, &self.residuals[0].normed, &mut self.hidden);
    }

    /// Runs all blocks over the rows in `tokens` and `spans`; leaves the hidden states in the
    /// normed stream of the first residual. The operations depend on the number of rows alone, so
    /// that a recording of them can be replayed.
    fn pass(&mut self, model: &Model<D>, rows: usize) {
        let mut recording = std::mem::take(&mut self.recording);
        if self.recorded_rows != rows {
            (recording, self.recorded_rows) = (D::Recording::default(), rows);
        }
        model.device.replay(&mut recording, &mut || self.blocks(model, rows));
        self.recording = recording;
    }

    fn blocks(&mut self, model: &Model<D>, rows: usize) {
        let Self { cache, tokens, spans, clock, residuals: [start, middle], .. } = self;
        let (inside, branch) = (&mut self.inside, &mut self.branch);
        let Model { device, decoder, weights } = model;
        let pass = Pass { model, rows, dropout: 0.0, clock };
        device.embed_spans(decoder.embedding, weights, tokens, spans, &mut start.sum);
        let first = decoder.blocks[0].attention_norm;
        let Residual { sum, normed, statistics } = &mut *start;
        device.norm(rows, first, weights, sum, normed, statistics);
        for block in &decoder.blocks {
            let attention = Attention::Cached { spans, cache };
            block.attention(&pass, attention, start, inside, branch, middle);
            // The residual before the block is no longer needed: its buffer is reused for the next.
            let next = decoder.norm_after(block.layer);
            block.feed_forward(&pass, next, middle, inside, branch, start);
        }
    }
}

impl FeedRows {
    fn tokens<'a>(&self, feeds: &[Feed<'a>]) -> &'a [u32] {
        let feed = feeds[self.feed];
        &feed.tokens[self.span.cached as usize - feed.cached..][..self.span.rows as usize]
    }
}

/// Splits the feeds' tokens into passes of at most `rows` rows.
fn cut(feeds: &[Feed<'_>], rows: usize) -> Vec<Vec<FeedRows>> {
    let mut passes = vec![Vec::new()];
    let mut used = 0;
    for (index, feed) in feeds.iter().enumerate() {
        let mut taken = 0;
        while taken < feed.tokens.len() {
            if used == rows {
                passes.push(Vec::new());
                used = 0;
            }
            let part = (feed.tokens.len() - taken).min(rows - used);
            let span = Span {
                sequence: feed.sequence as u32,
                cached: (feed.cached + taken) as u32,
                first_row: used as u32,
                rows: part as u32,
            };
            taken += part;
            used += part;
            let last = taken == feed.tokens.len();
            passes.last_mut().expect("there is a first").push(FeedRows { feed: index, span, last });
        }
    }
    passes
}
