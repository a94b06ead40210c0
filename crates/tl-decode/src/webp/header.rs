//! The header of a VP8 key frame (RFC 6386 sections 9 and 19.2): what libwebp reads of it.

use tl_simd::vp8::{Filter, FilterKind};

use super::bools::{BoolReader, Bools};
use super::tables::{BAND_OF, KINDS, NODES, TOKEN_UPDATES, TOKENS};
use crate::error::{DecodeError, Defect};
use crate::format::Format;

/// Segments of macroblocks with settings of their own.
pub(super) const SEGMENTS: usize = 4;
/// Partitions of tokens, at most.
pub(super) const PARTITIONS: usize = 8;
/// Bytes of the frame tag, the start code and the size.
const FRAME_HEADER: usize = 10;

/// Probabilities of the tokens at one place of a block by context, padded to a power of two.
pub(super) type Place = [[u8; 16]; super::tables::CONTEXTS];
/// Probabilities by place in a block, with one more that is not used.
pub(super) type Places = [Place; 17];

/// Factors of the coefficients of a block: the first, the others.
pub(super) type Steps = [i32; 2];

/// The settings of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    pub(super) luma: Steps,
    pub(super) luma_dc: Steps,
    pub(super) chroma: Steps,
    /// The loop filter of macroblocks predicted whole, and in blocks.
    pub(super) filters: [Filter; 2],
}

/// A partition of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition<'a> {
    pub(super) bools: Bools<'a>,
    /// The offset of its end in the file.
    end: u64,
}

impl<'a> Partition<'a> {
    fn new(data: &'a [u8], offset: u64) -> Self {
        Self { bools: Bools::new(data), end: offset + data.len() as u64 }
    }

    /// # Errors
    /// If more was read than the partition has: `what` says what it lacks.
    pub(super) fn require_bits(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.bools.is_past_end() {
            return Err(Defect::Stray { format: Format::WebP, what, offset: self.end }.into());
        }
        Ok(())
    }
}

/// A frame before its first macroblock.
#[derive(Clone, Debug)]
pub(super) struct Frame<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    /// The first partition, at the first macroblock.
    pub(super) modes: Partition<'a>,
    /// The partitions of tokens; rows of macroblocks use them in turn.
    pub(super) tokens: [Partition<'a>; PARTITIONS],
    pub(super) token_partitions: usize,
    /// The loop filter, if there is one.
    pub(super) filter: Option<FilterKind>,
    pub(super) segments: [Segment; SEGMENTS],
    /// Probabilities of the tree of segments, if macroblocks say theirs.
    pub(super) segment_tree: Option<[u8; 3]>,
    /// The probability that a macroblock has coefficients, if macroblocks say so.
    pub(super) skip: Option<u8>,
    pub(super) probabilities: [Places; KINDS],
}

/// Width and height of a key frame, `None` if `data` does not begin with the header of one.
pub(super) fn size(data: &[u8]) -> Option<(u32, u32)> {
    let &[tag, _, _, 0x9D, 0x01, 0x2A, w0, w1, h0, h1] = data.first_chunk()? else { return None };
    // The upper two bits ask for scaling, which no decoder of images does.
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3FFF);
    let width = side(w0, w1);
    let height = side(h0, h1);
    (tag & 1 == 0 && width > 0 && height > 0).then_some((width, height))
}

/// Steps of the first coefficient of a block (section 14.1).
const DC_STEPS: [u8; 128] = [
    4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 16, 17, 17, 18, 19, 20, 20, 21, 21, 22, 22, 23,
    23, 24, 25, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 37, 38, 39, 40, 41, 42, 43, 44,
    45, 46, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67,
    68, 69, 70, 71, 72, 73, 74, 75, 76, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 91,
    93, 95, 96, 98, 100, 101, 102, 104, 106, 108, 110, 112, 114, 116, 118, 122, 124, 126, 128, 130,
    132, 134, 136, 138, 140, 143, 145, 148, 151, 154, 157,
];

/// Steps of the other coefficients (section 14.1).
const AC_STEPS: [u16; 128] = [
    4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
    53, 54, 55, 56, 57, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94,
    96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 119, 122, 125, 128, 131, 134, 137, 140,
    143, 146, 149, 152, 155, 158, 161, 164, 167, 170, 173, 177, 181, 185, 189, 193, 197, 201, 205,
    209, 213, 217, 221, 225, 229, 234, 239, 245, 249, 254, 259, 264, 269, 274, 279, 284,
];

/// The header in the first partition.
#[derive(Debug)]
struct Header {
    segments: Segments,
    filter: FilterHeader,
    settings: [Segment; SEGMENTS],
    token_partitions: usize,
    probabilities: [Places; KINDS],
    skip: Option<u8>,
}

impl Header {
    /// Section 9.2 to 9.11.
    fn read(bits: &mut BoolReader<'_, '_>) -> Self {
        // The colour space, which decoders ignore, and whether samples need clamping, which never
        // hurts.
        bits.number(2);
        let segments = Segments::read(bits);
        let filter = FilterHeader::read(bits);
        let token_partitions = 1 << bits.number(2);
        let settings = settings(bits, &segments, &filter);
        // Whether the probabilities are kept for a next frame.
        bits.flag();
        let probabilities = read_probabilities(bits);
        let skip = bits.flag().then(|| bits.number(8).to_le_bytes()[0]);
        Self { segments, filter, settings, token_partitions, probabilities, skip }
    }
}

/// The settings of the segments in the header.
#[derive(Clone, Copy, Debug, Default)]
struct Segments {
    are_used: bool,
    tree: Option<[u8; 3]>,
    /// The settings below replace those of the frame; otherwise they are added.
    are_absolute: bool,
    quantizers: [i32; SEGMENTS],
    levels: [i32; SEGMENTS],
}

/// The loop filter in the header.
#[derive(Clone, Copy, Debug, Default)]
struct FilterHeader {
    is_simple: bool,
    level: i32,
    sharpness: i32,
    /// Numbers added to the level: for all macroblocks, and for those predicted in blocks.
    deltas: [i32; 2],
}

impl<'a> Frame<'a> {
    /// Reads the header of the frame in `data`, which begins at byte `offset` of the file.
    ///
    /// # Errors
    /// For frames that libwebp refuses: those that are not shown or of a version above 3, and
    /// partitions that are cut short.
    pub(super) fn parse(data: &'a [u8], offset: u64) -> Result<Self, DecodeError> {
        let format = Format::WebP;
        let missing = || Defect::Missing { format, what: "a VP8 key frame header" };
        let (width, height) = size(data).ok_or_else(missing)?;
        let (&[tag, t1, t2, ..], rest) =
            data.split_first_chunk::<FRAME_HEADER>().ok_or_else(missing)?;
        let value_at = |what, found: u32| {
            let found = found.into();
            Err(DecodeError::from(Defect::ValueAt { format, what, found, offset }))
        };
        let tag = u32::from_le_bytes([tag, t1, t2, 0]);
        if tag >> 1 & 7 > 3 {
            return value_at("VP8 version", tag >> 1 & 7);
        }
        if tag >> 4 & 1 == 0 {
            return value_at("VP8 flag that shows the frame", 0);
        }
        let first_bytes = (tag >> 5) as usize;
        let Some((first, tokens)) = rest.split_at_checked(first_bytes) else {
            let what = "first VP8 partition";
            let need = first_bytes as u64;
            let have = rest.len() as u64;
            let offset = offset + FRAME_HEADER as u64;
            return Err(Defect::Truncated { format, what, offset, need, have }.into());
        };
        let tokens_offset = offset + (FRAME_HEADER + first_bytes) as u64;

        let mut modes = Partition::new(first, offset + FRAME_HEADER as u64);
        let header = modes.bools.read(|bits| Header::read(bits));
        modes.require_bits("the first partition of VP8 ends in the header of the frame")?;
        let Header { segments, filter, settings, token_partitions, probabilities, skip } = header;
        let tokens = partitions(tokens, tokens_offset, token_partitions)?;
        let kind = match (filter.level, filter.is_simple) {
            (0, _) => None,
            (_, true) => Some(FilterKind::Simple),
            (_, false) => Some(FilterKind::Normal),
        };
        Ok(Self {
            width,
            height,
            modes,
            tokens,
            token_partitions,
            filter: kind,
            segments: settings,
            segment_tree: segments.tree,
            skip,
            probabilities,
        })
    }
}

impl Segments {
    /// Section 9.3.
    fn read(bits: &mut BoolReader<'_, '_>) -> Self {
        let mut segments = Self { are_absolute: true, ..Self::default() };
        segments.are_used = bits.flag();
        if !segments.are_used {
            return segments;
        }
        let has_tree = bits.flag();
        if bits.flag() {
            segments.are_absolute = bits.flag();
            segments.quantizers = [(); SEGMENTS].map(|()| bits.optional_number(7).unwrap_or(0));
            segments.levels = [(); SEGMENTS].map(|()| bits.optional_number(6).unwrap_or(0));
        }
        if has_tree {
            segments.tree =
                Some(
                    [(); 3].map(|()| {
                        if bits.flag() { bits.number(8).to_le_bytes()[0] } else { u8::MAX }
                    }),
                );
        }
        segments
    }

    /// The setting of a segment for one of the frame.
    fn apply(&self, of_segment: i32, of_frame: i32) -> i32 {
        match (self.are_used, self.are_absolute) {
            (false, _) => of_frame,
            (true, true) => of_segment,
            (true, false) => of_segment + of_frame,
        }
    }
}

impl FilterHeader {
    /// Sections 9.3 and 9.6.
    fn read(bits: &mut BoolReader<'_, '_>) -> Self {
        let is_simple = bits.flag();
        let level = bits.number(6).cast_signed();
        let sharpness = bits.number(3).cast_signed();
        let mut deltas = [0; 2];
        let has_deltas = bits.flag();
        if has_deltas && bits.flag() {
            // By reference frame, of which a key frame has the first; then by mode, of which it has
            // the first too.
            let of_frames = [(); 4].map(|()| bits.optional_number(6).unwrap_or(0));
            let of_modes = [(); 4].map(|()| bits.optional_number(6).unwrap_or(0));
            deltas = [of_frames[0], of_modes[0]];
        }
        Self { is_simple, level, sharpness, deltas }
    }

    /// The filter of a macroblock whose segment has this level (section 15.2).
    fn filter(&self, level: i32, in_blocks: bool) -> Filter {
        let [of_frame, of_blocks] = self.deltas;
        let strength = (level + of_frame + if in_blocks { of_blocks } else { 0 }).clamp(0, 63);
        if strength == 0 {
            return Filter { inner: in_blocks, ..Filter::default() };
        }
        let mut interior = strength;
        if self.sharpness > 0 {
            interior >>= if self.sharpness > 4 { 2 } else { 1 };
            interior = interior.min(9 - self.sharpness);
        }
        let interior = interior.max(1);
        let high_variance = match strength {
            40.. => 2,
            15.. => 1,
            _ => 0,
        };
        let byte = |value: i32| value.to_le_bytes()[0];
        Filter {
            limit: byte(2 * strength + interior),
            interior: byte(interior),
            high_variance,
            inner: in_blocks,
        }
    }
}

/// The partitions of tokens (section 9.5) in `data`, which begins at byte `offset` of the file. Those
/// whose size goes beyond the data end with it, as in libwebp; the last one must have a byte.
fn partitions(
    data: &[u8],
    offset: u64,
    count: usize,
) -> Result<[Partition<'_>; PARTITIONS], DecodeError> {
    let truncated = || {
        let need = 3 * (count as u64 - 1) + 1;
        let have = data.len() as u64;
        let what = "VP8 token partitions";
        Defect::Truncated { format: Format::WebP, what, offset, need, have }
    };
    let (sizes, mut rest) = data.split_at_checked(3 * (count - 1)).ok_or_else(truncated)?;
    let mut at = offset + sizes.len() as u64;
    let mut partitions = [Partition::new(&[], at); PARTITIONS];
    for (to, size) in partitions.iter_mut().zip(sizes.as_chunks::<3>().0) {
        let &[a, b, c] = size;
        let size = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (partition, after) = rest.split_at(size.min(rest.len()));
        *to = Partition::new(partition, at);
        at += partition.len() as u64;
        rest = after;
    }
    if rest.is_empty() {
        return Err(truncated().into());
    }
    partitions[count - 1] = Partition::new(rest, at);
    Ok(partitions)
}

/// The steps and filters of the segments (section 9.6).
fn settings(
    bits: &mut BoolReader<'_, '_>,
    segments: &Segments,
    filter: &FilterHeader,
) -> [Segment; SEGMENTS] {
    let base = bits.number(7).cast_signed();
    let [luma_dc, second_dc, second_ac, chroma_dc, chroma_ac] =
        [(); 5].map(|()| bits.optional_number(4).unwrap_or(0));
    let mut settings = [Segment::default(); SEGMENTS];
    let levels = segments.quantizers.iter().zip(&segments.levels);
    for (setting, (&quantizer, &level)) in settings.iter_mut().zip(levels) {
        let q = segments.apply(quantizer, base);
        let level = segments.apply(level, filter.level);
        // Section 14.1, with the limits of section 9.6.
        let place = |delta: i32, most: i32| (q + delta).clamp(0, most).cast_unsigned() as usize;
        let dc = |delta: i32, most: i32| i32::from(DC_STEPS[place(delta, most)]);
        let ac = |delta: i32| i32::from(AC_STEPS[place(delta, 127)]);
        *setting = Segment {
            luma: [dc(luma_dc, 127), ac(0)],
            luma_dc: [2 * dc(second_dc, 127), (ac(second_ac) * 155 / 100).max(8)],
            chroma: [dc(chroma_dc, 117), ac(chroma_ac)],
            filters: [filter.filter(level, false), filter.filter(level, true)],
        };
    }
    settings
}

/// Section 13.4, laid out by place.
fn read_probabilities(bits: &mut BoolReader<'_, '_>) -> [Places; KINDS] {
    let mut bands = TOKENS;
    let updates = TOKEN_UPDATES.as_flattened().as_flattened().as_flattened();
    let all = bands.as_flattened_mut().as_flattened_mut().as_flattened_mut();
    for (probability, &update) in all.iter_mut().zip(updates) {
        if bits.boolean(update) {
            *probability = bits.number(8).to_le_bytes()[0];
        }
    }
    let mut places = [[Place::default(); 17]; KINDS];
    for (places, bands) in places.iter_mut().zip(&bands) {
        for (place, &band) in places.iter_mut().zip(&BAND_OF) {
            for (to, from) in place.iter_mut().zip(&bands[usize::from(band)]) {
                to[..NODES].copy_from_slice(from);
            }
        }
    }
    places
}
