//! Turning by multiples of 90 degrees, which only moves pixels.

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

/// Pixels of a row and rows that are read together, so that both images stay in the cache.
const BLOCK: usize = 32;

/// Turns `src` into `out`, packed: `Image.transpose` and `torch.rot90`. All exact.
///
/// # Panics
///
/// When `src` has 4 channels, or when `out` is not as large.
pub fn turn(level: Level, src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let (width, height, channels) = (src.width as usize, src.height as usize, src.channels);
    assert!(matches!(channels, 1 | RGB), "{channels} channels; 1 or 3 are turned");
    let need = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels));
    assert_eq!(need, Some(out.len()), "the output is as large as the source");
    if out.is_empty() {
        return;
    }
    match (by, channels) {
        (Turn::Half, _) => {
            let row_bytes = width * channels;
            for (row, out) in src.data.chunks(src.row_bytes).zip(out.rchunks_exact_mut(row_bytes)) {
                flip_row(level, &row[..row_bytes], channels, out);
            }
        }
        (Turn::Quarter, 1) => transpose::<1>(src, out, |x, y| (width - 1 - x) * height + y),
        (Turn::Quarter, _) => transpose::<RGB>(src, out, |x, y| (width - 1 - x) * height + y),
        (Turn::ThreeQuarters, 1) => transpose::<1>(src, out, |x, y| x * height + height - 1 - y),
        (Turn::ThreeQuarters, _) => transpose::<RGB>(src, out, |x, y| x * height + height - 1 - y),
    }
}

/// Puts the pixel of column `x` and row `y` at pixel `place(x, y)`, block by block.
#[inline(always)]
fn transpose<const C: usize>(
    src: ImageView<'_>,
    out: &mut [u8],
    place: impl Fn(usize, usize) -> usize,
) {
    let (out, _) = out.as_chunks_mut::<C>();
    let (width, height) = (src.width as usize, src.height as usize);
    for top in (0..height).step_by(BLOCK) {
        for left in (0..width).step_by(BLOCK) {
            for x in left..width.min(left + BLOCK) {
                for y in top..height.min(top + BLOCK) {
                    let at = y * src.row_bytes + x * C;
                    if let Some(pixel) = src.data[at..].first_chunk::<C>() {
                        out[place(x, y)] = *pixel;
                    }
                }
            }
        }
    }
}
