//! Estimates of training speed before training.

use std::time::Duration;

use f2_engine::Device;

use crate::failure::Failure;
use crate::verbs::device::DeviceTask;

/// The share of the device's peak that training is assumed to reach.
pub(crate) const ASSUMED_SHARE: f64 = 0.6;

/// A peak counts once this many tries in a row found none that is higher by more than a little,
/// or when there were enough of them.
const IN_VAIN: usize = 3;
const A_LITTLE: f64 = 0.02;
const MOST_TRIES: usize = 12;

/// Measures the peak of a device once, for an estimate that is soon corrected by what stages take.
pub(crate) struct Peak;

impl DeviceTask for Peak {
    type Output = f64;

    fn run<D: Device>(self, device: D) -> Result<f64, Failure> {
        Ok(device.measured_peak())
    }
}

/// Floating-point operations per second of a machine that may be busy: the best of several tries.
pub(crate) fn steady_peak(mut measure: impl FnMut() -> f64) -> f64 {
    let (mut best, mut in_vain) = (measure(), 0);
    for _ in 1..MOST_TRIES {
        if in_vain == IN_VAIN {
            break;
        }
        // Whoever slept is served before those who keep a core busy.
        std::thread::sleep(Duration::from_millis(20));
        let peak = measure();
        in_vain = if peak > (1.0 + A_LITTLE) * best { 0 } else { in_vain + 1 };
        best = best.max(peak);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_moment_does_not_count() {
        let mut peaks = [3.0, 1.0, 9.0, 2.0, 9.1, 4.0, 99.0].into_iter();
        assert_eq!(steady_peak(|| peaks.next().unwrap()).to_bits(), 9.1_f64.to_bits());
    }
}
