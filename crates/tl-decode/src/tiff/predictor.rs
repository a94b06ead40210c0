//! Predictors 2 (TIFF 6.0 section 14) and 3 (Adobe Photoshop TIFF technical note 3).

use super::chunk::{ADOBE_DEFLATE, DEFLATE, LZMA, LZW, ZSTD};
use super::directory::Order;
use super::layout::Layout;
use crate::error::{DecodeError, Feature};

const HORIZONTAL: u16 = 2;
const FLOAT: u16 = 3;

/// Refuses predictors that are not known, where a codec has one.
pub(super) fn check(layout: &Layout<'_>) -> Result<(), DecodeError> {
    let known = match layout.predictor {
        0 | 1 => true,
        HORIZONTAL => matches!(layout.bits, 8 | 16 | 32),
        FLOAT => matches!(layout.bits, 16 | 32 | 64),
        _ => false,
    };
    if applies(layout) && !known {
        return Err(Feature::TiffPredictor(layout.predictor).into());
    }
    Ok(())
}

/// Only these codecs have a predictor; elsewhere libtiff ignores the tag.
fn applies(layout: &Layout<'_>) -> bool {
    matches!(layout.compression, LZW | DEFLATE | ADOBE_DEFLATE | LZMA | ZSTD)
}

/// Turns the differences in rows of `row_bytes` bytes back into samples.
pub(super) fn undo(layout: &Layout<'_>, row_bytes: usize, data: &mut [u8]) {
    if !applies(layout) {
        return;
    }
    let samples = usize::from(layout.chunk_samples());
    let order = layout.order;
    for row in data.chunks_exact_mut(row_bytes) {
        match (layout.predictor, layout.bits) {
            (HORIZONTAL, 8) => add_left(row, samples),
            (HORIZONTAL, 16) => add_left_words(row, samples, |sum, step| {
                let value = order.u16(sum).wrapping_add(order.u16(step));
                match order {
                    Order::Little => value.to_le_bytes(),
                    Order::Big => value.to_be_bytes(),
                }
            }),
            (HORIZONTAL, 32) => add_left_words(row, samples, |sum, step| {
                let value = order.u32(sum).wrapping_add(order.u32(step));
                match order {
                    Order::Little => value.to_le_bytes(),
                    Order::Big => value.to_be_bytes(),
                }
            }),
            (FLOAT, bits) => join_float_bytes(row, samples, bits / 8, order),
            _ => {}
        }
    }
}

fn add_left(row: &mut [u8], samples: usize) {
    for at in samples..row.len() {
        row[at] = row[at].wrapping_add(row[at - samples]);
    }
}

fn add_left_words<const N: usize>(
    row: &mut [u8],
    samples: usize,
    add: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (words, _) = row.as_chunks_mut::<N>();
    for at in samples..words.len() {
        words[at] = add(words[at - samples], words[at]);
    }
}

/// Undoes predictor 3 (Adobe Photoshop TIFF technical note 3): differences over the bytes of a
/// row, whose most significant bytes all come first.
fn join_float_bytes(row: &mut [u8], samples: usize, bytes: u16, order: Order) {
    let bytes = usize::from(bytes);
    add_left(row, samples);
    let planes = row.to_vec();
    let count = planes.len() / bytes;
    for (i, value) in row.chunks_exact_mut(bytes).enumerate() {
        for (significance, to) in value.iter_mut().enumerate() {
            // Most significant first, unless the file is little endian.
            let plane = match order {
                Order::Little => bytes - 1 - significance,
                Order::Big => significance,
            };
            *to = planes[plane * count + i];
        }
    }
}
