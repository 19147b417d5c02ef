//! Estimates of training speed before training.

use std::time::Duration;

use f2_engine::Device;

use crate::failure::Failure;
use crate::verbs::device::DeviceTask;

/// The share of the device's peak that training is assumed to reach.
pub(crate) const ASSUMED_SHARE: f64 = 0.6;

/// The search for the peak ends after this many tries in a row that did not raise it by more than
/// `MIN_GAIN`, or after `MOST_TRIES`.
const PATIENCE: usize = 3;
const MIN_GAIN: f64 = 0.02;
const MOST_TRIES: usize = 12;

/// Measures the peak of a device once, for an estimate that the time of stages soon corrects.
pub(crate) struct Peak;

impl DeviceTask for Peak {
    type Output = f64;

    fn run<D: Device>(self, device: D) -> Result<f64, Failure> {
        Ok(device.measured_peak())
    }
}

/// Floating-point operations per second of a machine that may be busy: the best of several tries.
pub(crate) fn steady_peak(mut measure: impl FnMut() -> f64) -> f64 {
    let (mut best, mut futile) = (measure(), 0);
    for _ in 1..MOST_TRIES {
        if futile == PATIENCE {
            break;
        }
        // Schedulers prefer a thread that has slept to those that keep a core busy.
        std::thread::sleep(Duration::from_millis(20));
        let peak = measure();
        futile = if peak > (1.0 + MIN_GAIN) * best { 0 } else { futile + 1 };
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
