//! Every level of the VP8 kernels against the scalar one.

use crate::{noise, split_mix};
use tl_simd::Level;
use tl_simd::vp8::{
    Above, BlockPrediction, Chroma, Filter, FilterKind, Luma, Macroblock, PlanesMut, Prediction,
    Residue, Residues, filter, reconstruct, upsample_rgb, walsh_hadamard,
};

const MODES: [Prediction; 4] =
    [Prediction::Dc, Prediction::Vertical, Prediction::Horizontal, Prediction::TrueMotion];

const BLOCK_MODES: [BlockPrediction; 10] = [
    BlockPrediction::Dc,
    BlockPrediction::TrueMotion,
    BlockPrediction::Vertical,
    BlockPrediction::Horizontal,
    BlockPrediction::LeftDown,
    BlockPrediction::RightDown,
    BlockPrediction::VerticalRight,
    BlockPrediction::VerticalLeft,
    BlockPrediction::HorizontalDown,
    BlockPrediction::HorizontalUp,
];

/// Numbers that follow from a seed.
struct Draw {
    seed: u64,
    counter: u64,
}

impl Draw {
    const fn new(seed: u64) -> Self {
        Self { seed, counter: 0 }
    }

    fn word(&mut self) -> u64 {
        self.counter += 1;
        split_mix(self.seed, self.counter)
    }

    fn below(&mut self, end: u8) -> u8 {
        (self.word() % u64::from(end)).to_le_bytes()[0]
    }

    fn index(&mut self, len: usize) -> usize {
        let [low, high, ..] = self.word().to_le_bytes();
        usize::from(u16::from_le_bytes([low, high])) % len
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// A number of this many bits, with its sign.
    fn signed(&mut self, bits: u32) -> i16 {
        let [low, high, ..] = self.word().to_le_bytes();
        i16::from_le_bytes([low, high]) >> (16 - bits)
    }

    fn macroblock(&mut self, bits: u32) -> Macroblock {
        let mut macroblock = Macroblock { chroma: self.one_of(&MODES), ..Macroblock::ZERO };
        macroblock.luma = if self.below(2) == 0 {
            Luma::Whole(self.one_of(&MODES))
        } else {
            Luma::Blocks(std::array::from_fn(|_| self.one_of(&BLOCK_MODES)))
        };
        let most = if self.below(3) == 0 { 1 } else { 4 };
        let (blocks, _) = macroblock.coefficients.as_chunks_mut::<16>();
        for (block, coefficients) in blocks.iter_mut().enumerate() {
            let (residue, places) = match self.below(most) {
                0 => (Residue::None, &[][..]),
                1 => (Residue::Dc, &[0][..]),
                2 => (Residue::Few, &[0, 1, 4][..]),
                _ => (Residue::Full, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15][..]),
            };
            macroblock.residues.add(block, residue);
            for &place in places {
                coefficients[place] = self.signed(bits);
            }
        }
        macroblock
    }

    fn filter(&mut self) -> Filter {
        if self.below(8) == 0 {
            return Filter::default();
        }
        let interior = 1 + self.below(63);
        let limit = 2 * (1 + self.below(63)) + interior;
        Filter { limit, interior, high_variance: self.below(3), inner: self.below(4) > 0 }
    }
}

/// Three planes of macroblocks.
#[derive(Clone, Debug, PartialEq)]
struct Planes {
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
    stride: usize,
}

impl Planes {
    /// `gap` macroblocks are left free at the end of every row.
    fn new(columns: usize, gap: usize, rows: usize) -> Self {
        let stride = columns + gap;
        let len = 64 * stride * rows;
        Self { y: vec![9; 4 * len], u: vec![9; len], v: vec![9; len], stride }
    }

    /// Slopes with steps up to `most` here and there.
    fn slopes(mut self, draw: &mut Draw, most: u8) -> Self {
        for plane in [&mut self.y, &mut self.u, &mut self.v] {
            let mut value = 128_u8;
            for sample in plane {
                value = value.saturating_add(draw.below(most)).saturating_sub(draw.below(most));
                *sample = value;
            }
        }
        self
    }

    fn view(&mut self) -> PlanesMut<'_> {
        PlanesMut {
            y: &mut self.y,
            u: &mut self.u,
            v: &mut self.v,
            y_stride: self.stride * 16,
            uv_stride: self.stride * 8,
        }
    }
}

const ROWS: usize = 3;

/// An image of random macroblocks, of which some columns are stored.
fn reconstructed(level: Level, seed: u64) -> Planes {
    let mut draw = Draw::new(seed);
    let columns = 1 + usize::from(draw.below(9));
    let start = usize::from(draw.below(2)) * (columns / 3);
    let bits = if seed.is_multiple_of(3) { 16 } else { 7 + u32::from(draw.below(9)) };
    let mut planes = Planes::new(columns - start, usize::from(draw.below(2)), ROWS);
    let mut above = Above::default();
    above.reset(columns);
    for row in 0..ROWS {
        let mut macroblocks: Vec<_> = (0..columns).map(|_| draw.macroblock(bits)).collect();
        let store = start..columns;
        reconstruct(level, &mut macroblocks, &mut above, store, &mut planes.view(), row);
        let zero = |macroblock: &Macroblock| {
            macroblock.coefficients == Macroblock::ZERO.coefficients
                && macroblock.residues == Residues::NONE
        };
        assert!(macroblocks.iter().all(zero), "{level} leaves coefficients");
    }
    planes
}

#[test]
fn every_level_reconstructs() {
    for seed in 0..600 {
        let expected = reconstructed(Level::Scalar, seed);
        for level in Level::available() {
            assert!(reconstructed(level, seed) == expected, "{level}, seed {seed}");
        }
    }
}

fn filtered(level: Level, kind: FilterKind, seed: u64) -> Planes {
    let mut draw = Draw::new(seed);
    let columns = 1 + usize::from(draw.below(9));
    let most = 2 + draw.below(60);
    let mut planes = Planes::new(columns, usize::from(draw.below(2)), ROWS).slopes(&mut draw, most);
    for row in 0..ROWS {
        let filters: Vec<_> = (0..columns).map(|_| draw.filter()).collect();
        let start = usize::from(draw.below(2)) * (columns / 3);
        filter(level, kind, &filters, start..columns, &mut planes.view(), row);
    }
    planes
}

#[test]
fn every_level_filters() {
    for kind in [FilterKind::Simple, FilterKind::Normal] {
        for seed in 0..600 {
            let expected = filtered(Level::Scalar, kind, seed);
            for level in Level::available() {
                assert!(filtered(level, kind, seed) == expected, "{level} {kind:?}, seed {seed}");
            }
        }
    }
}

/// The most columns: some steps of the widest vectors.
const WIDEST: usize = 300;

#[test]
fn every_level_converts_any_columns_of_rows() {
    for seed in 0..1000 {
        let mut draw = Draw::new(seed);
        let width = 1 + draw.index(WIDEST);
        let start = draw.index(width);
        let columns = start..start + draw.index(width - start + 1);
        let luma = noise(width, seed);
        let chroma = noise(4 * width.div_ceil(2), seed + 1);
        let mut rows = chroma.chunks(width.div_ceil(2));
        let mut row = || rows.next().expect("four rows");
        let u = Chroma { near: row(), far: row() };
        let v = Chroma { near: row(), far: row() };
        let mut whole = vec![0; 3 * width];
        upsample_rgb(Level::Scalar, &luma, u, v, 0..width, &mut whole);
        for level in Level::available() {
            let mut part = vec![0; 3 * columns.len()];
            upsample_rgb(level, &luma, u, v, columns.clone(), &mut part);
            let expected = &whole[3 * columns.start..3 * columns.end];
            assert!(part == expected, "{level}, columns {columns:?} of {width}");
        }
    }
}

#[test]
fn a_mean_is_the_first_coefficient_of_every_block() {
    let mut dc = [0; 16];
    dc[0] = 80;
    assert_eq!(walsh_hadamard(&dc), [10; 16]);
}
