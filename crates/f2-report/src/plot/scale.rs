//! Scales: the mapping from values to positions, with ticks.

use super::axis::Axis;
use super::number;

/// The mapping from the values of an axis to positions, from 0 at its start to 1 at its end, and
/// its ticks.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    axis: Axis,
    least: f64,
    most: f64,
    pub(super) ticks: Vec<Tick>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// Values of larger magnitude are not shown, and differences below its inverse count as 0:
/// otherwise the ends and steps of an axis could overflow or underflow.
const LARGEST: f64 = 1e300;

/// How far an axis extends beyond its values.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fit {
    /// To the next tick on either side.
    Ticks,
    /// Not at all.
    Values,
}

impl Scale {
    /// A scale for these values, with about `wanted` ticks.
    pub(super) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        fit: Fit,
        wanted: f64,
    ) -> Self {
        let (least, most) = extent(axis, values.map(|value| axis.measure(value)));
        let owned = axis.clone();
        if axis.log {
            let (least, most) = match fit {
                Fit::Ticks => log_ends(axis, least, most),
                Fit::Values => (least, most),
            };
            let ticks = log_ticks(axis, least, most);
            return Self { axis: owned, least, most, ticks };
        }
        let step = nice_step((most - least) / wanted, axis.whole);
        let (mut least, mut most) = (least, most);
        if fit == Fit::Ticks {
            // The tolerance: rounding must not add a tick beyond a value that lies on one.
            least = axis.from.unwrap_or(((least / step) + 1e-9).floor() * step);
            most = axis.to.unwrap_or(((most / step) - 1e-9).ceil() * step);
        }
        Self { axis: owned, least, most, ticks: linear_ticks(least, most, step) }
    }

    /// Whether a value has a position on the scale, inside its ends or not.
    pub(super) fn shows(&self, value: f64) -> bool {
        is_shown(value) && (!self.axis.log || self.axis.measure(value) > 0.0)
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        if !self.axis.log {
            return (value - self.least) / (self.most - self.least);
        }
        let place = (self.axis.measure(value) / self.least).ln() / (self.most / self.least).ln();
        if self.axis.bound.is_some() { 1.0 - place } else { place }
    }
}

fn is_shown(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// The smallest and largest value, or the limits set for the axis; never equal.
fn extent(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let shown = values.filter(|value| is_shown(*value) && (!axis.log || *value > LARGEST.recip()));
    let (mut least, mut most) = shown
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if least > most {
        (least, most) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
    }
    least = axis.from.filter(|from| !axis.log || *from > 0.0).unwrap_or(least);
    most = axis.to.unwrap_or(most);
    if most - least > LARGEST.recip() {
        return (least, most);
    }
    if axis.log {
        (least / 2.0, least * 2.0)
    } else {
        let margin = if least.abs() < 10.0 / LARGEST { 1.0 } else { least.abs() / 10.0 };
        (least - margin, least + margin)
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `step`.
fn nice_step(step: f64, whole: bool) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    let nice = factor.unwrap_or(10.0) * power;
    if whole { nice.max(1.0) } else { nice }
}

fn linear_ticks(least: f64, most: f64, step: f64) -> Vec<Tick> {
    let first = (least / step - 1e-9).ceil() as i64;
    let last = (most / step + 1e-9).floor() as i64;
    let largest = least.abs().max(most.abs());
    let tick = |index: i64| {
        let value = index as f64 * step;
        Tick { value, label: number::tick(value, step, largest) }
    };
    (first..=last).map(tick).collect()
}

/// The nearest of 1, 2, 3, 5 times a power of ten at or below the least and at or above the most.
fn log_ends(axis: &Axis, least: f64, most: f64) -> (f64, f64) {
    let around = |value: f64| {
        let power = 10_f64.powf(value.log10().floor());
        [1.0, 2.0, 3.0, 5.0, 10.0].map(|factor| factor * power)
    };
    let below = around(least).into_iter().rev().find(|&end| end <= least * (1.0 + 1e-9));
    let above = around(most).into_iter().find(|&end| end >= most * (1.0 - 1e-9));
    let (below, above) = (below.unwrap_or(least), above.unwrap_or(most));
    (axis.from.map_or(below, |_| least), axis.to.map_or(above, |_| most))
}

/// Powers of ten, and small multiples of them if the axis spans few decades.
fn log_ticks(axis: &Axis, least: f64, most: f64) -> Vec<Tick> {
    let (low, high) = (least.log10(), most.log10());
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let factors: &[f64] = match high - low {
        decades if decades < 1.1 => &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        decades if decades < 3.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = ((last - first) / 8 + 1) as usize;
    let values = (first..=last)
        .step_by(every)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    let inside = |value: &f64| *value >= least * (1.0 - 1e-9) && *value <= most * (1.0 + 1e-9);
    let tick = |missing: f64| match axis.bound {
        None => Tick { value: missing, label: number::log_tick(missing) },
        Some(bound) => {
            let value = bound - missing;
            Tick { value, label: number::tick(value, missing, bound) }
        }
    };
    values.filter(inside).map(tick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], fit: Fit) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied(), fit, 5.0);
        scale.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_around_the_values() {
        let axis = Axis::new("");
        assert_eq!(labels(&axis, &[1.66, 1.99], Fit::Ticks), ["1.6", "1.7", "1.8", "1.9", "2.0"]);
        assert_eq!(labels(&axis, &[0.0, 7.0], Fit::Values), ["0", "2", "4", "6"]);
        assert_eq!(labels(&axis, &[3.0], Fit::Values), ["2.8", "3.0", "3.2"]);
        assert_eq!(labels(&axis, &[], Fit::Ticks), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    }

    #[test]
    fn what_is_counted_has_whole_ticks() {
        assert_eq!(labels(&Axis::new("").whole(), &[1.0, 3.0], Fit::Values), ["1", "2", "3"]);
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let axis = Axis::new("").log();
        assert_eq!(labels(&axis, &[0.0, -1.0, 1.0, 1e5], Fit::Ticks).len(), 6);
        assert_eq!(
            labels(&axis, &[1.0, 100.0], Fit::Ticks),
            ["1", "2", "5", "10", "20", "50", "100"]
        );
    }

    #[test]
    fn an_axis_that_approaches_a_bound_gives_room_to_its_neighbourhood() {
        let axis = Axis::new("").approaching(2.0);
        let scale = Scale::new(&axis, [1.9, 1.999].into_iter(), Fit::Ticks, 5.0);
        let labels: Vec<&str> = scale.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, ["1.999", "1.998", "1.995", "1.99", "1.98", "1.95", "1.9"]);
        assert!((scale.place(1.99) - 0.5).abs() < 1e-9);
        assert!(scale.shows(2.0) && scale.place(2.0) > 1.0);
    }

    #[test]
    fn no_value_is_too_large_or_too_small_for_an_axis() {
        let extremes = [f64::MAX, 1.51e308, 1e300, 1e-300, 1e-310, 5e-324, 0.0, -1e300, f64::MIN];
        for axis in [Axis::new(""), Axis::new("").whole(), Axis::new("").log()] {
            for (one, other) in extremes.into_iter().flat_map(|one| extremes.map(|two| (one, two)))
            {
                for fit in [Fit::Ticks, Fit::Values] {
                    let scale = Scale::new(&axis, [one, other, 24.7].into_iter(), fit, 5.0);
                    assert!(scale.ticks.len() < 100, "{one} {other}");
                    assert!(scale.place(24.7).is_finite(), "{one} {other}");
                }
                Scale::new(&axis, [one, other].into_iter(), Fit::Ticks, 5.0);
            }
        }
    }

    #[test]
    fn places_run_from_nought_to_one() {
        let scale = Scale::new(&Axis::new("").log(), [1.0, 100.0].into_iter(), Fit::Values, 5.0);
        assert_eq!((scale.place(1.0), scale.place(100.0)), (0.0, 1.0));
        assert!((scale.place(10.0) - 0.5).abs() < 1e-12);
    }
}
