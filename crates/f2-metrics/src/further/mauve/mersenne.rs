//! The Mersenne Twister, MT19937 (Matsumoto and Nishimura, 1998), the generator of faiss.

const SIZE: usize = 624;
const MIDDLE: usize = 397;

pub(super) struct MersenneTwister {
    state: [u32; SIZE],
    next: usize,
}

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed; SIZE];
        for place in 1..SIZE {
            let before = state[place - 1];
            let mixed = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30));
            state[place] = mixed.wrapping_add(place as u32);
        }
        Self { state, next: SIZE }
    }

    pub(super) fn next(&mut self) -> u32 {
        if self.next == SIZE {
            self.twist();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for place in 0..SIZE {
            let high = self.state[place] & 0x8000_0000;
            let word = high | (self.state[(place + 1) % SIZE] & 0x7fff_ffff);
            let odd = if word & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[place] = self.state[(place + MIDDLE) % SIZE] ^ (word >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The 10,000th number for the default seed, from the C++ standard.
        let mut random = MersenneTwister::new(5489);
        assert_eq!((0..10_000).map(|_| random.next()).last(), Some(4_123_659_995));
    }
}
