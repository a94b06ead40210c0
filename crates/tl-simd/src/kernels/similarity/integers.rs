//! Sums over rows of scaled bytes: exact, so that their order does not matter.

use super::Metric;
use super::matrix::Matrix;
use crate::Level;
use crate::kernels::streams::places;
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

/// Sums over a row's bytes.
#[derive(Clone, Copy, Debug, Default)]
struct RowSums {
    /// Of the products with the query's bytes.
    products: i64,
    sum: i64,
    squares: i64,
}

impl RowSums {
    #[inline(always)]
    fn add(&mut self, [products, sum, squares]: [i32; 3]) {
        self.products += i64::from(products);
        self.sum += i64::from(sum);
        self.squares += i64::from(squares);
    }
}

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
        let sums = define_sums(bytes, bytes);
        let mut padded = vec![0; bytes.len().next_multiple_of(PADDED)];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self { side: Side { scale, zero, sums }, dim: bytes.len(), bytes: padded }
    }

    /// The numbers that the bytes stand for.
    pub(super) fn decode(&self) -> impl Iterator<Item = f32> {
        let Side { scale, zero, .. } = self.side;
        let bytes = self.bytes[..self.dim].iter();
        bytes.map(move |byte| scale * (f32::from(byte.cast_signed()) - zero))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "rounded")]
    pub(super) fn squared_length(&self) -> f32 {
        self.side.square(self.dim as f64) as f32
    }
}

/// One of two vectors: what its numbers are made of.
#[derive(Clone, Copy, Debug)]
struct Side {
    scale: f32,
    zero: f32,
    sums: RowSums,
}

impl Side {
    /// The dot product with another vector, given that of the bytes.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "exact for every row below a terabyte")]
    fn product(&self, other: &Self, products: i64, dim: f64) -> f64 {
        let (zero, other_zero) = (f64::from(self.zero), f64::from(other.zero));
        let crossed = zero * other.sums.sum as f64 + other_zero * self.sums.sum as f64;
        let bytes = products as f64 - crossed + dim * (zero * other_zero);
        f64::from(self.scale) * f64::from(other.scale) * bytes
    }

    #[inline(always)]
    fn square(&self, dim: f64) -> f64 {
        self.product(self, self.sums.squares, dim)
    }
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
    mut sink: impl FnMut(usize, [f32; 2]),
) {
    let scores = Scores::new(metric, query, matrix.dim());
    dispatch!(
        level,
        scalar => {
            for row in 0..matrix.rows() {
                let (scale, zero, bytes) = parts(matrix.row(row));
                let sums = define_sums(bytes, &query.bytes);
                sink(row, scores.of(Side { scale, zero, sums }));
            }
        },
        simd => kernel(simd, matrix, &query.bytes, &scores, sink),
    );
}

/// What follows from the sums over a row.
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
    fn of(&self, row: Side) -> [f32; 2] {
        let product = row.product(&self.query, row.sums.products, self.dim);
        let square = row.square(self.dim);
        let sum = match self.metric {
            Metric::Dot | Metric::Cosine => product,
            Metric::SquaredL2 => {
                let distance = square - 2.0 * product + self.query_square;
                if distance < 0.0 { 0.0 } else { distance }
            }
        };
        [sum as f32, square as f32]
    }
}

fn define_sums(bytes: &[u8], query: &[u8]) -> RowSums {
    let mut sums = RowSums::default();
    for (bytes, query) in bytes.chunks(PART).zip(query.chunks(PART)) {
        let (mut products, mut sum, mut squares) = (0, 0, 0);
        for (byte, other) in bytes.iter().zip(query) {
            let (x, y) = (i32::from(byte.cast_signed()), i32::from(other.cast_signed()));
            products += x * y;
            sum += x;
            squares += x * x;
        }
        sums.add([products, sum, squares]);
    }
    sums
}

#[inline(always)]
fn kernel<S: ByteSimd>(
    simd: S,
    matrix: &Matrix<'_>,
    query: &[u8],
    scores: &Scores,
    mut sink: impl FnMut(usize, [f32; 2]),
) {
    for places in places(matrix.rows()) {
        for (place, row) in places.into_iter().zip(matrix.group(places)) {
            let (scale, zero, bytes) = parts(row);
            if place < matrix.rows() {
                let sums = add_up(simd, bytes, query);
                sink(place, scores.of(Side { scale, zero, sums }));
            }
        }
    }
}

#[inline(always)]
fn add_up<S: ByteSimd>(simd: S, bytes: &[u8], query: &[u8]) -> RowSums {
    let mut sums = RowSums::default();
    for (bytes, query) in bytes.chunks(PART).zip(query.chunks(PART)) {
        sums.add(add_up_part(simd, bytes, query));
    }
    sums
}

#[inline(always)]
fn add_up_part<S: ByteSimd>(simd: S, bytes: &[u8], query: &[u8]) -> [i32; 3] {
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
    simd.total_bytes(sums)
}
