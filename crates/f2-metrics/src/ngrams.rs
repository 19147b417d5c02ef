//! The n-grams of a collection of texts, numbered once for all metrics.
//!
//! All texts are stored in one array of slots, each with `max_order - 1` pads on either side. The
//! n-gram that begins at a slot is identified by a number, derived from the number of its first
//! `n - 1` tokens and its last token. Windows inside a text are its n-grams; the authors also count
//! those that reach into its pads. Windows across two texts are numbered as well, since that is
//! cheaper than skipping them, but never read.

use std::ops::Range;

use crate::Error;
use crate::intern::{Numbered, number};

/// The token number of the pad.
const PAD: u32 = 0;

#[derive(Debug)]
pub(crate) struct NgramIndex {
    /// The slot of each text's first token.
    starts: Vec<usize>,
    lengths: Vec<usize>,
    /// For each order from 1, the number of the n-gram that begins at each slot.
    orders: Vec<Numbered>,
}

/// Which of a text's windows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Windows {
    /// Those inside the text.
    Inner,
    /// Also those that reach over its ends, into `n - 1` pads on either side.
    Padded,
}

impl NgramIndex {
    pub(crate) fn new<'a>(
        texts: impl Iterator<Item = &'a [u32]> + Clone,
        max_order: usize,
    ) -> Result<Self, Error> {
        let padding = max_order.saturating_sub(1);
        let lengths: Vec<usize> = texts.clone().map(<[u32]>::len).collect();
        let slots = lengths.iter().map(|length| length + 2 * padding).sum();
        if slots >= u32::MAX as usize {
            return Err(Error::TooManyTokens(lengths.iter().sum()));
        }
        let mut starts = Vec::with_capacity(lengths.len());
        let mut end = 0;
        for length in &lengths {
            starts.push(end + padding);
            end += length + 2 * padding;
        }
        let orders = number_orders(number_tokens(texts, slots, padding), max_order);
        Ok(Self { starts, lengths, orders })
    }

    /// The n-grams of the orders 1 to `max_order`, at least order 1.
    pub(crate) fn of_texts<T: AsRef<[u32]>>(texts: &[T], max_order: usize) -> Result<Self, Error> {
        Self::new(texts.iter().map(AsRef::as_ref), max_order.max(1))
    }

    /// How many texts there are.
    pub(crate) fn texts(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn max_order(&self) -> usize {
        self.orders.len()
    }

    /// Tokens of a text.
    pub(crate) fn length(&self, text: usize) -> usize {
        self.lengths[text]
    }

    /// How many numbers n-grams of this order have: they are below this.
    pub(crate) fn distinct(&self, order: usize) -> usize {
        self.orders[order - 1].distinct
    }

    /// The numbers of a text's n-grams, from left to right.
    pub(crate) fn ngrams(&self, order: usize, text: usize, windows: Windows) -> &[u32] {
        let (start, length) = (self.starts[text], self.lengths[text]);
        let numbers = &self.orders[order - 1].numbers;
        match windows {
            Windows::Inner => &numbers[start..][..(length + 1).saturating_sub(order)],
            Windows::Padded => &numbers[start + 1 - order..][..length + order - 1],
        }
    }

    /// The count of each n-gram of an order in a range of weighted texts.
    pub(crate) fn counts(
        &self,
        order: usize,
        texts: Range<usize>,
        weights: &[u32],
        windows: Windows,
    ) -> Vec<u32> {
        let mut counts = vec![0_u32; self.distinct(order)];
        for (text, &weight) in texts.zip(weights).filter(|&(_, &weight)| weight > 0) {
            for &ngram in self.ngrams(order, text, windows) {
                let count = &mut counts[ngram as usize];
                *count = count.saturating_add(weight);
            }
        }
        counts
    }
}

/// Numbers the tokens, with pads between the texts.
fn number_tokens<'a>(
    texts: impl Iterator<Item = &'a [u32]> + Clone,
    slots: usize,
    padding: usize,
) -> Numbered {
    let largest = texts.clone().flatten().copied().max().unwrap_or(0) as usize;
    // A direct table is fastest, but would be huge if ids are scattered over the whole range.
    if largest < 4 * slots + (1 << 16) {
        let mut table = vec![PAD; largest + 1];
        let mut distinct = PAD + 1;
        let numbers = lay_out(texts, slots, padding, PAD, |token| {
            let number = &mut table[token as usize];
            if *number == PAD {
                *number = distinct;
                distinct += 1;
            }
            *number
        });
        Numbered { numbers, distinct: distinct as usize }
    } else {
        let row = lay_out(texts, slots, padding, 0, |token| u64::from(token) + 1);
        number(row.len(), |slot| row[slot])
    }
}

/// All texts in one array, each between its pads.
fn lay_out<'a, T: Copy>(
    texts: impl Iterator<Item = &'a [u32]>,
    slots: usize,
    padding: usize,
    pad: T,
    mut token: impl FnMut(u32) -> T,
) -> Vec<T> {
    let mut row = Vec::with_capacity(slots);
    for text in texts {
        row.resize(row.len() + padding, pad);
        row.extend(text.iter().map(|&id| token(id)));
        row.resize(row.len() + padding, pad);
    }
    row
}

/// Numbers the n-grams of every order from those of the order below.
fn number_orders(tokens: Numbered, max_order: usize) -> Vec<Numbered> {
    let mut orders = Vec::with_capacity(max_order);
    orders.push(tokens);
    for order in 2..=max_order {
        let tokens = &orders[0].numbers;
        let shorter = &orders[order - 2].numbers;
        let windows = (tokens.len() + 1).saturating_sub(order);
        let longer = number(windows, |slot| {
            u64::from(shorter[slot]) << 32 | u64::from(tokens[slot + order - 1])
        });
        orders.push(longer);
    }
    orders.truncate(max_order);
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The n-grams themselves, to compare by content.
    fn spelled(padded: &[i64], order: usize) -> Vec<&[i64]> {
        padded.windows(order).collect()
    }

    fn check(texts: &[Vec<u32>]) {
        let index = NgramIndex::new(texts.iter().map(Vec::as_slice), 3).unwrap();
        for order in 1..=3 {
            let padded: Vec<Vec<i64>> = texts
                .iter()
                .map(|text| {
                    let pads = vec![-1; order - 1];
                    let tokens = text.iter().map(|&id| i64::from(id)).collect();
                    [pads.clone(), tokens, pads].concat()
                })
                .collect();
            let numbers = (0..texts.len()).flat_map(|t| index.ngrams(order, t, Windows::Padded));
            let written = padded.iter().flat_map(|text| spelled(text, order));
            let pairs: Vec<_> = numbers.zip(written).collect();
            for (a, b) in pairs.iter().flat_map(|a| pairs.iter().map(move |b| (a, b))) {
                assert_eq!(a.0 == b.0, a.1 == b.1, "{:?} and {:?}", a.1, b.1);
            }
            for (number, text) in texts.iter().enumerate() {
                let inner = index.ngrams(order, number, Windows::Inner);
                assert_eq!(inner.len(), (text.len() + 1).saturating_sub(order));
                let around = index.ngrams(order, number, Windows::Padded);
                assert_eq!(around.len(), text.len() + order - 1);
                assert_eq!(inner, around.get(order - 1..text.len()).unwrap_or(&[]));
            }
        }
    }

    #[test]
    fn n_grams_are_equal_exactly_when_their_numbers_are() {
        check(&[vec![1, 2, 3, 1, 2], vec![], vec![2], vec![2, 3, 1, 2, 3], vec![1, 1, 1, 1]]);
    }

    #[test]
    fn ids_may_lie_anywhere_in_32_bits() {
        check(&[vec![0, u32::MAX, u32::MAX - 1, 0], vec![u32::MAX, u32::MAX, 0]]);
    }
}
