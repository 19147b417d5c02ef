//! Checks of a strategy's settings; each error names the option and the reason.

use crate::Error;

pub(super) fn check_temperature(option: &'static str, temperature: f64) -> Result<(), Error> {
    check_from_zero(option, temperature)
}

pub(super) fn check_from_zero(option: &'static str, value: f64) -> Result<(), Error> {
    require(option, value.is_finite() && value >= 0.0, || {
        format!("{value} is not a number from 0 up")
    })
}

pub(super) fn check_k(
    option: &'static str,
    k: Option<usize>,
    most: usize,
    what: &str,
) -> Result<(), Error> {
    require(option, k.is_none_or(|k| (1..=most).contains(&k)), || {
        format!("{} is not from 1 to the model's {most} {what}", k.unwrap_or_default())
    })
}

pub(super) fn check_positive(option: &'static str, value: f64) -> Result<(), Error> {
    require(option, value.is_finite() && value > 0.0, || format!("{value} is not a number above 0"))
}

pub(super) fn check_share(option: &'static str, share: f64) -> Result<(), Error> {
    require(option, share > 0.0 && share <= 1.0, || {
        format!("{share} is not a share above 0 and up to 1")
    })
}

pub(super) fn require(
    option: &'static str,
    holds: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Strategy { option, reason: reason() }) }
}
