//! The parts of a JPEG image, as they are written on a command line.

use tl_decode::{Level, Rect, Scale};

/// Reads `X,Y,WIDTH,HEIGHT`.
pub(super) fn region(text: &str) -> Result<Rect, &'static str> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[x, y, width, height]) => Ok(Rect { x, y, width, height }),
        _ => Err("expected X,Y,WIDTH,HEIGHT: four numbers separated by commas"),
    }
}

/// Reads `1/4`, or any other number of eighths up to `16/8`.
pub(super) fn scale(text: &str) -> Result<Scale, &'static str> {
    let eighths = text.strip_suffix("/8").and_then(|eighths| eighths.parse().ok());
    eighths
        .and_then(Scale::from_eighths)
        .or_else(|| Scale::all().find(|scale| scale.to_string() == text))
        .ok_or("expected a scale from 1/8 to 16/8, such as 1/4 or 3/8")
}

/// Reads the name of a level that this CPU has.
pub(super) fn level(text: &str) -> Result<Level, String> {
    Level::available().find(|level| level.to_string() == text).ok_or_else(|| {
        let names: Vec<String> = Level::available().map(|level| level.to_string()).collect();
        format!("this CPU has {}", names.join(", "))
    })
}
