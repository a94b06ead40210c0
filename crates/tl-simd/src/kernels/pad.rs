//! Images with a border around them: torchvision's `Pad` on Pillow images and on tensors, which
//! are the same bytes. All exact.
//!
//! A border wider than the image continues as with `numpy.pad`, mirrored again and again, where
//! torch refuses it.

use super::interleave::flip_row;
use super::resample::ImageView;
use crate::Level;
use core::mem::swap;
use core::ops::Range;

/// How many pixels are added on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Margins {
    /// Columns on the left.
    pub left: u32,
    /// Rows above.
    pub top: u32,
    /// Columns on the right.
    pub right: u32,
    /// Rows below.
    pub bottom: u32,
}

/// The pixels that are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Border {
    /// This value in each channel; channels beyond the fourth do not exist.
    Constant([u8; 4]),
    /// The outermost pixel repeated.
    Edge,
    /// The image mirrored at the middle of its outermost pixels: `cb|abcd|cb`.
    Reflect,
    /// The image mirrored at its edges: `ba|abcd|dc`.
    Symmetric,
}

impl Border {
    /// The line of `len` that stands at `place` outside them, or none where it is a constant.
    fn source(self, place: i64, len: i64) -> Option<usize> {
        let turning = |period: i64, turn: i64| {
            let place = place.rem_euclid(period);
            if place < len { place } else { turn - place }
        };
        let line = match self {
            Self::Constant(_) => return None,
            Self::Edge => place.clamp(0, len - 1),
            Self::Reflect if len == 1 => 0,
            Self::Reflect => turning(2 * (len - 1), 2 * (len - 1)),
            Self::Symmetric => turning(2 * len, 2 * len - 1),
        };
        usize::try_from(line).ok()
    }
}

/// The sides that change places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flips {
    /// Left and right.
    pub horizontal: bool,
    /// Top and bottom.
    pub vertical: bool,
}

/// Writes `src` with `value` in every pixel around it to `out`, all of it flipped.
///
/// # Panics
///
/// As [`pad`], and when `value` is not a pixel of `src`.
pub fn frame(
    level: Level,
    src: ImageView<'_>,
    mut margins: Margins,
    value: &[u8],
    flips: Flips,
    out: &mut [u8],
) {
    assert_eq!(value.len(), src.channels(), "samples of a pixel");
    let (out_width, _) = checked_size(src, margins, out.len());
    if flips.horizontal {
        swap(&mut margins.left, &mut margins.right);
    }
    if flips.vertical {
        swap(&mut margins.top, &mut margins.bottom);
    }
    let first = margins.top as usize * out_width + margins.left as usize;
    // The right end of a row and the left end of the next one lie side by side.
    let gap = (margins.left as usize + margins.right as usize) * value.len();
    let (border, mut rest) = out.split_at_mut(first * value.len());
    repeat(border, value);
    let mut border: &[u8] = border;
    let last = src.size().1 - 1;
    for y in 0..=last {
        let row = src.row(if flips.vertical { last - y } else { y });
        let (inner, after) = rest.split_at_mut(row.len());
        if flips.horizontal {
            flip_row(level, row, value.len(), inner);
        } else {
            inner.copy_from_slice(row);
        }
        let gap = if y == last { after.len() } else { gap };
        let (gap, after) = after.split_at_mut(gap);
        if let Some(same) = border.get(..gap.len()) {
            gap.copy_from_slice(same);
        } else {
            repeat(gap, value);
            border = gap;
        }
        rest = after;
    }
}

/// Writes `src` with a border around it to `out`.
///
/// # Panics
///
/// When `src` is empty, when the result has a side of more than 2^32 - 1 pixels, or when `out` is
/// not exactly as long as the result.
pub fn pad(level: Level, src: ImageView<'_>, margins: Margins, border: Border, out: &mut [u8]) {
    let channels = src.channels();
    if let Border::Constant(value) = border {
        return frame(level, src, margins, &value[..channels], Flips::default(), out);
    }
    let (out_width, out_height) = checked_size(src, margins, out.len());
    let (width, height) = src.size();
    let Margins { left, top, right, .. } = margins;
    let stride = out_width * channels;
    let first = left as usize * channels;
    let inner = width as usize * channels;
    for y in 0..height {
        let row = &mut out[(top as usize + y as usize) * stride..][..stride];
        row[first..][..inner].copy_from_slice(src.row(y));
        extend(level, row, channels, left as usize..out_width - right as usize, border);
    }
    let top = top as usize;
    let height = height as usize;
    for y in (0..top).chain(top + height..out_height) {
        if let Some(source) = border.source(signed(y) - signed(top), signed(height)) {
            let from = (top + source) * stride;
            out.copy_within(from..from + stride, y * stride);
        }
    }
}

/// The size of `src` with `margins`, for which `out` has the bytes.
fn checked_size(src: ImageView<'_>, margins: Margins, out: usize) -> (usize, usize) {
    let (width, height) = src.size();
    assert!(width > 0 && height > 0, "an image of {width}x{height} pixels is empty");
    let Margins { left, top, right, bottom } = margins;
    let side = |before: u32, len: u32, after: u32| {
        let sum = before.checked_add(len).and_then(|sum| sum.checked_add(after));
        sum.expect("a side fits 32 bits") as usize
    };
    let out_width = side(left, width, right);
    let out_height = side(top, height, bottom);
    let stride = out_width.checked_mul(src.channels());
    let need = stride.and_then(|stride| stride.checked_mul(out_height));
    assert_eq!(Some(out), need, "bytes of a {out_width}x{out_height} image");
    (out_width, out_height)
}

/// Places are below 2^32.
fn signed(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// The most pixels that [`repeat`] copies at once: they are at hand.
const REPEATED: usize = 1024;

/// Fills whole pixels with `value`, in steps that double.
fn repeat(pixels: &mut [u8], value: &[u8]) {
    if value.iter().all(|sample| *sample == value[0]) {
        pixels.fill(value[0]);
        return;
    }
    let mut done = value.len().min(pixels.len());
    pixels[..done].copy_from_slice(&value[..done]);
    while done < pixels.len() {
        let more = done.min(REPEATED * value.len()).min(pixels.len() - done);
        pixels.copy_within(..more, done);
        done += more;
    }
}

/// Continues the pixels `inner` of a row to both ends of it.
fn extend(level: Level, row: &mut [u8], channels: usize, inner: Range<usize>, border: Border) {
    let Range { start: first, end } = inner.start * channels..inner.end * channels;
    // Bytes next to the edge that are not repeated.
    let skipped = match border {
        Border::Constant(_) => return,
        Border::Symmetric => 0,
        Border::Reflect if inner.len() > 1 => channels,
        Border::Reflect | Border::Edge => {
            let (before, rest) = row.split_at_mut(first);
            repeat(before, &rest[..channels]);
            let (rest, after) = row.split_at_mut(end);
            repeat(after, &rest[rest.len() - channels..]);
            return;
        }
    };
    let mirrored = end - first - skipped;
    let period = 2 * mirrored;
    let (rest, after) = row.split_at_mut(end);
    let mut done = mirrored.min(after.len());
    flip_row(level, &rest[end - skipped - done..end - skipped], channels, &mut after[..done]);
    while end + done < row.len() {
        let more = period.min(row.len() - end - done);
        row.copy_within(end + done - period..end + done - period + more, end + done);
        done += more;
    }
    let (before, rest) = row.split_at_mut(first);
    let mut left = first - mirrored.min(first);
    flip_row(level, &rest[skipped..skipped + first - left], channels, &mut before[left..]);
    while left > 0 {
        let more = period.min(left);
        row.copy_within(left + period - more..left + period, left - more);
        left -= more;
    }
}
