//! The operations that warps need from a vector unit: reading from many places, and packing pixels.

use super::RGB;

/// Places that are read at once.
pub(crate) const GATHERED: usize = 16;

/// Data that offsets of 31 bits reach, and that has room for the longest load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reachable<'a>(&'a [u8]);

impl<'a> Reachable<'a> {
    /// None when there are fewer than 8 bytes, or more than 2 GiB.
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        (data.len() >= size_of::<u64>() && i32::try_from(data.len()).is_ok()).then_some(Self(data))
    }

    /// The bytes, at least 8 and at most 2 GiB.
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// A level's way to read from many places. The methods without vectors are the definition.
pub(crate) trait GatherSimd: Copy {
    /// Four bytes from each offset on, zeros after the end.
    #[inline(always)]
    fn words(self, data: Reachable<'_>, offsets: &[u32; GATHERED], out: &mut [u32; GATHERED]) {
        for (&offset, out) in offsets.iter().zip(out) {
            *out = u32::from_le_bytes(load(data, offset));
        }
    }

    /// Four bytes from each offset on, and four from `STEP` bytes later on, up to 4; zeros after
    /// the end.
    #[inline(always)]
    fn pairs<const STEP: usize>(
        self,
        data: Reachable<'_>,
        offsets: &[u32; GATHERED],
        [first, second]: [&mut [u32; GATHERED]; 2],
    ) {
        for ((&offset, first), second) in offsets.iter().zip(first).zip(second) {
            let bytes = u64::from_le_bytes(load(data, offset));
            *first = low(bytes);
            *second = low(bytes >> (8 * STEP));
        }
    }

    /// Transposes a square of `GATHERED` pixels on each side, of `C` bytes each, 1 or 3: its rows
    /// begin at the offsets `rows` of `data`, those of the result at `lines` of `out`.
    #[inline(always)]
    fn transpose<const C: usize>(
        self,
        data: &[u8],
        rows: &[usize; GATHERED],
        out: &mut [u8],
        lines: &[usize; GATHERED],
    ) {
        for (column, &line) in lines.iter().enumerate() {
            let line = &mut out[line..][..GATHERED * C];
            for (&row, out) in rows.iter().zip(line.as_chunks_mut::<C>().0) {
                out.copy_from_slice(&data[row + column * C..][..C]);
            }
        }
    }

    /// The lower three bytes of each word.
    #[inline(always)]
    fn pack(self, words: &[u32; GATHERED], out: &mut [u8; GATHERED * RGB]) {
        for (word, out) in words.iter().zip(out.as_chunks_mut::<RGB>().0) {
            let [red, green, blue, _] = word.to_le_bytes();
            *out = [red, green, blue];
        }
    }
}

/// Without vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl GatherSimd for Plain {}

#[inline(always)]
fn load<const N: usize>(data: Reachable<'_>, offset: u32) -> [u8; N] {
    let rest = data.bytes().get(offset as usize..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => *bytes,
        None => load_end(rest),
    }
}

#[cold]
fn load_end<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (byte, &held) in bytes.iter_mut().zip(rest) {
        *byte = held;
    }
    bytes
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
const fn low(bytes: u64) -> u32 {
    bytes as u32
}
