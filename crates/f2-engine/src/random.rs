//! Counter-based random numbers: each is a function of its index, not of earlier draws.
//!
//! Dropout and sampling therefore give the same result for any batch size and number of threads,
//! and after an interruption. The generator is Philox 4×32 with ten rounds (Salmon et al.,
//! *Parallel random numbers: as easy as 1, 2, 3*, 2011).

/// The multipliers of the counter's words.
pub(crate) const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds of mixing; the authors recommend ten.
pub(crate) const ROUNDS: usize = 10;

/// Four random words for a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        counter = round(counter, key);
        key = next_key(key);
    }
    counter
}

/// The key of the next round.
#[inline]
pub(crate) fn next_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])]
}

/// One round of mixing.
#[inline]
fn round(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let first = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
    let second = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
    [
        (second >> 32) as u32 ^ counter[1] ^ key[0],
        second as u32,
        (first >> 32) as u32 ^ counter[3] ^ key[1],
        first as u32,
    ]
}

/// A stream of random numbers for the host, identified by a seed and three coordinates.
#[derive(Clone, Debug)]
pub struct Philox {
    key: [u32; 2],
    counter: [u32; 4],
    words: [u32; 4],
    used: usize,
}

impl Philox {
    /// The stream of `seed` at `place`. Streams at different places share no counter.
    pub fn new(seed: u64, place: [u32; 3]) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        Self { key, counter: [0, place[0], place[1], place[2]], words: [0; 4], used: 4 }
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.words = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// A number in `[0, 1)`, of 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        let bits = (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32());
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in `0..below`, without bias.
    pub fn below(&mut self, below: u32) -> u32 {
        assert!(below > 0, "there is no number below zero");
        let threshold = below.wrapping_neg() % below;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(below);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// A draw from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the algorithm's reference implementation.
    #[test]
    fn known_answers() {
        let ones = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([ones; 4], [ones; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut random = Philox::new(7, [1, 2, 3]);
        let n = 20_000;
        let uniform: f64 = (0..n).map(|_| random.uniform()).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.01);
        let square: f64 = (0..n).map(|_| random.normal().powi(2)).sum::<f64>() / f64::from(n);
        assert!((square - 1.0).abs() < 0.05);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
