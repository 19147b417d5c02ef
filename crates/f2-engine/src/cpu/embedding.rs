//! Token vectors plus learned positions.

use super::Cpu;
use super::dropout::Mask;
use super::memory::Buffer;
use super::threads::{Shared, Threads};
use crate::{Dropout, Embedding, Embeddings, Error, Sequences, Span};

/// Rows processed by one task.
const BLOCK: usize = 32;

impl Embeddings for Cpu {
    type Tokens = Tokens;
    type Spans = Vec<Span>;

    fn tokens(&self, positions: usize) -> Result<Tokens, Error> {
        Ok(Tokens::with_capacity(positions))
    }

    fn load_tokens(&self, ids: &[u32], to: &mut Tokens) {
        to.load(ids);
    }

    fn spans(&self, count: usize) -> Result<Vec<Span>, Error> {
        Ok(Vec::with_capacity(count))
    }

    fn load_spans(&self, from: &[Span], to: &mut Vec<Span>) {
        to.clear();
        to.extend_from_slice(from);
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
        let width = embedding.tokens.columns;
        let x = &mut x[..sequences.positions() * width];
        self.threads.zip_chunks([(x, BLOCK * width)], |index, [x]| {
            for (position, x) in (index * BLOCK..).zip(x.chunks_mut(width)) {
                let token =
                    row(&weights[embedding.tokens.range()], tokens.ids[position] as usize, width);
                let place = position % sequences.length;
                add(token, row(&weights[embedding.positions.range()], place, width), x);
                mask.keep_in_place(position, x);
            }
        });
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
        let width = embedding.tokens.columns;
        let places = &mut gradients[embedding.positions.range()][..sequences.length * width];
        self.threads.zip_chunks([(places, width)], |place, [gradient]| {
            for sequence in 0..sequences.count {
                add_kept(mask, sequence * sequences.length + place, d_x, gradient);
            }
        });
        add_token_gradients(&self.threads, embedding, tokens, mask, d_x, gradients);
    }

    fn embed_spans(
        &self,
        embedding: Embedding,
        weights: &Buffer,
        tokens: &Vec<u32>,
        spans: &Vec<Span>,
        x: &mut Buffer,
    ) {
        let width = embedding.tokens.columns;
        for span in spans {
            for offset in 0..span.rows as usize {
                let position = span.first_row as usize + offset;
                let id = tokens[position] as usize;
                let token = row(&weights[embedding.tokens.range()], id, width);
                let place = span.cached as usize + offset;
                let learned = row(&weights[embedding.positions.range()], place, width);
                add(token, learned, &mut x[position * width..(position + 1) * width]);
            }
        }
    }
}

/// Input tokens, with the order in which their gradients are summed.
#[derive(Debug, Default)]
pub struct Tokens {
    ids: Vec<u32>,
    /// Positions sorted by token, then position.
    order: Vec<u32>,
    /// Where each distinct token's positions begin in `order`, and `order`'s length.
    starts: Vec<u32>,
}

impl Tokens {
    fn with_capacity(positions: usize) -> Self {
        Self {
            ids: Vec::with_capacity(positions),
            order: Vec::with_capacity(positions),
            starts: Vec::with_capacity(positions + 1),
        }
    }

    fn load(&mut self, ids: &[u32]) {
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        self.order.clear();
        self.order.extend(0..ids.len() as u32);
        self.order.sort_unstable_by_key(|&position| (ids[position as usize], position));
        self.starts.clear();
        let order = &self.order;
        let token = |index: usize| ids[order[index] as usize];
        let begins = |&index: &usize| index == 0 || token(index) != token(index - 1);
        self.starts.extend((0..ids.len()).filter(begins).map(|index| index as u32));
        self.starts.push(ids.len() as u32);
    }

    /// The positions of the `index`-th distinct token.
    fn group(&self, index: usize) -> &[u32] {
        &self.order[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}

/// One task sums all positions of a token, in order: no two tasks write to the same row, and the
/// result does not depend on scheduling.
fn add_token_gradients(
    threads: &Threads,
    embedding: Embedding,
    tokens: &Tokens,
    mask: Mask,
    d_x: &[f32],
    gradients: &mut [f32],
) {
    let width = embedding.tokens.columns;
    let groups = tokens.starts.len().saturating_sub(1);
    let rows = Shared::new(&mut gradients[embedding.tokens.range()]);
    let pieces = groups.div_ceil(BLOCK);
    threads.each(pieces, |piece| {
        for group in piece * BLOCK..groups.min((piece + 1) * BLOCK) {
            let positions = tokens.group(group);
            let token = tokens.ids[positions[0] as usize] as usize;
            // SAFETY: every token is in one group, and every group in one task.
            let gradient = unsafe { rows.piece(token * width, width) };
            for &position in positions {
                add_kept(mask, position as usize, d_x, gradient);
            }
        }
    });
}

/// Adds the gradient of one position, through dropout.
fn add_kept(mask: Mask, position: usize, d_x: &[f32], gradient: &mut [f32]) {
    let d_x = row(d_x, position, gradient.len());
    mask.add_kept_to(position, d_x, gradient);
}

fn row(matrix: &[f32], index: usize, width: usize) -> &[f32] {
    &matrix[index * width..(index + 1) * width]
}

fn add(a: &[f32], b: &[f32], sum: &mut [f32]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum = a + b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_grouped_by_token_in_order() {
        let mut tokens = Tokens::with_capacity(6);
        tokens.load(&[7, 3, 7, 0, 3, 7]);
        let groups: Vec<&[u32]> = (0..3).map(|group| tokens.group(group)).collect();
        assert_eq!(groups, [&[3][..], &[1, 4], &[0, 2, 5]]);
    }
}
