//! Numbering keys densely: equal keys get equal numbers, on all cores.
//!
//! Keys are first partitioned into shards by their hash; each shard then numbers its keys with a
//! hash table that fits in cache. The number of shards depends only on the number of keys, so the
//! result does not depend on the number of threads.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

/// Keys per shard: its hash table then fits in the L2 cache.
const SHARD_KEYS: usize = 1 << 14;
/// With more shards, partitioning costs more than it saves.
const MAX_SHARD_BITS: u32 = 9;
/// Keys partitioned by one task.
const BLOCK_KEYS: usize = 1 << 16;
/// Marks a free slot of a table. No key has this value: see [`number`].
const FREE: u64 = u64::MAX;

/// The number of each key, and how many different ones there are.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) numbers: Vec<u32>,
    pub(crate) distinct: usize,
}

/// A key and its position.
type Occurrence = (u64, u32);

/// Numbers the keys `key(0), …, key(len - 1)`, from 0 without gaps.
///
/// No key may be `u64::MAX`, and `len` must fit 32 bits.
pub(crate) fn number(len: usize, key: impl Fn(usize) -> u64 + Sync) -> Numbered {
    let shard_bits = (len / SHARD_KEYS).max(1).ilog2().min(MAX_SHARD_BITS);
    let blocks = deal(len, shard_bits, &key);
    let shards: Vec<Numbered> = (0..1_usize << shard_bits)
        .into_par_iter()
        .map(|shard| number_shard(blocks.iter().map(|block| &block[shard][..]), shard_bits))
        .collect();
    join(len, &blocks, &shards)
}

/// Partitions each block of keys into shards by the top bits of their hashes.
fn deal(
    len: usize,
    shard_bits: u32,
    key: &(impl Fn(usize) -> u64 + Sync),
) -> Vec<Vec<Vec<Occurrence>>> {
    let shards = 1_usize << shard_bits;
    let deal_block = |block: usize| {
        let positions = block * BLOCK_KEYS..len.min((block + 1) * BLOCK_KEYS);
        let expected = positions.len() / shards;
        let mut dealt = vec![Vec::with_capacity(expected + expected / 4 + 8); shards];
        for position in positions {
            let key = key(position);
            dealt[top_bits(hash(key), shard_bits)].push((key, position as u32));
        }
        dealt
    };
    (0..len.div_ceil(BLOCK_KEYS)).into_par_iter().map(deal_block).collect()
}

/// Numbers one shard's keys in order of occurrence, by open addressing.
fn number_shard<'a>(
    parts: impl Iterator<Item = &'a [Occurrence]> + Clone,
    shard_bits: u32,
) -> Numbered {
    let len: usize = parts.clone().map(<[Occurrence]>::len).sum();
    let capacity_bits = (2 * len + 1).next_power_of_two().ilog2();
    let mask = (1_usize << capacity_bits) - 1;
    let mut table = vec![(FREE, 0_u32); mask + 1];
    let mut numbers = Vec::with_capacity(len);
    let mut distinct = 0;
    for &(key, _) in parts.flatten() {
        // The top bits are the same for the whole shard.
        let mut place = top_bits(hash(key) << shard_bits, capacity_bits);
        while table[place].0 != key {
            if table[place].0 == FREE {
                table[place] = (key, distinct);
                distinct += 1;
                break;
            }
            place = (place + 1) & mask;
        }
        numbers.push(table[place].1);
    }
    Numbered { numbers, distinct: distinct as usize }
}

/// Restores the order of the keys; each shard's numbers follow those of the shard before.
fn join(len: usize, blocks: &[Vec<Vec<Occurrence>>], shards: &[Numbered]) -> Numbered {
    let mut distinct = 0;
    let mut firsts = Vec::with_capacity(shards.len());
    for shard in shards {
        firsts.push(distinct as u32);
        distinct += shard.distinct;
    }
    let numbers: Vec<AtomicU32> = (0..len).map(|_| AtomicU32::new(0)).collect();
    shards.par_iter().enumerate().for_each(|(shard, numbered)| {
        let occurrences = blocks.iter().flat_map(|block| &block[shard]);
        for (&(_, position), number) in occurrences.zip(&numbered.numbers) {
            let number = firsts[shard] + number;
            numbers[position as usize].store(number, Ordering::Relaxed);
        }
    });
    Numbered { numbers: numbers.into_iter().map(AtomicU32::into_inner).collect(), distinct }
}

/// The `bits` highest bits.
fn top_bits(hash: u64, bits: u32) -> usize {
    hash.checked_shr(64 - bits).unwrap_or(0) as usize
}

/// Mixes both halves of a key into the high bits of the product.
fn hash(key: u64) -> u64 {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn check(keys: &[u64]) {
        let Numbered { numbers, distinct } = number(keys.len(), |position| keys[position]);
        let mut seen = HashMap::new();
        for (&key, &number) in keys.iter().zip(&numbers) {
            assert_eq!(*seen.entry(key).or_insert(number), number);
        }
        let mut used: Vec<u32> = seen.into_values().collect();
        used.sort_unstable();
        assert!(used.iter().copied().eq(0..distinct as u32), "numbers are dense and unique");
    }

    #[test]
    fn equal_keys_share_a_number_and_none_is_left_out() {
        check(&[]);
        check(&[7]);
        check(&[0, 1 << 32, 0, 5, 1 << 32]);
        let many: Vec<u64> = (0..300_000_u64).map(|i| (i * i) % 70_001 * 0x1_0001).collect();
        check(&many);
    }

    #[test]
    fn the_numbers_do_not_depend_on_the_threads() {
        let numbers = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| number(200_000, |i| (i as u64 * 31) % 9_999)).numbers
        };
        assert_eq!(numbers(1), numbers(3));
    }
}
