//! Upsampling of chroma rows: the triangle filter that decoders call fancy, and repetition.
//!
//! The rounding is that of libjpeg's `jdsample.c`, which alternates its bias so that no direction
//! is favoured. A row's ends are taken for the edges of the image.

use crate::Level;
use crate::kernels::interleave::starts;
use crate::vector::dispatch;
use crate::vector::jpeg::JpegSimd;

/// Doubles a row: three quarters of a sample and a quarter of its neighbour.
///
/// # Panics
///
/// If `out` is not twice as long as `row`.
pub fn upsample_h2v1(level: Level, row: &[u8], out: &mut [u8]) {
    assert_eq!(row.len() * 2, out.len(), "two output samples per sample");
    dispatch!(level, scalar => define_h2v1(row, out), simd => h2v1(simd, row, out));
}

/// Doubles a row that is between two: three quarters of `near` and a quarter of `far`, and the same
/// from column to column.
///
/// # Panics
///
/// When the rows differ in length or `out` is not twice as long.
pub fn upsample_h2v2(level: Level, near: &[u8], far: &[u8], out: &mut [u8]) {
    assert_eq!(near.len(), far.len(), "rows of one length");
    assert_eq!(near.len() * 2, out.len(), "two output samples per sample");
    dispatch!(
        level,
        scalar => define_h2v2(near, far, out),
        simd => h2v2(simd, near, far, out),
    );
}

/// A row between two: three quarters of `near` and a quarter of `far`.
///
/// Each row becomes two, and the lower one is rounded in the opposite direction.
///
/// # Panics
///
/// When the lengths differ.
pub fn upsample_h1v2(level: Level, near: &[u8], far: &[u8], lower: bool, out: &mut [u8]) {
    assert_eq!(near.len(), far.len(), "rows of one length");
    assert_eq!(near.len(), out.len(), "one output sample per sample");
    let bias = if lower { 2 } else { 1 };
    dispatch!(
        level,
        scalar => define_h1v2(near, far, bias, out),
        simd => h1v2(simd, near, far, bias, out),
    );
}

/// Repeats every sample `factor` times.
///
/// # Panics
///
/// If `out` is not `factor` times as long as `row`, or `factor` is zero.
pub fn replicate(level: Level, row: &[u8], factor: usize, out: &mut [u8]) {
    assert!(factor > 0, "every sample is in the output");
    assert_eq!(row.len() * factor, out.len(), "{factor} output samples per sample");
    match factor {
        1 => out.copy_from_slice(row),
        2 => dispatch!(
            level,
            scalar => define_replicate(row, 2, out),
            simd => double(simd, row, out),
        ),
        3 => repeat::<3>(row, out),
        4 => repeat::<4>(row, out),
        _ => define_replicate(row, factor, out),
    }
}

/// The ends by the definition, whose neighbours on the inside get overwritten.
#[inline(always)]
fn h2v1<S: JpegSimd>(simd: S, row: &[u8], out: &mut [u8]) {
    let len = row.len();
    let Some(starts) = starts(len.saturating_sub(2), S::WORDS) else {
        return define_h2v1(row, out);
    };
    define_h2v1(&row[..2], &mut out[..4]);
    define_h2v1(&row[len - 2..], &mut out[2 * len - 4..]);
    let one = simd.splat_word(1);
    let two = simd.splat_word(2);
    for start in starts {
        let before = words_at(simd, row, start);
        let value = words_at(simd, row, start + 1);
        let after = words_at(simd, row, start + 2);
        let three = triple(simd, value);
        let left = simd.shift_right::<2>(simd.add(simd.add(three, before), one));
        let right = simd.shift_right::<2>(simd.add(simd.add(three, after), two));
        simd.store_pairs(left, right, &mut out[2 * (start + 1)..][..2 * S::WORDS]);
    }
}

/// As [`h2v1`].
#[inline(always)]
fn h2v2<S: JpegSimd>(simd: S, near: &[u8], far: &[u8], out: &mut [u8]) {
    let len = near.len();
    let Some(starts) = starts(len.saturating_sub(2), S::WORDS) else {
        return define_h2v2(near, far, out);
    };
    define_h2v2(&near[..2], &far[..2], &mut out[..4]);
    define_h2v2(&near[len - 2..], &far[len - 2..], &mut out[2 * len - 4..]);
    let seven = simd.splat_word(7);
    let eight = simd.splat_word(8);
    for start in starts {
        let before = columns_at(simd, near, far, start);
        let column = columns_at(simd, near, far, start + 1);
        let after = columns_at(simd, near, far, start + 2);
        let three = triple(simd, column);
        let left = simd.shift_right::<4>(simd.add(simd.add(three, before), eight));
        let right = simd.shift_right::<4>(simd.add(simd.add(three, after), seven));
        simd.store_pairs(left, right, &mut out[2 * (start + 1)..][..2 * S::WORDS]);
    }
}

#[inline(always)]
fn h1v2<S: JpegSimd>(simd: S, near: &[u8], far: &[u8], bias: i16, out: &mut [u8]) {
    let Some(starts) = starts(near.len(), S::WORDS) else {
        return define_h1v2(near, far, bias, out);
    };
    let bias = simd.splat_word(bias);
    for start in starts {
        let sum = simd.add(columns_at(simd, near, far, start), bias);
        simd.store_words(simd.shift_right::<2>(sum), &mut out[start..][..S::WORDS]);
    }
}

#[inline(always)]
fn double<S: JpegSimd>(simd: S, row: &[u8], out: &mut [u8]) {
    let Some(starts) = starts(row.len(), S::WORDS) else {
        return define_replicate(row, 2, out);
    };
    for start in starts {
        let words = words_at(simd, row, start);
        simd.store_pairs(words, words, &mut out[2 * start..][..2 * S::WORDS]);
    }
}

#[inline(always)]
fn words_at<S: JpegSimd>(simd: S, row: &[u8], start: usize) -> S::Words {
    simd.load_words(&row[start..][..S::WORDS])
}

/// Three times the samples of one row and once those of the other.
#[inline(always)]
fn columns_at<S: JpegSimd>(simd: S, near: &[u8], far: &[u8], start: usize) -> S::Words {
    simd.add(triple(simd, words_at(simd, near, start)), words_at(simd, far, start))
}

#[inline(always)]
fn triple<S: JpegSimd>(simd: S, words: S::Words) -> S::Words {
    simd.add(simd.add(words, words), words)
}

/// Every value with its neighbours; the ends are their own.
fn neighbours<T: Copy>(values: &[T]) -> impl Iterator<Item = [T; 3]> {
    values.iter().enumerate().map(|(i, &value)| {
        let before = values[i.saturating_sub(1)];
        let after = values[(i + 1).min(values.len() - 1)];
        [before, value, after]
    })
}

fn define_h2v1(row: &[u8], out: &mut [u8]) {
    for ([before, value, after], out) in neighbours(row).zip(out.as_chunks_mut::<2>().0) {
        let three = 3 * u16::from(value);
        *out = [(three + u16::from(before) + 1) >> 2, (three + u16::from(after) + 2) >> 2]
            .map(low_byte);
    }
}

fn define_h2v2(near: &[u8], far: &[u8], out: &mut [u8]) {
    let column = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
    for (i, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let three = 3 * column(i);
        let before = column(i.saturating_sub(1));
        let after = column((i + 1).min(near.len() - 1));
        *out = [(three + before + 8) >> 4, (three + after + 7) >> 4].map(low_byte);
    }
}

fn define_h1v2(near: &[u8], far: &[u8], bias: i16, out: &mut [u8]) {
    let bias = bias.cast_unsigned();
    for ((&near, &far), out) in near.iter().zip(far).zip(out) {
        *out = low_byte((3 * u16::from(near) + u16::from(far) + bias) >> 2);
    }
}

fn define_replicate(row: &[u8], factor: usize, out: &mut [u8]) {
    for (&sample, out) in row.iter().zip(out.chunks_exact_mut(factor)) {
        out.fill(sample);
    }
}

/// As the definition, of a factor that the compiler knows.
fn repeat<const FACTOR: usize>(row: &[u8], out: &mut [u8]) {
    for (&sample, out) in row.iter().zip(out.as_chunks_mut::<FACTOR>().0) {
        *out = [sample; FACTOR];
    }
}

/// A weighted mean of samples, which is one itself.
fn low_byte(mean: u16) -> u8 {
    mean.to_le_bytes()[0]
}
