//! Turning by multiples of 90 degrees, which only moves pixels.

use crate::Level;
use crate::kernels::interleave::{flip_row, starts};
use crate::kernels::resample::ImageView;
use crate::vector::gather::{GATHERED, GatherSimd, Plain};
use crate::vector::{RGB, dispatch};

/// The angle of a turn, counter-clockwise as Pillow and torch count.
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
/// If `out` is not as large.
pub fn turn(level: Level, src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let width = src.width as usize;
    let height = src.height as usize;
    let channels = src.channels;
    let need = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels));
    assert_eq!(need, Some(out.len()), "the output is as large as the source");
    if out.is_empty() {
        return;
    }
    if by == Turn::Half {
        let row_bytes = width * channels;
        if src.row_bytes == row_bytes {
            return flip_row(level, &src.data[..out.len()], channels, out);
        }
        let rows = src.data.chunks(src.row_bytes).take(height);
        for (row, out) in rows.zip(out.rchunks_exact_mut(row_bytes)) {
            flip_row(level, &row[..row_bytes], channels, out);
        }
    } else if channels == 1 {
        dispatch!(
            level,
            scalar => quarter::<Plain, 1>(Plain, src, by, out),
            simd => quarter::<_, 1>(simd, src, by, out),
        );
    } else if channels != RGB {
        define_quarter(src, by, out);
    } else {
        dispatch!(
            level,
            scalar => quarter::<Plain, RGB>(Plain, src, by, out),
            simd => quarter::<_, RGB>(simd, src, by, out),
        );
    }
}

/// Transposes squares of pixels, of which the last ones overlap those before.
#[inline(always)]
fn quarter<G: GatherSimd, const C: usize>(gather: G, src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let width = src.width as usize;
    let height = src.height as usize;
    let (Some(tops), true) = (starts(height, GATHERED), width >= GATHERED) else {
        return define_quarter(src, by, out);
    };
    let mut rows = [0; GATHERED];
    let mut lines = [0; GATHERED];
    for top in tops {
        for left in starts(width, GATHERED).into_iter().flatten() {
            for (index, (row, line)) in rows.iter_mut().zip(&mut lines).enumerate() {
                let (y, out_y, out_x) = if by == Turn::Quarter {
                    (top + index, width - 1 - left - index, top)
                } else {
                    (top + GATHERED - 1 - index, left + index, height - GATHERED - top)
                };
                *row = y * src.row_bytes + left * C;
                *line = (out_y * height + out_x) * C;
            }
            gather.transpose::<C>(src.data, &rows, out, &lines);
        }
    }
}

/// The same for images with a side too short for a square, and for pixels of other sizes.
fn define_quarter(src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let size = src.channels;
    let width = src.width as usize;
    let height = src.height as usize;
    for (line, out) in out.chunks_exact_mut(height * size).enumerate() {
        for (place, out) in out.chunks_exact_mut(size).enumerate() {
            let (x, y) = if by == Turn::Quarter {
                (width - 1 - line, place)
            } else {
                (line, height - 1 - place)
            };
            out.copy_from_slice(&src.data[y * src.row_bytes + x * size..][..size]);
        }
    }
}
