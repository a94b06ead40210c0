//! Sums over rows of floats, in the order that the module above defines.

use super::Metric;
use super::matrix::Matrix;
use crate::Level;
use crate::kernels::mix::Half;
use crate::kernels::streams::{STREAMS, places};
use crate::vector::color::ColorSimd;
use crate::vector::{Simd, dispatch};

/// Partial sums of a row.
pub(super) const LANES: usize = 16;

/// As many numbers as there are partial sums.
pub(super) type Block = [f32; LANES];

/// A type of number, of which a block has `BYTES` bytes.
pub(super) trait Number<const BYTES: usize> {
    /// A number from its bytes.
    fn decode(bytes: &[u8]) -> f32;

    /// `S::FLOATS` numbers.
    fn load<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats;
}

pub(super) struct F32;
pub(super) struct F16;
pub(super) struct Bf16;

impl Number<64> for F32 {
    #[inline(always)]
    fn decode(bytes: &[u8]) -> f32 {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_f32(bytes)
    }
}

impl Number<32> for F16 {
    #[inline(always)]
    fn decode(bytes: &[u8]) -> f32 {
        Half::decode(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_f16(bytes)
    }
}

impl Number<32> for Bf16 {
    #[inline(always)]
    fn decode(bytes: &[u8]) -> f32 {
        f32::from_bits(u32::from_le_bytes([0, 0, bytes[0], bytes[1]]))
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, bytes: &[u8]) -> S::Floats {
        simd.load_bf16(bytes)
    }
}

/// The terms that are summed for a number `x` of a row and the number `y` of the query.
trait Terms {
    fn define(sums: [f32; 2], x: f32, y: f32) -> [f32; 2];

    /// The same for vectors.
    fn add<S: ColorSimd>(
        simd: S,
        sums: [S::Floats; 2],
        x: S::Floats,
        y: S::Floats,
    ) -> [S::Floats; 2];
}

struct Products;
struct ProductsAndSquares;
struct SquaredDifferences;

impl Terms for Products {
    #[inline(always)]
    fn define([sum, other]: [f32; 2], x: f32, y: f32) -> [f32; 2] {
        [sum + x * y, other]
    }

    #[inline(always)]
    fn add<S: ColorSimd>(
        simd: S,
        [sum, other]: [S::Floats; 2],
        x: S::Floats,
        y: S::Floats,
    ) -> [S::Floats; 2] {
        [simd.add_floats(sum, simd.mul_floats(x, y)), other]
    }
}

impl Terms for ProductsAndSquares {
    #[inline(always)]
    fn define([sum, square]: [f32; 2], x: f32, y: f32) -> [f32; 2] {
        [sum + x * y, square + x * x]
    }

    #[inline(always)]
    fn add<S: ColorSimd>(
        simd: S,
        [sum, square]: [S::Floats; 2],
        x: S::Floats,
        y: S::Floats,
    ) -> [S::Floats; 2] {
        let product = simd.mul_floats(x, y);
        [simd.add_floats(sum, product), simd.add_floats(square, simd.mul_floats(x, x))]
    }
}

impl Terms for SquaredDifferences {
    #[inline(always)]
    fn define([sum, other]: [f32; 2], x: f32, y: f32) -> [f32; 2] {
        let difference = x - y;
        [sum + difference * difference, other]
    }

    #[inline(always)]
    fn add<S: ColorSimd>(
        simd: S,
        [sum, other]: [S::Floats; 2],
        x: S::Floats,
        y: S::Floats,
    ) -> [S::Floats; 2] {
        let difference = simd.sub_floats(x, y);
        [simd.add_floats(sum, simd.mul_floats(difference, difference)), other]
    }
}

/// The sums that `metric` asks for, of every row in any order.
#[inline(always)]
pub(super) fn scan<N: Number<BYTES>, const BYTES: usize>(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &[Block],
    sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    match metric {
        Metric::Dot => scan_terms::<N, Products, BYTES>(level, matrix, query, sink),
        Metric::SquaredL2 => {
            scan_terms::<N, SquaredDifferences, BYTES>(level, matrix, query, sink);
        }
        Metric::Cosine => scan_terms::<N, ProductsAndSquares, BYTES>(level, matrix, query, sink),
    }
}

#[inline(always)]
fn scan_terms<N: Number<BYTES>, T: Terms, const BYTES: usize>(
    level: Level,
    matrix: &Matrix<'_>,
    query: &[Block],
    sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    dispatch!(
        level,
        scalar => define::<N, T, BYTES>(matrix, query, sink),
        simd => kernel::<_, N, T, BYTES>(simd, matrix, query, sink),
    );
}

fn define<N: Number<BYTES>, T: Terms, const BYTES: usize>(
    matrix: &Matrix<'_>,
    query: &[Block],
    mut sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    for places in places(matrix.rows()) {
        let mut totals = [[0.0; STREAMS]; 2];
        for (stream, row) in matrix.group(places).into_iter().enumerate() {
            let mut sums = [0.0; LANES];
            let mut others = [0.0; LANES];
            for (block, query) in row.chunks(BYTES).zip(query) {
                let sums = sums.iter_mut().zip(&mut others);
                let numbers = block.chunks_exact(BYTES / LANES).zip(query);
                for ((sum, other), (bytes, &y)) in sums.zip(numbers) {
                    [*sum, *other] = T::define([*sum, *other], N::decode(bytes), y);
                }
            }
            (totals[0][stream], totals[1][stream]) = (fold(sums), fold(others));
        }
        sink(places, totals);
    }
}

/// The sum of partial sums.
#[inline(always)]
fn fold(mut sums: Block) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        let (lower, upper) = sums.split_at_mut(half);
        for (lower, upper) in lower.iter_mut().zip(upper) {
            *lower += *upper;
        }
        half /= 2;
    }
    sums[0]
}

/// A row's partial sums in vectors; a level with wider ones has no use for the last.
type Sums<S> = [[<S as Simd>::Floats; 2]; 4];

#[inline(always)]
fn kernel<S: ColorSimd, N: Number<BYTES>, T: Terms, const BYTES: usize>(
    simd: S,
    matrix: &Matrix<'_>,
    query: &[Block],
    mut sink: impl FnMut([usize; STREAMS], [[f32; STREAMS]; 2]),
) {
    for places in places(matrix.rows()) {
        let sums = group::<_, N, T, BYTES>(simd, matrix.group(places), query);
        let mut totals = [[0.0; STREAMS]; 2];
        for (stream, sums) in sums.iter().enumerate() {
            totals[0][stream] = total(simd, sums, 0);
            totals[1][stream] = total(simd, sums, 1);
        }
        sink(places, totals);
    }
}

#[inline(always)]
fn group<S: ColorSimd, N: Number<BYTES>, T: Terms, const BYTES: usize>(
    simd: S,
    [a, b, c, d]: [&[u8]; STREAMS],
    query: &[Block],
) -> [Sums<S>; STREAMS] {
    let mut sums = [[[simd.splat_float(0.0); 2]; 4]; STREAMS];
    let [(a, a_rest), (b, b_rest), (c, c_rest), (d, d_rest)] =
        [a.as_chunks(), b.as_chunks(), c.as_chunks(), d.as_chunks()];
    let blocks = a.iter().zip(b).zip(c).zip(d);
    for ((((a, b), c), d), query) in blocks.zip(query) {
        add_block::<_, N, T, BYTES>(simd, &mut sums, [a, b, c, d], query);
    }
    if !a_rest.is_empty() {
        // Zeros after the end add nothing to any sum.
        let mut blocks = [[0; BYTES]; STREAMS];
        for (block, rest) in blocks.iter_mut().zip([a_rest, b_rest, c_rest, d_rest]) {
            block[..rest.len()].copy_from_slice(rest);
        }
        let [a, b, c, d] = &blocks;
        if let Some(query) = query.last() {
            add_block::<_, N, T, BYTES>(simd, &mut sums, [a, b, c, d], query);
        }
    }
    sums
}

#[inline(always)]
fn add_block<S: ColorSimd, N: Number<BYTES>, T: Terms, const BYTES: usize>(
    simd: S,
    sums: &mut [Sums<S>; STREAMS],
    blocks: [&[u8; BYTES]; STREAMS],
    query: &Block,
) {
    let bytes = BYTES / LANES * S::FLOATS;
    for part in 0..LANES / S::FLOATS {
        let y = simd.load_floats(&query[part * S::FLOATS..][..S::FLOATS]);
        for (sums, block) in sums.iter_mut().zip(blocks) {
            let x = N::load(simd, &block[part * bytes..][..bytes]);
            sums[part] = T::add(simd, sums[part], x, y);
        }
    }
}

#[inline(always)]
fn total<S: ColorSimd>(simd: S, sums: &Sums<S>, term: usize) -> f32 {
    let mut lanes = [0.0; LANES];
    for part in 0..LANES / S::FLOATS {
        simd.store_floats(sums[part][term], &mut lanes[part * S::FLOATS..][..S::FLOATS]);
    }
    fold(lanes)
}

/// The squared length of a vector in blocks.
pub(super) fn squared_length(blocks: &[Block]) -> f32 {
    let mut sums = [0.0; LANES];
    for block in blocks {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum += value * value;
        }
    }
    fold(sums)
}
