//! Colours multiplied by their alpha and divided by it again, as Pillow does around the resampling of
//! `RGBA` images, so that invisible pixels lend no colour to their neighbours.

use crate::Level;

/// Multiplies the colours of RGBA pixels by their alpha: Pillow's `convert("RGBa")`.
///
/// # Panics
///
/// When `pixels` and `out` are not whole pixels of the same number.
pub fn premultiply(level: Level, pixels: &[u8], out: &mut [u8]) {
    convert(level, pixels, out, |color, alpha| {
        let product = u16::from(color) * u16::from(alpha) + 128;
        (product + (product >> 8)).to_be_bytes()[0]
    });
}

/// Divides the colours of premultiplied pixels by their alpha: Pillow's `convert("RGBA")`.
///
/// # Panics
///
/// When `pixels` and `out` are not whole pixels of the same number.
pub fn unpremultiply(level: Level, pixels: &[u8], out: &mut [u8]) {
    convert(level, pixels, out, |color, alpha| {
        let color = u16::from(color);
        let divided = if matches!(alpha, 0 | 255) { color } else { color * 255 / u16::from(alpha) };
        divided.min(255).to_le_bytes()[0]
    });
}

#[inline(always)]
fn convert(level: Level, pixels: &[u8], out: &mut [u8], color: impl Fn(u8, u8) -> u8) {
    assert_eq!(pixels.len(), out.len(), "one pixel per pixel");
    assert!(pixels.len().is_multiple_of(4), "whole pixels of 4 bytes");
    level.vectorize(
        #[inline(always)]
        || {
            let pixels = pixels.as_chunks::<4>().0;
            for (out, [r, g, b, alpha]) in out.as_chunks_mut::<4>().0.iter_mut().zip(pixels) {
                let [r, g, b] = [*r, *g, *b].map(|value| color(value, *alpha));
                *out = [r, g, b, *alpha];
            }
        },
    );
}
