//! Compressed pages as segments: literals, which are in the file as they are, and copies of bytes
//! before them.
//!
//! Photographs hardly compress, so their pages are a few dozen long literals. Finding these takes a
//! hundredth of the time of decompressing the page, and then a value is a few copies from the file.

use std::ops::Range;

use crate::codec::Codec;

/// The bytes of a page for each of its segments at least, besides a few; a page with more is
/// decompressed.
const BYTES_PER_SEGMENT: usize = 1024;
const FEW: usize = 32;

/// Copies of copies that are followed.
const MAX_DEPTH: u32 = 16;

/// The segments of a page from its start on. The memory can be used again.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    /// The end of the last one.
    end: usize,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Its place in the page.
    start: usize,
    /// The place in the compressed page from which it can be found without those before it.
    tag: usize,
    bytes: Bytes,
}

/// A segment from which others can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its place in the page.
    pub(crate) start: u32,
    /// Its place in the compressed page.
    pub(crate) tag: u32,
}

#[derive(Clone, Copy, Debug)]
enum Bytes {
    /// From here on in the compressed page.
    Literal(usize),
    /// This many bytes before.
    Copy(usize),
    /// Known to the codec's decoder alone.
    Opaque,
}

impl Mark {
    /// Itself as a number, which is not 0.
    pub(crate) fn to_number(self) -> u64 {
        (u64::from(self.tag) << 32 | u64::from(self.start)) + 1
    }

    /// The mark of a number; `None` for 0.
    pub(crate) fn of_number(number: u64) -> Option<Self> {
        let number = number.checked_sub(1)?;
        let [start, tag] = [number, number >> 32].map(|half| u32::try_from(half & 0xffff_ffff));
        Some(Self { start: start.ok()?, tag: tag.ok()? })
    }
}

impl Segments {
    /// Finds the segments of the first `until` bytes, or more, of a page of `len` bytes. `None` if the
    /// bytes are damaged, there are too many segments, or the codec is not made of them. With a mark
    /// they begin there.
    pub(crate) fn find(
        &mut self,
        codec: Codec,
        stored: &[u8],
        len: usize,
        mark: Option<Mark>,
        until: usize,
    ) -> Option<()> {
        let mark = mark.unwrap_or_default();
        self.list.clear();
        self.end = mark.start as usize;
        let tag = mark.tag as usize;
        match codec {
            Codec::Snappy => self.find_snappy(stored, len, tag, until),
            Codec::Lz4Raw => self.find_lz4(stored, len, tag, until),
            Codec::Zstd => self.find_zstd(stored, len),
            Codec::Uncompressed | Codec::Gzip | Codec::Brotli | Codec::Lz4Frame => None,
        }
    }

    /// The last segment that begins at `place` or before it, if others can be found from there.
    pub(crate) fn mark(&self, codec: Codec, place: usize) -> Option<Mark> {
        if codec == Codec::Zstd {
            return None;
        }
        let next = self.list.partition_point(|segment| segment.start <= place);
        let same = self.list.get(next.checked_sub(1)?)?.tag;
        // A match of LZ4 is found after the literal that it belongs to.
        let first = self.list.partition_point(|segment| segment.tag < same);
        let Segment { start, tag, .. } = self.list.get(first)?;
        Some(Mark { start: u32::try_from(*start).ok()?, tag: u32::try_from(*tag).ok()? })
    }

    /// Appends a range of the page, whose compressed bytes are `stored`, to `bytes`. `None` if it is
    /// not in these segments.
    pub(crate) fn append(
        &self,
        stored: &[u8],
        range: Range<usize>,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        self.append_at(stored, range, bytes, MAX_DEPTH)
    }

    fn append_at(
        &self,
        stored: &[u8],
        range: Range<usize>,
        bytes: &mut Vec<u8>,
        depth: u32,
    ) -> Option<()> {
        if range.end > self.end {
            return None;
        }
        let appended = bytes.len();
        let mut at = range.start;
        let first = self.list.partition_point(|segment| segment.start <= at).checked_sub(1)?;
        for (number, segment) in self.list.iter().enumerate().skip(first) {
            if at >= range.end {
                break;
            }
            let next = self.list.get(number + 1).map_or(self.end, |next| next.start);
            let end = next.min(range.end);
            match segment.bytes {
                Bytes::Literal(from) => {
                    let from = from + (at - segment.start);
                    bytes.extend_from_slice(stored.get(from..from + (end - at))?);
                }
                Bytes::Copy(distance) => {
                    let mut at = at;
                    while at < end {
                        // Most copies are of bytes that are there already.
                        if let Some(from) = (at - range.start).checked_sub(distance) {
                            let from = appended + from;
                            let len = (end - at).min(distance);
                            bytes.extend_from_within(from..from + len);
                            at += len;
                            continue;
                        }
                        // A copy may overlap itself, so that its bytes repeat those before it.
                        let from = segment.start - distance + (at - segment.start) % distance;
                        let len = (end - at).min(segment.start - from);
                        self.append_at(stored, from..from + len, bytes, depth.checked_sub(1)?)?;
                        at += len;
                    }
                }
                Bytes::Opaque => return None,
            }
            at = end;
        }
        (at >= range.end).then_some(())
    }

    /// Adds `count` bytes; `None` if they are not in a page of `len` bytes or too many segments.
    fn push(&mut self, bytes: Bytes, tag: usize, count: usize, len: usize) -> Option<()> {
        if count == 0 {
            return Some(());
        }
        let is_valid = match bytes {
            Bytes::Copy(distance) => distance > 0 && distance <= self.end,
            Bytes::Literal(_) | Bytes::Opaque => true,
        };
        let end = self.end.checked_add(count).filter(|&end| end <= len && is_valid)?;
        if self.list.len() > len / BYTES_PER_SEGMENT + FEW {
            return None;
        }
        self.list.push(Segment { start: self.end, tag, bytes });
        self.end = end;
        Some(())
    }

    /// Adds a literal from `at` on of the compressed page, and returns the place after it.
    fn push_literal(
        &mut self,
        stored: &[u8],
        at: usize,
        tag: usize,
        count: usize,
        len: usize,
    ) -> Option<usize> {
        let end = at.checked_add(count).filter(|&end| end <= stored.len())?;
        self.push(Bytes::Literal(at), tag, count, len)?;
        Some(end)
    }

    /// As the format description of Snappy has it.
    fn find_snappy(&mut self, stored: &[u8], len: usize, mark: usize, until: usize) -> Option<()> {
        let mut at = mark;
        if mark == 0 {
            let (stated, bytes) = leb128(stored)?;
            if stated != len as u64 {
                return None;
            }
            at = bytes;
        }
        while self.end < until {
            let tag_at = at;
            let tag = *stored.get(at)?;
            at += 1;
            let high = usize::from(tag >> 2);
            if tag & 3 == 0 {
                let extra = high.saturating_sub(59);
                let count = if extra > 0 { number(stored, at, extra)? } else { high };
                let count = count.checked_add(1)?;
                at = self.push_literal(stored, at + extra, tag_at, count, len)?;
                continue;
            }
            let (extra, count) = match tag & 3 {
                1 => (1, 4 + (high & 7)),
                2 => (2, high + 1),
                _ => (4, high + 1),
            };
            let mut distance = number(stored, at, extra)?;
            if extra == 1 {
                distance |= (high >> 3) << 8;
            }
            at += extra;
            self.push(Bytes::Copy(distance), tag_at, count, len)?;
        }
        self.is_done(at == stored.len(), len)
    }

    /// As the description of LZ4's block format has it.
    fn find_lz4(&mut self, stored: &[u8], len: usize, mark: usize, until: usize) -> Option<()> {
        let mut at = mark;
        while self.end < until {
            let tag_at = at;
            let token = usize::from(*stored.get(at)?);
            at += 1;
            let count = lz4_length(token >> 4, stored, &mut at)?;
            at = self.push_literal(stored, at, tag_at, count, len)?;
            if at == stored.len() {
                break;
            }
            let distance = number(stored, at, 2)?;
            at += 2;
            let count = lz4_length(token & 15, stored, &mut at)?;
            self.push(Bytes::Copy(distance), tag_at, count.checked_add(4)?, len)?;
        }
        self.is_done(at == stored.len(), len)
    }

    /// A frame of RFC 8878 whose first and last blocks are raw. How many bytes a compressed block makes
    /// is not stated, so all between the first and the last of them are one segment.
    fn find_zstd(&mut self, stored: &[u8], len: usize) -> Option<()> {
        const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        if stored.get(..4)? != MAGIC {
            return None;
        }
        let descriptor = *stored.get(4)?;
        let is_single = descriptor & 0x20 != 0;
        // A checksum needs all bytes, and a dictionary is not in the file.
        if descriptor & 0b1_1111 != 0 {
            return None;
        }
        let size_bytes = match descriptor >> 6 {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let mut at = 5 + usize::from(!is_single) + size_bytes;
        let mut raw = Vec::new();
        let mut compressed = None;
        loop {
            let header = number(stored, at, 3)?;
            at += 3;
            let size = header >> 3;
            match header >> 1 & 3 {
                0 => {
                    raw.push((at, size));
                    at = at.checked_add(size).filter(|&end| end <= stored.len())?;
                }
                2 => {
                    let first = compressed.map_or(raw.len(), |found: Range<usize>| found.start);
                    compressed = Some(first..raw.len());
                    at = at.checked_add(size).filter(|&end| end <= stored.len())?;
                }
                _ => return None,
            }
            if header & 1 == 1 || raw.len() > len / BYTES_PER_SEGMENT + FEW {
                break;
            }
        }
        let opaque = compressed.unwrap_or(raw.len()..raw.len());
        let known = raw[..opaque.start].iter().chain(&raw[opaque.end..]);
        let known = known.map(|&(_, size)| size).sum();
        let hidden = len.checked_sub(known)?;
        for (number, &(at, size)) in raw.iter().enumerate() {
            if number == opaque.start {
                self.push(Bytes::Opaque, 0, hidden, len)?;
            }
            if !opaque.contains(&number) {
                self.push(Bytes::Literal(at), 0, size, len)?;
            }
        }
        if opaque.start == raw.len() {
            self.push(Bytes::Opaque, 0, hidden, len)?;
        }
        self.is_done(at == stored.len(), len)
    }

    /// Whether the segments are those of a page of `len` bytes, as far as they were looked for.
    fn is_done(&self, is_end: bool, len: usize) -> Option<()> {
        (is_end == (self.end == len)).then_some(())
    }
}

/// The number that Snappy begins with, and its bytes.
fn leb128(stored: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for (at, &byte) in stored.iter().enumerate().take(5) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((number, at + 1));
        }
    }
    None
}

/// A length of LZ4, which further bytes continue.
fn lz4_length(first: usize, stored: &[u8], at: &mut usize) -> Option<usize> {
    let mut length = first;
    if first == 15 {
        loop {
            let byte = *stored.get(*at)?;
            *at += 1;
            length = length.checked_add(byte.into())?;
            if byte < u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

/// A little-endian number of up to four bytes.
fn number(stored: &[u8], at: usize, count: usize) -> Option<usize> {
    let bytes = stored.get(at..)?.get(..count)?;
    let number = bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Codec::Zstd => zstd::bulk::compress(bytes, 1).unwrap(),
            Codec::Lz4Raw => lz4::block::compress(bytes, None, false).unwrap(),
            Codec::Uncompressed | Codec::Gzip | Codec::Brotli | Codec::Lz4Frame => bytes.to_vec(),
        }
    }

    /// Bytes that hardly compress, with repeated pieces and runs among them.
    fn page() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => (any::<u32>(), 1_usize..60_000).prop_map(|(seed, len)| noise(seed, len)),
            1 => (any::<u8>(), 1_usize..3_000).prop_map(|(byte, len)| vec![byte; len]),
            1 => (0_u32..3, 1_usize..2_000).prop_map(|(seed, len)| noise(seed, len)),
        ];
        prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
    }

    fn noise(seed: u32, len: usize) -> Vec<u8> {
        let mut state = u64::from(seed) << 1 | 1;
        let next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    const CODECS: [Codec; 3] = [Codec::Snappy, Codec::Lz4Raw, Codec::Zstd];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn ranges_are_those_of_the_page(page in page(), start: u32, len: u32) {
            let start = start as usize % page.len();
            let end = start + len as usize % (page.len() - start + 1);
            for codec in CODECS {
                let stored = compressed(codec, &page);
                let mut segments = Segments::default();
                for until in [page.len(), end] {
                    if segments.find(codec, &stored, page.len(), None, until).is_none() {
                        continue;
                    }
                    let mut bytes = vec![9];
                    if segments.append(&stored, start..end, &mut bytes).is_some() {
                        prop_assert_eq!(&bytes[1..], &page[start..end], "{:?}", codec);
                    }
                    // The same from the segment that it begins in.
                    let Some(mark) = segments.mark(codec, start) else { continue };
                    prop_assert!(mark.start as usize <= start);
                    let found = segments.find(codec, &stored, page.len(), Some(mark), end);
                    prop_assert!(found.is_some());
                    bytes.clear();
                    if segments.append(&stored, start..end, &mut bytes).is_some() {
                        prop_assert_eq!(&bytes[..], &page[start..end], "{:?}", codec);
                    }
                }
            }
        }

        #[test]
        fn damaged_pages_are_no_reason_to_panic(
            page in page(), at: u32, byte: u8, cut: u32,
        ) {
            for codec in CODECS {
                let mut stored = compressed(codec, &page);
                let count = stored.len();
                stored[at as usize % count] = byte;
                stored.truncate(count - cut as usize % count.min(9));
                let mut segments = Segments::default();
                if segments.find(codec, &stored, page.len(), None, page.len()).is_some() {
                    let mut bytes = Vec::new();
                    let appended = segments.append(&stored, 0..page.len(), &mut bytes);
                    prop_assert!(appended.is_none() || bytes.len() == page.len());
                }
            }
        }
    }

    /// So that the properties do not hold because nothing is found.
    #[test]
    fn bytes_that_hardly_compress_are_all_found() {
        let mut page = noise(7, 300_000);
        // A copy of earlier bytes, and one that overlaps itself.
        page.extend_from_within(299_000..299_500);
        page.extend([5; 20_000]);
        page.extend(noise(8, 140_000));
        for codec in [Codec::Snappy, Codec::Lz4Raw] {
            let stored = compressed(codec, &page);
            let mut segments = Segments::default();
            segments.find(codec, &stored, page.len(), None, page.len()).unwrap();
            assert!(segments.list.len() > 2, "{codec:?}");
            let mut bytes = Vec::new();
            segments.append(&stored, 0..page.len(), &mut bytes).unwrap();
            assert!(bytes == page, "{codec:?}");
        }
        let stored = compressed(Codec::Zstd, &page);
        let mut segments = Segments::default();
        segments.find(Codec::Zstd, &stored, page.len(), None, page.len()).unwrap();
        let mut bytes = Vec::new();
        segments.append(&stored, 0..200_000, &mut bytes).unwrap();
        assert!(bytes == page[..200_000]);
        assert_eq!(segments.append(&stored, 310_000..311_000, &mut bytes), None);
    }

    #[test]
    fn pages_that_compress_are_not_for_segments() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
        for codec in [Codec::Snappy, Codec::Lz4Raw] {
            let stored = compressed(codec, &text);
            assert_eq!(
                Segments::default().find(codec, &stored, text.len(), None, text.len()),
                None
            );
        }
    }
}
