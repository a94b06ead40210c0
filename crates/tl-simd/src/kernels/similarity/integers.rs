//! Sums over rows of scaled bytes: exact, so that their order does not matter.

use super::Metric;
use super::matrix::Matrix;
use crate::Level;
use crate::kernels::streams::{STREAMS, places};
use crate::vector::bytes::ByteSimd;
use crate::vector::dispatch;

/// A vector of scaled bytes.
#[derive(Clone, Debug)]
pub(super) struct Quantized {
    side: Side,
    dim: usize,
    /// Zeros follow up to a multiple of [`PADDED`].
    bytes: Vec<u8>,
}

/// As many bytes as the widest level takes at once.
const PADDED: usize = 64;

/// Bytes whose sums do not leave 32 bits: their products are 2^14 at most.
const PART: usize = 65_536;

impl Quantized {
    /// The nearest bytes, of at most 127 in magnitude; no scale when a value is not finite.
    pub(super) fn nearest(values: &[f32]) -> Self {
        const MOST: f32 = 127.0;
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { largest / MOST } else { 1.0 };
        let finite = values.iter().all(|value| value.is_finite());
        let byte = |value: &f32| {
            let nearest = (value / scale).round().clamp(-MOST, MOST);
            #[expect(clippy::cast_possible_truncation, reason = "held within 127")]
            let byte = nearest as i8;
            byte.cast_unsigned()
        };
        let bytes: Vec<u8> = values.iter().map(byte).collect();
        Self::new(if finite { scale } else { f32::NAN }, 0.0, &bytes)
    }

    /// A row of a matrix.
    pub(super) fn from_row(row: &[u8]) -> Self {
        let (scale, zero, bytes) = parts(row);
        Self::new(scale, zero, bytes)
    }

    fn new(scale: f32, zero: f32, bytes: &[u8]) -> Self {
        let [_, sum, squares] = define_sums(bytes, bytes);
        let mut padded = vec![0; bytes.len().next_multiple_of(PADDED)];
        padded[..bytes.len()].copy_from_slice(bytes);
        let side = Side { scale: scale.into(), zero: zero.into(), sum, squares };
        Self { side, dim: bytes.len(), bytes: padded }
    }

    /// The numbers that the bytes stand for.
    #[expect(clippy::cast_possible_truncation, reason = "they were `f32`")]
    pub(super) fn decode(&self) -> impl Iterator<Item = f32> {
        let scale = self.side.scale as f32;
        let zero = self.side.zero as f32;
        let bytes = self.bytes[..self.dim].iter();
        bytes.map(move |byte| scale * (f32::from(byte.cast_signed()) - zero))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounded")]
    pub(super) fn squared_length(&self) -> f32 {
        self.side.square(self.dim as f64) as f32
    }
}

/// One of two vectors: the scale and zero point of its numbers, and exact sums over its bytes.
#[derive(Clone, Copy, Debug)]
struct Side {
    scale: f64,
    zero: f64,
    sum: f64,
    squares: f64,
}

impl Side {
    /// The dot product with another vector, given that of the bytes.
    #[inline(always)]
    fn product(&self, other: &Self, products: f64, dim: f64) -> f64 {
        let crossed = self.zero * other.sum + other.zero * self.sum;
        let bytes = products - crossed + dim * (self.zero * other.zero);
        self.scale * other.scale * bytes
    }

    #[inline(always)]
    fn square(&self, dim: f64) -> f64 {
        self.product(self, self.squares, dim)
    }
}

/// The same of several rows, with the sums of the products with the query's bytes.
#[derive(Default)]
struct Sides {
    scales: [f32; STREAMS],
    zeros: [f32; STREAMS],
    products: [f64; STREAMS],
    sums: [f64; STREAMS],
    squares: [f64; STREAMS],
}

/// The scale, the zero point and the bytes of a row. A row of no numbers has no parameters either.
#[inline(always)]
fn parts(row: &[u8]) -> (f32, f32, &[u8]) {
    match row.split_first_chunk() {
        Some((&[a, b, c, d, e, f, g, h], bytes)) => {
            (f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]), bytes)
        }
        None => (1.0, 0.0, &[]),
    }
}

/// The sums that `metric` asks for, of every row in any order.
#[inline(always)]
pub(super) fn scan(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &Quantized,
    mut sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    let scores = Scores::new(metric, query, matrix.dim());
    dispatch!(
        level,
        scalar => {
            for places in places(matrix.rows()) {
                let mut sides = Sides::default();
                for (stream, row) in matrix.group(places).into_iter().enumerate() {
                    let (scale, zero, bytes) = parts(row);
                    (sides.scales[stream], sides.zeros[stream]) = (scale, zero);
                    [sides.products[stream], sides.sums[stream], sides.squares[stream]] =
                        define_sums(bytes, &query.bytes);
                }
                sink(places, scores.of(&sides));
            }
        },
        simd => kernel(simd, matrix, &query.bytes, &scores, sink),
    );
}

/// The scores that follow from the sums over a row.
struct Scores {
    metric: Metric,
    query: Side,
    query_square: f64,
    dim: f64,
}

impl Scores {
    #[expect(clippy::cast_precision_loss, reason = "no row has 2^53 numbers")]
    fn new(metric: Metric, query: &Quantized, dim: usize) -> Self {
        let dim = dim as f64;
        Self { metric, query: query.side, query_square: query.side.square(dim), dim }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rounded to nearest")]
    fn of(&self, rows: &Sides) -> [[f32; STREAMS]; 2] {
        let mut sums = [[0.0; STREAMS]; 2];
        let [firsts, seconds] = &mut sums;
        for (stream, (first, second)) in firsts.iter_mut().zip(seconds).enumerate() {
            let row = Side {
                scale: rows.scales[stream].into(),
                zero: rows.zeros[stream].into(),
                sum: rows.sums[stream],
                squares: rows.squares[stream],
            };
            let product = row.product(&self.query, rows.products[stream], self.dim);
            let square = row.square(self.dim);
            let distance = square - 2.0 * product + self.query_square;
            let distance = if distance < 0.0 { 0.0 } else { distance };
            let sum = if self.metric == Metric::SquaredL2 { distance } else { product };
            (*first, *second) = (sum as f32, square as f32);
        }
        sums
    }
}

/// The sums of the products, of the bytes and of their squares.
fn define_sums(bytes: &[u8], query: &[u8]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for (bytes, query) in bytes.chunks(PART).zip(query.chunks(PART)) {
        let mut products = 0;
        let mut sum = 0;
        let mut squares = 0;
        for (byte, other) in bytes.iter().zip(query) {
            let x = i32::from(byte.cast_signed());
            let y = i32::from(other.cast_signed());
            products += x * y;
            sum += x;
            squares += x * x;
        }
        for (sum, part) in sums.iter_mut().zip([products, sum, squares]) {
            *sum += f64::from(part);
        }
    }
    sums
}

#[inline(always)]
fn kernel<S: ByteSimd>(
    simd: S,
    matrix: &Matrix<'_>,
    query: &[u8],
    scores: &Scores,
    mut sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    for places in places(matrix.rows()) {
        let mut sides = Sides::default();
        let mut rows: [&[u8]; STREAMS] = [&[]; STREAMS];
        for (stream, row) in matrix.group(places).into_iter().enumerate() {
            (sides.scales[stream], sides.zeros[stream], rows[stream]) = parts(row);
        }
        for (part, query) in query.chunks(PART).enumerate() {
            let mut sums = [simd.byte_sums(); STREAMS];
            for (sums, row) in sums.iter_mut().zip(rows) {
                let end = row.len().min((part + 1) * PART);
                *sums = add_up(simd, &row[part * PART..end], query);
            }
            let [products, bytes, squares] = simd.total_bytes(sums);
            for stream in 0..STREAMS {
                sides.products[stream] += f64::from(products[stream]);
                sides.sums[stream] += f64::from(bytes[stream]);
                sides.squares[stream] += f64::from(squares[stream]);
            }
        }
        sink(places, scores.of(&sides));
    }
}

#[inline(always)]
fn add_up<S: ByteSimd>(simd: S, bytes: &[u8], query: &[u8]) -> S::ByteSums {
    let mut sums = simd.byte_sums();
    let blocks = bytes.chunks_exact(S::PIXELS);
    let rest = blocks.remainder();
    let mut others = query.chunks_exact(S::PIXELS);
    for (block, other) in blocks.zip(&mut others) {
        sums = simd.add_bytes(sums, block, other);
    }
    if let (false, Some(other)) = (rest.is_empty(), others.next()) {
        let mut block = [0; PADDED];
        block[..rest.len()].copy_from_slice(rest);
        sums = simd.add_bytes(sums, &block[..S::PIXELS], other);
    }
    sums
}
