//! Turning by multiples of 90 degrees, which only moves pixels.

use crate::Level;
use crate::kernels::interleave::flip_row;
use crate::kernels::resample::ImageView;
use crate::vector::gather::{GATHERED, GatherSimd, Plain};
use crate::vector::{RGB, dispatch};

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
    assert!(matches!(channels, 1 | RGB), "{channels} channels; 1 or 3 are turned");
    let need = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels));
    assert_eq!(need, Some(out.len()), "the output is as large as the source");
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
        dispatch!(
            level,
            scalar => quarter::<Plain, 1>(Plain, src, by, out),
            simd => quarter::<_, 1>(simd, src, by, out),
        );
    } else {
        dispatch!(
            level,
            scalar => quarter::<Plain, RGB>(Plain, src, by, out),
            simd => quarter::<_, RGB>(simd, src, by, out),
        );
    }
}

/// Bytes of a row of a tile, with those that a load of the last pixel's word takes too.
const TILE_BYTES: usize = GATHERED * RGB + 1;

/// Makes tiles of pixels as words, whose rows are columns of the source, and packs them.
#[inline(always)]
fn quarter<G: GatherSimd, const C: usize>(gather: G, src: ImageView<'_>, by: Turn, out: &mut [u8]) {
    let (width, height) = (src.width as usize, src.height as usize);
    let mut tile = [[0; GATHERED]; GATHERED];
    for top in (0..height).step_by(GATHERED) {
        let rows = GATHERED.min(height - top);
        for left in (0..width).step_by(GATHERED) {
            for row in 0..rows {
                let bytes = &src.data[(top + row) * src.row_bytes + left * C..];
                let mut end = [0; TILE_BYTES];
                let bytes = bytes.first_chunk().unwrap_or_else(
                    #[cold]
                    || {
                        end[..bytes.len()].copy_from_slice(bytes);
                        &end
                    },
                );
                let place = if by == Turn::Quarter { row } else { rows - 1 - row };
                for (column, tile) in tile.iter_mut().enumerate() {
                    let word = [0, 1, 2, 3].map(
                        #[inline(always)]
                        |byte| bytes[column * C + byte],
                    );
                    tile[place] = u32::from_le_bytes(word);
                }
            }
            for (words, column) in tile.iter().zip(left..width) {
                let (line, first) = if by == Turn::Quarter {
                    (width - 1 - column, top)
                } else {
                    (column, height - top - rows)
                };
                put::<G, C>(gather, words, &mut out[(line * height + first) * C..][..rows * C]);
            }
        }
    }
}

/// The first pixels of a row of a tile, as many as `out` has.
#[inline(always)]
fn put<G: GatherSimd, const C: usize>(gather: G, words: &[u32; GATHERED], out: &mut [u8]) {
    if C == 1 {
        for (word, out) in words.iter().zip(out) {
            *out = word.to_le_bytes()[0];
        }
    } else if let Ok(out) = <&mut [u8; GATHERED * RGB]>::try_from(&mut *out) {
        gather.pack(words, out);
    } else {
        let mut bytes = [0; GATHERED * RGB];
        gather.pack(words, &mut bytes);
        out.copy_from_slice(&bytes[..out.len()]);
    }
}
