//! The random numbers of the bootstrap and of random halves.

/// `SplitMix64` (Steele et al., 2014), with independent streams.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ stream;
        random.state = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`: the high word of a product, with a bias below 2⁻³².
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Draws as many times as there are texts; how often each was drawn.
    pub(crate) fn draw(&mut self, texts: usize) -> Vec<u32> {
        let mut weights = vec![0; texts];
        for _ in 0..texts {
            weights[self.below(texts)] += 1;
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Random { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    #[test]
    fn draws_are_as_many_as_texts_and_cover_about_two_thirds() {
        let weights = Random::new(3, 0).draw(10_000);
        assert_eq!(weights.iter().sum::<u32>(), 10_000);
        let drawn = weights.iter().filter(|&&weight| weight > 0).count();
        // 1 − 1/e of 10,000, and about seven standard deviations of 31.
        assert!(drawn.abs_diff(6_321) < 220, "{drawn}");
    }
}
