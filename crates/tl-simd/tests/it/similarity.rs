//! Every level against the scalar one, and the scalar one against sums written out in another way.

use crate::noise;
use half::{bf16, f16};
use proptest::prelude::*;
use tl_simd::Level;
use tl_simd::similarity::{
    Element, Match, Matrix, Metric, Query, nearest, scores, squared_lengths,
};

/// Four blocks of the widest level and one number more, for floats and for bytes.
const LONGEST_FLOATS: usize = 4 * 16 + 1;
const LONGEST_BYTES: usize = 4 * 64 + 1;
const ELEMENTS: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::I8];
const METRICS: [Metric; 3] = [Metric::Dot, Metric::SquaredL2, Metric::Cosine];

/// A row of the numbers nearest to `values`; of bytes, one number is worth `scale`.
fn encode(element: Element, values: &[f32], scale: f32, zero: f32) -> Vec<u8> {
    match element {
        Element::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Element::F16 => values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
        Element::Bf16 => values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect(),
        Element::I8 if values.is_empty() => Vec::new(),
        Element::I8 => {
            #[expect(clippy::cast_possible_truncation, reason = "within a byte for drawn numbers")]
            let byte = |value: &f32| ((value / scale + zero).round() as i8).cast_unsigned();
            let bytes = values.iter().map(byte);
            let parameters = [scale, zero].into_iter().flat_map(f32::to_le_bytes);
            parameters.chain(bytes).collect()
        }
        _ => unreachable!("a new type of number needs a way to write it"),
    }
}

/// What a row's bytes stand for.
fn decode(element: Element, row: &[u8]) -> Vec<f32> {
    let pairs = |row: &[u8]| -> Vec<[u8; 2]> { row.as_chunks().0.to_vec() };
    match element {
        Element::F32 => row.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        Element::F16 => pairs(row).into_iter().map(|b| f16::from_le_bytes(b).to_f32()).collect(),
        Element::Bf16 => pairs(row).into_iter().map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
        Element::I8 if row.is_empty() => Vec::new(),
        Element::I8 => {
            let (parameters, bytes) = row.split_at(8);
            let [scale, zero] = [0, 4].map(|place| decode(Element::F32, &parameters[place..])[0]);
            bytes.iter().map(|&byte| scale * (f32::from(byte.cast_signed()) - zero)).collect()
        }
        _ => unreachable!("a new type of number needs a way to read it"),
    }
}

/// Rows of random numbers between -1 and 1 from byte `offset` on, each followed by `padding` bytes
/// of noise.
struct Drawn {
    element: Element,
    bytes: Vec<u8>,
    offset: usize,
    dim: usize,
    stride: usize,
    rows: usize,
}

impl Drawn {
    fn new(element: Element, dim: usize, rows: usize, offset: usize, padding: usize) -> Self {
        let seed = (dim * 31 + rows) as u64;
        let mut bytes = noise(offset, seed);
        for row in 0..rows {
            let zero = [0.0, 3.0, -0.5][row % 3];
            let values = numbers(dim, seed ^ (row as u64) << 32);
            let scale = 0.005 + row as f32 / 4096.0;
            bytes.extend(encode(element, &values, scale, zero));
            if row + 1 < rows {
                bytes.extend(noise(padding, seed));
            }
        }
        Self { element, bytes, offset, dim, stride: element.row_bytes(dim) + padding, rows }
    }

    fn matrix(&self) -> Matrix<'_> {
        let bytes = &self.bytes[self.offset..];
        Matrix::new(bytes, self.element, self.dim, self.stride, self.rows)
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[self.offset + row * self.stride..][..self.element.row_bytes(self.dim)]
    }
}

fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let bytes = noise(4 * len, seed);
    let words = bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes));
    words.map(|word| word as f32 / 2_147_483_648.0).collect()
}

fn all_scores(level: Level, metric: Metric, matrix: &Matrix<'_>, query: &Query) -> Vec<u32> {
    let mut out = vec![-7.0; matrix.rows()];
    scores(level, metric, matrix, query, &mut out);
    out.into_iter().map(f32::to_bits).collect()
}

/// The sum in the documented order, by a recursion over the places of partial sums.
fn sum(terms: &[f32]) -> f32 {
    fn partial(terms: &[f32], lane: usize, step: usize) -> f32 {
        if step == 16 {
            return terms.iter().skip(lane).step_by(16).fold(0.0, |sum, term| sum + term);
        }
        partial(terms, lane, 2 * step) + partial(terms, lane + step, 2 * step)
    }
    partial(terms, 0, 1)
}

#[test]
fn floats_are_added_up_in_the_documented_order() {
    for element in [Element::F32, Element::F16, Element::Bf16] {
        for dim in 0..=LONGEST_FLOATS {
            let drawn = Drawn::new(element, dim, 3, 0, 0);
            let query = numbers(dim, 99);
            for row in 0..3 {
                let values = decode(element, drawn.row(row));
                let pairs = || values.iter().zip(&query);
                let products = sum(&pairs().map(|(x, y)| x * y).collect::<Vec<f32>>());
                let differences: Vec<f32> = pairs().map(|(x, y)| (x - y) * (x - y)).collect();
                let squares = |values: &[f32]| {
                    f64::from(sum(&values.iter().map(|x| x * x).collect::<Vec<f32>>()))
                };
                let lengths = (squares(&values) * squares(&query)).sqrt();
                #[expect(clippy::cast_possible_truncation, reason = "rounded")]
                let cosine = (f64::from(products) / lengths) as f32;
                let cosine = if dim == 0 { 0.0 } else { cosine };
                let expected = [products, sum(&differences), cosine];
                for (metric, expected) in METRICS.into_iter().zip(expected) {
                    let matrix = drawn.matrix();
                    let found = all_scores(Level::Scalar, metric, &matrix, &Query::new(&query));
                    assert_eq!(found[row], expected.to_bits(), "{element:?} {metric:?} {dim}");
                }
            }
        }
    }
}

#[test]
fn every_level_gives_the_bits_of_the_scalar_one() {
    for element in ELEMENTS {
        let longest = if element == Element::I8 { LONGEST_BYTES } else { LONGEST_FLOATS };
        for (dim, offset) in (0..=longest).flat_map(|dim| (0..=8).map(move |o| (dim, o))) {
            let drawn = Drawn::new(element, dim, dim % 7 + 1, offset, dim % 5);
            let (matrix, query) = (drawn.matrix(), Query::new(&numbers(dim, 5)));
            for metric in METRICS {
                let expected = all_scores(Level::Scalar, metric, &matrix, &query);
                for level in Level::available() {
                    let found = all_scores(level, metric, &matrix, &query);
                    assert_eq!(found, expected, "{level} {element:?} {metric:?} {dim} {offset}");
                }
            }
        }
    }
}

/// All `f16` and `bf16`, among them subnormal and infinite ones and NaN, one in each row.
#[test]
fn levels_agree_about_every_half() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for element in [Element::F16, Element::Bf16] {
        let matrix = Matrix::new(&bytes, element, 1, 2, bytes.len() / 2);
        for (metric, value) in METRICS.into_iter().flat_map(|m| [1.0, 3.0e30].map(|v| (m, v))) {
            let query = Query::new(&[value]);
            let expected = all_scores(Level::Scalar, metric, &matrix, &query);
            for level in Level::available() {
                assert!(
                    all_scores(level, metric, &matrix, &query) == expected,
                    "{level} {metric:?}"
                );
            }
        }
    }
}

#[test]
fn scaled_bytes_are_added_up_exactly() {
    for dim in [0, 1, 15, 16, 63, 64, 65, 300, 384] {
        let drawn = Drawn::new(Element::I8, dim, 9, 0, 3);
        let matrix = drawn.matrix();
        for (query, other) in [(Query::from_row(&matrix, 4), decode(Element::I8, drawn.row(4)))]
            .into_iter()
            .chain([(Query::new(&vec![0.25; dim]), vec![0.25; dim])])
        {
            let mut out = [[0.0; 9]; 3];
            for (metric, out) in METRICS.into_iter().zip(&mut out) {
                scores(Level::detect(), metric, &matrix, &query, out);
            }
            for row in 0..9 {
                let values = decode(Element::I8, drawn.row(row));
                let pairs =
                    || values.iter().zip(&other).map(|(&x, &y)| (f64::from(x), f64::from(y)));
                let products: f64 = pairs().map(|(x, y)| x * y).sum();
                let distance: f64 = pairs().map(|(x, y)| (x - y) * (x - y)).sum();
                let lengths: [f64; 2] =
                    [pairs().map(|(x, _)| x * x).sum(), pairs().map(|(_, y)| y * y).sum()];
                let cosine =
                    if dim == 0 { 0.0 } else { products / (lengths[0] * lengths[1]).sqrt() };
                // The numbers themselves are rounded to `f32` here, the sums are not there.
                for (found, expected) in out.iter().zip([products, distance, cosine]) {
                    let bound = 1e-6 * (1.0 + lengths[0] + lengths[1]);
                    let error = (f64::from(found[row]) - expected).abs();
                    assert!(error < bound, "{dim} {row}: {} {expected}", found[row]);
                }
            }
        }
    }
}

/// From 131,072 numbers on the sums of -128 do not fit into 32 bits.
#[test]
fn sums_of_the_largest_bytes_do_not_overflow() {
    for dim in [65_535, 65_536, 65_537, 200_000] {
        let row = |byte: i8| {
            [&[0, 0, 128, 63, 0, 0, 0, 0][..], &vec![byte.cast_unsigned(); dim]].concat()
        };
        let bytes = [row(-128), row(127), row(-1)].concat();
        let matrix = Matrix::new(&bytes, Element::I8, dim, dim + 8, 3);
        let query = Query::from_row(&matrix, 0);
        for level in Level::available() {
            let mut out = [0.0; 3];
            scores(level, Metric::Dot, &matrix, &query, &mut out);
            let expected =
                [128 * 128, -128 * 127, 128].map(|product| (product * dim as i64) as f32);
            assert_eq!(out, expected, "{level} {dim}");
            scores(level, Metric::SquaredL2, &matrix, &query, &mut out);
            let expected = [0, 255 * 255, 127 * 127].map(|square| (square * dim as i64) as f32);
            assert_eq!(out, expected, "{level} {dim}");
            squared_lengths(level, &matrix, &mut out);
            let expected = [128 * 128, 127 * 127, 1].map(|square| (square * dim as i64) as f32);
            assert_eq!(out, expected, "{level} {dim}");
        }
    }
}

#[test]
fn queries_become_the_nearest_bytes() {
    // 127 is worth 2.54; 0.03 is one and a half steps, and halves go away from zero.
    let query = Query::new(&[2.54, -0.03, 0.0, 0.01, -2.54, 0.029]);
    let row = |place: usize| {
        let mut row = vec![0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        row[8 + place] = 1;
        row
    };
    let bytes: Vec<u8> = (0..6).flat_map(row).collect();
    let matrix = Matrix::new(&bytes, Element::I8, 6, 14, 6);
    for level in Level::available() {
        let mut out = [0.0; 6];
        scores(level, Metric::Dot, &matrix, &query, &mut out);
        let steps = out.map(|score| (score / 0.02).round());
        assert_eq!(steps, [127.0, -2.0, 0.0, 1.0, -127.0, 1.0], "{level}");
    }
}

#[test]
fn equal_vectors_have_the_cosine_1_and_the_distance_0() {
    for (element, dim) in ELEMENTS.into_iter().flat_map(|e| [1, 7, 100, 384].map(|dim| (e, dim))) {
        let drawn = Drawn::new(element, dim, 40, 1, 0);
        let matrix = drawn.matrix();
        for (level, row) in Level::available().flat_map(|level| (0..40).map(move |r| (level, r))) {
            let query = Query::from_row(&matrix, row);
            for (metric, expected) in [(Metric::Cosine, 1.0), (Metric::SquaredL2, 0.0)] {
                let found = f32::from_bits(all_scores(level, metric, &matrix, &query)[row]);
                assert_eq!(found, expected, "{level} {element:?} {dim} {row}");
            }
        }
    }
}

#[test]
fn rows_without_length_and_rows_that_are_no_numbers_have_their_scores() {
    let rows = [[0.0, 0.0], [-0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0], [1.0, -1.0]];
    let bytes: Vec<u8> = rows.as_flattened().iter().flat_map(|value| value.to_le_bytes()).collect();
    let matrix = Matrix::new(&bytes, Element::F32, 2, 8, 5);
    let query = Query::new(&[-2.0, -2.0]);
    let nan = f32::NAN;
    for level in Level::available() {
        let cosine = all_scores(level, Metric::Cosine, &matrix, &query);
        assert_eq!(cosine, [0.0, 0.0, nan, nan, 0.0].map(f32::to_bits), "{level}");
        let dot = all_scores(level, Metric::Dot, &matrix, &query);
        assert_eq!(dot, [0.0, 0.0, nan, f32::NEG_INFINITY, 0.0].map(f32::to_bits), "{level}");
        let rows = |metric, query: &Query| -> Vec<usize> {
            let found = nearest(level, metric, &matrix, query, 9);
            found.into_iter().map(|found| found.row).collect()
        };
        assert_eq!(rows(Metric::Cosine, &query), [0, 1, 4], "{level}");
        assert_eq!(rows(Metric::Dot, &query), [0, 1, 4, 3], "{level}");
        assert_eq!(rows(Metric::SquaredL2, &query), [0, 1, 4, 3], "{level}");
        assert_eq!(rows(Metric::Dot, &Query::new(&[nan, 0.0])), [], "{level}");
    }
}

#[test]
fn a_query_that_is_not_finite_finds_no_row_of_bytes() {
    let drawn = Drawn::new(Element::I8, 4, 6, 0, 0);
    for (level, value) in
        Level::available().flat_map(|l| [f32::NAN, f32::INFINITY].map(|value| (l, value)))
    {
        let query = Query::new(&[1.0, value, 0.0, 0.5]);
        for metric in METRICS {
            assert_eq!(nearest(level, metric, &drawn.matrix(), &query, 3), [], "{level}");
        }
    }
}

/// The `k` best by a stable sort of all scores.
fn sorted(
    level: Level,
    metric: Metric,
    matrix: &Matrix<'_>,
    query: &Query,
    k: usize,
) -> Vec<Match> {
    let scores = all_scores(level, metric, matrix, query).into_iter().map(f32::from_bits);
    let mut all: Vec<Match> = scores.enumerate().map(|(row, score)| Match { row, score }).collect();
    all.retain(|found| !found.score.is_nan());
    all.sort_by(|a, b| match metric {
        Metric::SquaredL2 => a.score.total_cmp(&b.score),
        Metric::Dot | Metric::Cosine | _ => b.score.total_cmp(&a.score),
    });
    all.truncate(k);
    all
}

/// Few values, so that most scores come several times.
#[test]
fn equally_near_rows_come_by_their_number() {
    let bytes: Vec<u8> = noise(600, 8)
        .into_iter()
        .flat_map(|byte| [f32::from(byte % 3), f32::from(byte / 3 % 2)])
        .flat_map(f32::to_le_bytes)
        .collect();
    let matrix = Matrix::new(&bytes, Element::F32, 2, 8, 600);
    let query = Query::new(&[1.0, 0.5]);
    for (level, metric) in Level::available().flat_map(|l| METRICS.map(|metric| (l, metric))) {
        for k in [0, 1, 2, 10, 299, 600, 601] {
            let expected = sorted(level, metric, &matrix, &query, k);
            assert_eq!(
                nearest(level, metric, &matrix, &query, k),
                expected,
                "{level} {metric:?} {k}"
            );
        }
    }
}

#[test]
fn known_lengths_change_no_bit() {
    for (element, level) in
        ELEMENTS.into_iter().flat_map(|e| Level::available().map(move |l| (e, l)))
    {
        let drawn = Drawn::new(element, 77, 21, 0, 4);
        let query = Query::new(&numbers(77, 3));
        let mut lengths = vec![0.0; 21];
        squared_lengths(level, &drawn.matrix(), &mut lengths);
        let expected = all_scores(level, Metric::Cosine, &drawn.matrix(), &query);
        let matrix = drawn.matrix().with_squared_lengths(&lengths);
        assert_eq!(all_scores(level, Metric::Cosine, &matrix, &query), expected, "{level}");
    }
}

#[test]
fn there_may_be_no_rows_and_no_numbers() {
    for (element, level) in
        ELEMENTS.into_iter().flat_map(|e| Level::available().map(move |l| (e, l)))
    {
        let none = Matrix::new(&[], element, 3, 64, 0);
        assert_eq!(nearest(level, Metric::Dot, &none, &Query::new(&[1.0; 3]), 4), []);
        let empty = Matrix::new(&[], element, 0, 0, 3);
        let found = nearest(level, Metric::Cosine, &empty, &Query::new(&[]), 2);
        assert_eq!(found, [0, 1].map(|row| Match { row, score: 0.0 }));
        assert_eq!(Query::from_row(&empty, 2).dim(), 0);
    }
}

proptest! {
    #[test]
    fn levels_find_the_same_rows(
        element in prop::sample::select(&ELEMENTS[..]),
        metric in prop::sample::select(&METRICS[..]),
        dim in 0_usize..600,
        rows in 1_usize..70,
        offset in 0_usize..64,
        padding in 0_usize..70,
        k in 0_usize..20,
        seed: u64,
    ) {
        let drawn = Drawn::new(element, dim, rows, offset, padding);
        let (matrix, query) = (drawn.matrix(), Query::new(&numbers(dim, seed)));
        let expected = sorted(Level::Scalar, metric, &matrix, &query, k);
        for level in Level::available() {
            prop_assert_eq!(&nearest(level, metric, &matrix, &query, k), &expected);
        }
    }
}
