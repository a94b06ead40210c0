//! Turning by multiples of 90 degrees, which only moves pixels.

use super::cells::Source;
use super::nearest;
use crate::Level;
use crate::kernels::interleave::flip_row;
use crate::kernels::resample::ImageView;
use crate::vector::RGB;

/// How far to turn, counter-clockwise as Pillow and torch count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// By 90 degrees: the right column becomes the first row.
    Quarter,
    /// By 180 degrees.
    Half,
    /// By 270 degrees: the left column becomes the first row, last pixel first.
    ThreeQuarters,
}

/// Turns `src` into `out`, packed: `Image.transpose` and `torch.rot90`. All exact.
///
/// # Panics
///
/// When `src` has 4 channels, or when `out` is not as large.
pub fn turn(level: Level, src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let (width, height, channels) = (src.width as usize, src.height as usize, src.channels);
    // As wide as the source is high, except for a half turn.
    let source = Source::new(src, (src.height, src.width), out);
    if out.is_empty() {
        return;
    }
    if by == Turn::Half {
        let row_bytes = width * channels;
        let rows = src.data.chunks(src.row_bytes).take(height);
        for (row, out) in rows.zip(out.rchunks_exact_mut(row_bytes)) {
            flip_row(level, &row[..row_bytes], channels, out);
        }
    } else if channels == 1 {
        nearest::quarter(level, source, by, [0], out);
    } else {
        nearest::quarter(level, source, by, [0; RGB], out);
    }
}
