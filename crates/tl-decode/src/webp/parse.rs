//! The macroblocks of a frame from its bits: predictions (RFC 6386 section 11) and coefficients
//! (section 13).

use std::ops::Range;

use tl_simd::Level;
use tl_simd::vp8::{
    BlockPrediction, Filter, Luma, Macroblock, Prediction, Residue, Residues, walsh_hadamard,
};

use super::bools::BoolReader;
use super::header::{Frame, Places, SEGMENTS, Segment, Steps};
use super::tables::{BLOCK_MODE_PROBABILITIES, KINDS, ZIGZAG};
use crate::error::DecodeError;

/// Blocks of luma in a row or column of a macroblock.
const LUMA: usize = 4;
/// Coefficients of a block.
const BLOCK: usize = 16;
/// Blocks of a macroblock.
const BLOCKS: usize = 24;

/// The probability that a macroblock is predicted block by block (section 11.2).
const IN_BLOCKS: u8 = 145;

/// Probabilities of the bits of the larger tokens (section 13.2), by category from the third on.
const EXTRA_BITS: [&[u8]; 4] = [
    &[173, 148, 140],
    &[176, 155, 140, 135],
    &[180, 157, 141, 134, 130],
    &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
];

/// Index into the probabilities of [`Frame`] by the kind of a block.
#[derive(Clone, Copy)]
enum Kind {
    /// Luma whose first coefficient is in the second transform.
    LumaRest = 0,
    /// The second transform.
    LumaDc = 1,
    Chroma = 2,
    Luma = 3,
}

/// 1 for each block at an edge of a macroblock that has coefficients: four of Y, two of U, two of V,
/// and the second transform.
type Edge = [u8; 9];

/// The place of the second transform in an edge.
const SECOND: usize = 8;

/// The block of the second transform, after those of samples.
const SECOND_BLOCK: usize = BLOCKS;

/// Blocks of a macroblock that are coded alike.
struct Group {
    blocks: Range<usize>,
    kind: Kind,
    /// The first coefficient that is coded.
    first: usize,
    steps: Steps,
}

/// The place in the edge above of each block.
const ABOVE: [u8; BLOCKS + 1] =
    [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8];
/// The place in the edge to the left of each block.
const LEFT: [u8; BLOCKS + 1] =
    [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8];

/// The edge of a macroblock without coefficients. One predicted in blocks has no second transform, and
/// leaves what was there.
fn clear(edge: &mut Edge, has_second: bool) {
    let second = if has_second { 0 } else { edge[SECOND] };
    *edge = [0; 9];
    edge[SECOND] = second;
}

/// The state between rows of macroblocks, and the macroblocks of one.
#[derive(Clone, Debug, Default)]
pub(super) struct MacroblockRow {
    pub(super) macroblocks: Vec<Macroblock>,
    pub(super) filters: Vec<Filter>,
    /// By macroblock of the row above: predictions of the lowest blocks.
    modes_above: Vec<[BlockPrediction; LUMA]>,
    edges_above: Vec<Edge>,
    headers: Vec<Header>,
}

/// The part of a macroblock that is in the first partition, besides its prediction.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    segment: u8,
    has_no_coefficients: bool,
}

impl MacroblockRow {
    /// Bytes that a row of `count` macroblocks takes.
    pub(super) fn bytes(count: usize) -> usize {
        let of_one = size_of::<Macroblock>()
            + size_of::<Filter>()
            + size_of::<[BlockPrediction; LUMA]>()
            + size_of::<Edge>()
            + size_of::<Header>();
        count * of_one
    }

    pub(super) fn kept_bytes(&self) -> usize {
        Self::bytes(self.macroblocks.capacity())
    }

    /// Prepares for the first row of a frame of `count` macroblocks a row.
    pub(super) fn reset(&mut self, count: usize) {
        // A frame with an error leaves coefficients.
        self.macroblocks.clear();
        self.macroblocks.resize(count, Macroblock::default());
        self.filters.resize(count, Filter::default());
        self.modes_above.clear();
        self.modes_above.resize(count, [BlockPrediction::Dc; LUMA]);
        self.edges_above.clear();
        self.edges_above.resize(count, [0; 9]);
        self.headers.clear();
        self.headers.resize(count, Header::default());
    }

    /// Reads row `row`: the predictions of all macroblocks, and the coefficients of the first `kept`.
    /// The others have none, whatever the file says.
    ///
    /// # Errors
    /// If a partition ends before its macroblocks do.
    pub(super) fn read(
        &mut self,
        level: Level,
        frame: &mut Frame<'_>,
        row: usize,
        kept: usize,
    ) -> Result<(), DecodeError> {
        let partition = row & (frame.token_partitions - 1);
        let Frame { modes, tokens, segment_tree, skip, segments, probabilities, .. } = frame;
        let tokens = &mut tokens[partition];
        level.vectorize(
            #[inline(always)]
            || {
                modes.bools.read(
                    #[inline(always)]
                    |bits| self.modes(bits, *segment_tree, *skip),
                );
                tokens.bools.read(
                    #[inline(always)]
                    |bits| self.coefficients(bits, probabilities, segments, kept),
                );
            },
        );
        modes.require_bits("the first partition of VP8 ends before its macroblocks")?;
        tokens.require_bits("a partition of VP8 ends before its macroblocks")
    }

    #[inline(always)]
    fn modes(
        &mut self,
        bits: &mut BoolReader<'_, '_>,
        segment_tree: Option<[u8; 3]>,
        skip: Option<u8>,
    ) {
        let mut left = [BlockPrediction::Dc; LUMA];
        let columns = self.macroblocks.iter_mut().zip(&mut self.headers);
        for ((macroblock, header), above) in columns.zip(&mut self.modes_above) {
            bits.refill::<4>();
            header.segment = match segment_tree {
                None => 0,
                Some([root, low, _]) if !bits.bit(root) => u8::from(bits.bit(low)),
                Some([_, _, high]) => 2 + u8::from(bits.bit(high)),
            };
            header.has_no_coefficients = skip.is_some_and(|probability| bits.bit(probability));
            macroblock.luma = if bits.bit(IN_BLOCKS) {
                let mode = whole_mode(bits);
                (*above, left) = ([of_blocks(mode); LUMA], [of_blocks(mode); LUMA]);
                Luma::Whole(mode)
            } else {
                let mut modes = [BlockPrediction::Dc; LUMA * LUMA];
                for (row, left) in modes.as_chunks_mut::<LUMA>().0.iter_mut().zip(&mut left) {
                    for (mode, above) in row.iter_mut().zip(&mut *above) {
                        *mode = block_mode(bits, *above, *left);
                        (*above, *left) = (*mode, *mode);
                    }
                }
                Luma::Blocks(modes)
            };
            macroblock.chroma = chroma_mode(bits);
        }
    }

    #[inline(always)]
    fn coefficients(
        &mut self,
        bits: &mut BoolReader<'_, '_>,
        probabilities: &[Places; KINDS],
        segments: &[Segment; SEGMENTS],
        kept: usize,
    ) {
        let mut left = [0; 9];
        let mut unused = Macroblock::default();
        let columns = self.macroblocks.iter_mut().zip(&self.headers).zip(&mut self.filters);
        for (column, (((macroblock, header), filter), above)) in
            columns.zip(&mut self.edges_above).enumerate()
        {
            let segment = &segments[usize::from(header.segment & 3)];
            let is_whole = matches!(macroblock.luma, Luma::Whole(_));
            *filter = segment.filters[usize::from(!is_whole)];
            if header.has_no_coefficients {
                clear(above, is_whole);
                clear(&mut left, is_whole);
                continue;
            }
            if column < kept {
                coefficients::<true>(
                    bits,
                    probabilities,
                    segment,
                    macroblock,
                    is_whole,
                    above,
                    &mut left,
                );
                filter.inner |= macroblock.residues != Residues::NONE;
            } else {
                coefficients::<false>(
                    bits,
                    probabilities,
                    segment,
                    &mut unused,
                    is_whole,
                    above,
                    &mut left,
                );
            }
        }
    }
}

/// Reads the coefficients of a macroblock, to keep them in `to` or to get past them.
#[inline(always)]
fn coefficients<const KEPT: bool>(
    bits: &mut BoolReader<'_, '_>,
    probabilities: &[Places; KINDS],
    segment: &Segment,
    to: &mut Macroblock,
    is_whole: bool,
    above: &mut Edge,
    left: &mut Edge,
) {
    let blocks = to.coefficients.as_chunks_mut::<BLOCK>().0;
    let mut second = [0; BLOCK];
    let mut luma_dc = [0; BLOCK];
    let mut residues = Residues::NONE;
    let groups = [
        Group {
            blocks: SECOND_BLOCK..SECOND_BLOCK + 1,
            kind: Kind::LumaDc,
            first: 0,
            steps: segment.luma_dc,
        },
        Group {
            blocks: 0..LUMA * LUMA,
            kind: if is_whole { Kind::LumaRest } else { Kind::Luma },
            first: usize::from(is_whole),
            steps: segment.luma,
        },
        Group { blocks: LUMA * LUMA..BLOCKS, kind: Kind::Chroma, first: 0, steps: segment.chroma },
    ];
    for group in &groups[usize::from(!is_whole)..] {
        let places = &probabilities[group.kind as usize];
        for i in group.blocks.clone() {
            let above = &mut above[usize::from(ABOVE[i])];
            let left = &mut left[usize::from(LEFT[i])];
            let block = blocks.get_mut(i).unwrap_or(&mut second);
            let count = read_block::<KEPT>(bits, places, *above + *left, group, block);
            let has_any = u8::from(count > group.first);
            (*above, *left) = (has_any, has_any);
            if !KEPT {
                continue;
            }
            if i == SECOND_BLOCK {
                luma_dc = walsh_hadamard(block);
            } else {
                if group.first > 0 {
                    block[0] = luma_dc[i];
                }
                residues.add(i, residue(count, block));
            }
        }
    }
    to.residues = residues;
}

/// Reads the coefficients of a block from `first` on and returns the number up to the last that is
/// there (section 13.2). Those to keep are written times their steps.
#[inline(always)]
fn read_block<const KEPT: bool>(
    bits: &mut BoolReader<'_, '_>,
    places: &Places,
    context: u8,
    group: &Group,
    to: &mut [i16; BLOCK],
) -> usize {
    let mut place = group.first;
    let mut node = &places[place][usize::from(context.min(2))];
    while place < BLOCK {
        bits.refill::<4>();
        if !bits.bit(node[0]) {
            return place;
        }
        while !bits.bit(node[1]) {
            place += 1;
            if place == BLOCK {
                return BLOCK;
            }
            node = &places[place][0];
            bits.refill::<3>();
        }
        let next = &places[place + 1];
        let value = if bits.bit(node[2]) {
            let value = larger(bits, node);
            node = &next[2];
            value
        } else {
            node = &next[1];
            1
        };
        let value = bits.signed(value);
        if KEPT {
            let value = value * group.steps[usize::from(place > 0)];
            to[usize::from(ZIGZAG[place])] = low_word(value);
        }
        place += 1;
    }
    BLOCK
}

/// The value of a token above 1, whose sign follows.
#[inline(always)]
fn larger(bits: &mut BoolReader<'_, '_>, node: &[u8; 16]) -> i32 {
    bits.refill::<6>();
    if !bits.bit(node[3]) {
        return if bits.bit(node[4]) { 3 + i32::from(bits.bit(node[5])) } else { 2 };
    }
    if !bits.bit(node[6]) {
        if !bits.bit(node[7]) {
            return 5 + i32::from(bits.bit(159));
        }
        let high = i32::from(bits.bit(165));
        return 7 + 2 * high + i32::from(bits.bit(145));
    }
    let high = usize::from(bits.bit(node[8]));
    let category = 2 * high + usize::from(bits.bit(node[9 + high]));
    let mut extra = 0;
    for &probability in EXTRA_BITS[category] {
        bits.refill::<2>();
        extra = 2 * extra + i32::from(bits.bit(probability));
    }
    3 + (8 << category) + extra
}

/// The coefficients that a block with `count` of them can have.
#[inline(always)]
fn residue(count: usize, block: &[i16; BLOCK]) -> Residue {
    match count {
        4.. => Residue::Full,
        2.. => Residue::Few,
        _ if block[0] != 0 => Residue::Dc,
        _ => Residue::None,
    }
}

/// A product of a coefficient of the file, which wraps as libwebp's does where no encoder makes it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low word is asked for")]
fn low_word(value: i32) -> i16 {
    value as i16
}

/// The tree of section 11.2, below its root.
#[inline(always)]
fn whole_mode(bits: &mut BoolReader<'_, '_>) -> Prediction {
    bits.refill::<4>();
    if bits.bit(156) {
        if bits.bit(128) { Prediction::TrueMotion } else { Prediction::Horizontal }
    } else if bits.bit(163) {
        Prediction::Vertical
    } else {
        Prediction::Dc
    }
}

/// The tree of section 11.2 for chroma.
#[inline(always)]
fn chroma_mode(bits: &mut BoolReader<'_, '_>) -> Prediction {
    bits.refill::<3>();
    if !bits.bit(142) {
        Prediction::Dc
    } else if !bits.bit(114) {
        Prediction::Vertical
    } else if bits.bit(183) {
        Prediction::TrueMotion
    } else {
        Prediction::Horizontal
    }
}

/// The prediction of blocks that one of a whole macroblock counts as (section 11.3).
fn of_blocks(mode: Prediction) -> BlockPrediction {
    match mode {
        Prediction::Dc => BlockPrediction::Dc,
        Prediction::Vertical => BlockPrediction::Vertical,
        Prediction::Horizontal => BlockPrediction::Horizontal,
        Prediction::TrueMotion => BlockPrediction::TrueMotion,
    }
}

/// The tree of section 11.2 for blocks, with the probabilities of section 11.3.
#[inline(always)]
fn block_mode(
    bits: &mut BoolReader<'_, '_>,
    above: BlockPrediction,
    left: BlockPrediction,
) -> BlockPrediction {
    let node = &BLOCK_MODE_PROBABILITIES[above as usize][left as usize];
    bits.refill::<6>();
    if !bits.bit(node[0]) {
        return BlockPrediction::Dc;
    }
    if !bits.bit(node[1]) {
        return BlockPrediction::TrueMotion;
    }
    if !bits.bit(node[2]) {
        return BlockPrediction::Vertical;
    }
    if !bits.bit(node[3]) {
        if !bits.bit(node[4]) {
            return BlockPrediction::Horizontal;
        }
        return if bits.bit(node[5]) {
            BlockPrediction::VerticalRight
        } else {
            BlockPrediction::RightDown
        };
    }
    bits.refill::<3>();
    if !bits.bit(node[6]) {
        BlockPrediction::LeftDown
    } else if !bits.bit(node[7]) {
        BlockPrediction::VerticalLeft
    } else if bits.bit(node[8]) {
        BlockPrediction::HorizontalUp
    } else {
        BlockPrediction::HorizontalDown
    }
}
