//! The measured speed of large matrix products.

use std::time::Instant;

use super::{Matrix, Target};
use crate::Error;
use crate::cuda::memory::Buffer;
use crate::cuda::{Cuda, Precision};

/// Rows and columns of the product that is timed, and how often it is repeated.
const SIZE: usize = 4096;
const TIMES: usize = 10;

impl<P: Precision> Cuda<P> {
    /// Floating-point operations per second of a square product of random numbers.
    pub(in crate::cuda) fn peak(&self) -> Result<f64, Error> {
        let count = SIZE * SIZE;
        let mut random = crate::Philox::new(0, [0; 3]);
        let row: Vec<P::Element> =
            (0..SIZE + 63).map(|_| P::narrow(random.uniform() as f32 - 0.5)).collect();
        let values: Vec<P::Element> =
            (0..SIZE).flat_map(|shift| row[shift % 63..][..SIZE].iter().copied()).collect();
        let [a, b, to] = [
            Buffer::zeroed(&self.stream, count)?,
            Buffer::zeroed(&self.stream, count)?,
            Buffer::zeroed(&self.stream, count)?,
        ];
        a.write(0, &values);
        b.write(0, &values);
        let run = || {
            let (a, b) = (Matrix::new(a.at(0), SIZE), Matrix::new(b.at(0), SIZE).transposed());
            self.product([SIZE; 3], a, b, Target::real(to.at(0), SIZE));
        };
        run();
        self.stream.synchronise()?;
        let began = Instant::now();
        (0..TIMES).for_each(|_| run());
        self.stream.synchronise()?;
        let seconds = began.elapsed().as_secs_f64() / TIMES as f64;
        Ok(2.0 * (SIZE as f64).powi(3) / seconds)
    }
}
