//! Number formats of charts.

/// A tick's value, with enough digits to distinguish it from the next tick at distance `step`, and
/// the SI suffix that suits the `largest` value of the axis.
pub(super) fn tick(value: f64, step: f64, largest: f64) -> String {
    let (scale, suffix) = match largest {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    format!("{}{suffix}", minus(&format!("{:.*}", decimals(step / scale), value / scale)))
}

/// The number of decimals needed to show steps of this size.
fn decimals(step: f64) -> usize {
    (0..9).find(|&digits| is_whole(step * 10_f64.powi(digits as i32))).unwrap_or(9)
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6 * value.abs().max(1.0)
}

/// A tick of a logarithmic axis: a power of ten or a small multiple of one.
pub(super) fn log_tick(value: f64) -> String {
    let exponent = value.log10().floor() as i32;
    if (-4..9).contains(&exponent) {
        return tick(value, value, value);
    }
    let digit = (value / 10_f64.powi(exponent)).round() as i64;
    let power = format!("10{}", superscript(exponent));
    if digit == 1 { power } else { format!("{digit}·{power}") }
}

fn superscript(exponent: i32) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize - '0' as usize],
    };
    exponent.to_string().chars().map(raised).collect()
}

/// A value in a tooltip or description, with at most six decimals, and fewer if it is large.
pub(super) fn value(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) {
        return minus(&format!("{value:.3e}"));
    }
    let before_point = value.abs().max(1.0).log10().floor() as usize + 1;
    let rounded = format!("{:.*}", 7_usize.saturating_sub(before_point), value);
    if rounded.contains('.') {
        minus(rounded.trim_end_matches('0').trim_end_matches('.'))
    } else {
        minus(&rounded)
    }
}

/// Replaces a leading hyphen by a minus sign.
fn minus(number: &str) -> String {
    number.replacen('-', "−", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_show_what_tells_them_apart() {
        assert_eq!(tick(0.25, 0.25, 1.0), "0.25");
        assert_eq!(tick(0.5, 0.25, 1.0), "0.50");
        assert_eq!(tick(-2.0, 2.0, 4.0), "−2");
        assert_eq!(tick(1500.0, 500.0, 2000.0), "1500");
        assert_eq!(tick(5_000.0, 5_000.0, 20_000.0), "5k");
        assert_eq!(tick(2_500_000.0, 500_000.0, 4e6), "2.5M");
        assert_eq!(tick(0.0, 0.1, 1.0), "0");
    }

    #[test]
    fn far_powers_are_raised() {
        assert_eq!(log_tick(1e-6), "10⁻⁶");
        assert_eq!(log_tick(0.002), "0.002");
        assert_eq!(log_tick(2e12), "2·10¹²");
    }

    #[test]
    fn values_have_six_decimals_at_most() {
        assert_eq!(value(1.983_712_691), "1.983713");
        assert_eq!(value(123_456.789), "123456.8");
        assert_eq!(value(40_000.0), "40000");
        assert_eq!(value(0.5), "0.5");
        assert_eq!(value(1e-9), "1.000e−9");
    }
}
