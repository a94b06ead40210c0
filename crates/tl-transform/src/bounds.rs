//! The limits of sizes and counts, and checks of parameters against theirs.

use crate::error::{Invalid, InvalidValue, PlanError};

/// The most operations of a recipe, so that each has a number in the random streams.
pub(crate) const MAX_OPS: usize = 256;

/// The most operations within one another, the innermost included. Training recipes nest three or
/// four. Every level takes stack where a recipe is read, checked and drawn from, and two of the 128
/// levels of the JSON reader, whose error would not name the operation.
pub(crate) const MAX_DEPTH: usize = 50;

/// Whether a plan may have an image of this size.
pub(crate) fn check_size(width: u32, height: u32) -> Result<(), PlanError> {
    if is_size((width, height)) { Ok(()) } else { Err(PlanError::ImageSize { width, height }) }
}

/// The pixels of an image of this size.
pub(crate) fn area(size: (u32, u32)) -> u64 {
    u64::from(size.0) * u64::from(size.1)
}

/// Whether both sides are within what a plan's arithmetic covers.
pub(crate) fn is_size(size: (u32, u32)) -> bool {
    let (width, height) = size;
    let sides = 1..=PlanError::MAX_SIDE;
    sides.contains(&width) && sides.contains(&height)
}

/// Whether an image may be resized to this size before it is cropped.
pub(crate) fn is_resized_size(size: (u32, u32)) -> bool {
    let (width, height) = size;
    width.max(height) <= PlanError::MAX_RESIZED_SIDE
}

/// Refuses `value` unless `ok`.
pub(crate) fn require(
    ok: bool,
    parameter: &'static str,
    value: f64,
    expected: &'static str,
) -> Result<(), Invalid> {
    if ok {
        Ok(())
    } else {
        Err(Invalid { parameter, value: InvalidValue::Number(value), expected })
    }
}

/// Refuses the value of this name unless `ok`.
pub(crate) fn require_name(
    ok: bool,
    parameter: &'static str,
    name: &'static str,
    expected: &'static str,
) -> Result<(), Invalid> {
    if ok { Ok(()) } else { Err(Invalid { parameter, value: InvalidValue::Name(name), expected }) }
}

/// Refuses a side that no image has.
pub(crate) fn require_size(parameter: &'static str, value: u32) -> Result<(), Invalid> {
    const { assert!(PlanError::MAX_SIDE == 65_535, "the messages of this and other checks") };
    let ok = (1..=PlanError::MAX_SIDE).contains(&value);
    require(ok, parameter, f64::from(value), "1 to 65535")
}

/// Refuses bounds that are not positive numbers in order.
pub(crate) fn require_interval(
    parameter: &'static str,
    interval: (f64, f64),
) -> Result<(), Invalid> {
    let (low, _) = interval;
    require(low > 0.0 && low.is_finite(), parameter, low, "a positive number")?;
    require_above(parameter, interval)
}

/// Refuses an upper bound that is below the lower one.
pub(crate) fn require_above(parameter: &'static str, interval: (f64, f64)) -> Result<(), Invalid> {
    let (low, high) = interval;
    require(high >= low && high.is_finite(), parameter, high, "no less than the lower bound")
}

/// Refuses a number that is not a probability.
pub(crate) fn require_probability(p: f64) -> Result<(), Invalid> {
    require((0.0..=1.0).contains(&p), "p", p, "a probability, 0 to 1")
}

/// Python's `int(round(x))`: half to even. Sides are far below the bounds the cast saturates at.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(crate) fn round(side: f64) -> u32 {
    side.round_ties_even() as u32
}
