//! A shuffled order that is computed place by place.

/// Rounds of the Feistel network. Four turn random functions into a pseudo-random permutation; two
/// more cost nothing here.
const ROUNDS: u64 = 6;

/// A pseudo-random order of `0..length` that gives the element at any place without computing the
/// others.
///
/// A balanced Feistel network permutes the smallest power of four that holds `length`; values that
/// land outside are permuted again until they land inside, which keeps it a bijection.
///
/// ```
/// let order = f2_lm::batch::Permutation::new(7, 42);
/// let mut seen: Vec<u64> = (0..7).map(|place| order.at(place)).collect();
/// seen.sort_unstable();
/// assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    length: u64,
    key: u64,
    half_bits: u32,
}

impl Permutation {
    /// The order of `0..length` that belongs to `key`.
    pub fn new(length: u64, key: u64) -> Self {
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        Self { length, key, half_bits: bits.div_ceil(2).max(1) }
    }

    /// The element at `place`.
    ///
    /// # Panics
    ///
    /// If `place` is not below the length.
    pub fn at(&self, place: u64) -> u64 {
        assert!(place < self.length, "place {place} of {}", self.length);
        let mut element = self.scramble(place);
        while element >= self.length {
            element = self.scramble(element);
        }
        element
    }

    fn scramble(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let mixed = mix(self.key ^ mix(right ^ (round << 56)));
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

/// Spreads every bit of `value` over all of the result (the `SplitMix64` finaliser).
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_bijection(length in 1_u64..2_000, key: u64) {
            let order = Permutation::new(length, key);
            let mut seen = vec![false; length as usize];
            for place in 0..length {
                seen[order.at(place) as usize] = true;
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }

    #[test]
    fn every_element_is_about_equally_likely_first() {
        // 6,400 keys over 16 elements: mean 400, standard deviation 19.4; five of them are allowed.
        let mut counts = [0_i32; 16];
        for key in 0..6_400 {
            counts[Permutation::new(16, mix(key)).at(0) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 400).abs() < 97), "{counts:?}");
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let order = Permutation::new(10_000, 3);
        let together = (0..9_999).filter(|&i| order.at(i).abs_diff(order.at(i + 1)) < 10).count();
        // A random order has about 9,999 * 20 / 10,000 = 20 such pairs.
        assert!(together < 50, "{together}");
    }
}
