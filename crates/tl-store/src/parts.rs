//! The parts of an upload: their places, and the bytes of those that are not complete.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use bytes::Bytes;

/// The least bytes of a part but the last that S3 takes. In the same memory, eight of them on their
/// way are faster than five of 8 MiB.
const LEAST: u64 = 5 << 20;
/// Parts of equal length, which Cloudflare R2 asks for. Those beyond are for objects that are larger
/// than was expected: each [`STEP`] of them has twice the length of those before.
const EQUAL: u64 = 9_000;
const STEP: u64 = 100;
/// The most parts that a store takes.
const MOST: u64 = 10_000;

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its number, from 0.
    pub(crate) number: usize,
    /// Its bytes in the object.
    pub(crate) range: Range<u64>,
}

/// The places of parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    len: u64,
}

impl Layout {
    /// Parts for an object of about so many bytes.
    pub(crate) fn new(expected: u64) -> Self {
        // Whole MiB, for stores that store in pages.
        let len = expected.div_ceil(EQUAL).next_multiple_of(1 << 20);
        Self { len: len.max(LEAST) }
    }

    /// The part that has a byte.
    pub(crate) fn part(self, offset: u64) -> io::Result<Part> {
        let mut first = 0;
        let mut start = 0;
        let mut len = self.len;
        let mut count = EQUAL;
        while first < MOST {
            let end = start + len * count;
            if offset < end {
                let place = (offset - start) / len;
                let start = start + place * len;
                let number = usize::try_from(first + place).unwrap_or(usize::MAX);
                return Ok(Part { number, range: start..start + len });
            }
            first += count;
            start = end;
            len *= 2;
            count = STEP;
        }
        let text = format!("the object has more than {start} bytes, the most of {MOST} parts");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
    }
}

/// Bytes of an object that are written in pieces, most of them in order.
#[derive(Debug)]
pub(crate) struct Assembly {
    layout: Layout,
    open: BTreeMap<usize, Open>,
    /// The bytes of the open parts.
    held: u64,
    /// The largest end of what was written or left out.
    end: u64,
}

/// A part without some of its bytes.
#[derive(Debug)]
struct Open {
    start: u64,
    bytes: Vec<u8>,
    missing: usize,
}

impl Assembly {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, open: BTreeMap::new(), held: 0, end: 0 }
    }

    /// Replaces the layout of an object without a byte.
    pub(crate) fn set_layout(&mut self, layout: Layout) {
        if self.end == 0 {
            self.layout = layout;
        }
    }

    /// The bytes of the object so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The memory that open parts take.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Leaves room up to `end`.
    pub(crate) fn skip_to(&mut self, end: u64) -> io::Result<()> {
        if end < self.end {
            return Err(out_of_order());
        }
        self.end = end;
        Ok(())
    }

    /// The memory that writing at `offset` would take in addition.
    pub(crate) fn needs(&self, offset: u64) -> io::Result<u64> {
        let Part { number, range } = self.layout.part(offset)?;
        Ok(if self.open.contains_key(&number) { 0 } else { range.end - range.start })
    }

    /// Takes bytes up to the end of a part: how many, and the part if it is complete.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<(usize, Option<(usize, Bytes)>)> {
        let Part { number, range } = self.layout.part(offset)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let held = &mut self.held;
        let part = self.open.entry(number).or_insert_with(|| {
            *held += len as u64;
            // Pages that are not written take no memory.
            Open { start: range.start, bytes: vec![0; len], missing: len }
        });
        let at = usize::try_from(offset - range.start).unwrap_or(usize::MAX);
        let taken = bytes.len().min(len - at);
        if taken > part.missing {
            return Err(out_of_order());
        }
        part.bytes[at..at + taken].copy_from_slice(&bytes[..taken]);
        part.missing -= taken;
        self.end = self.end.max(offset + taken as u64);
        let complete = if part.missing == 0 { self.open.remove(&number) } else { None };
        if complete.is_some() {
            self.held -= len as u64;
        }
        Ok((taken, complete.map(|part| (number, part.bytes.into()))))
    }

    /// The parts that are left at the end of the object: the last one is shorter than its place.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<(usize, Bytes)>> {
        let mut left = Vec::new();
        for (number, Open { start, mut bytes, missing }) in std::mem::take(&mut self.open) {
            let len = usize::try_from(self.end - start).unwrap_or(usize::MAX).min(bytes.len());
            if missing != bytes.len() - len {
                return Err(out_of_order());
            }
            bytes.truncate(len);
            // The rest of the room would stay in memory until the part is sent.
            bytes.shrink_to_fit();
            left.push((number, bytes.into()));
        }
        self.held = 0;
        Ok(left)
    }
}

/// The error of a writer that leaves bytes out, or writes them twice.
fn out_of_order() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "bytes of the object are missing, or written twice")
}

#[cfg(test)]
impl Layout {
    /// Parts of this length, so that tests need little memory.
    pub(crate) fn of_parts(len: u64) -> Self {
        Self { len }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_equal_and_grow_where_there_would_be_too_many() {
        let layout = Layout::new(0);
        let part = |offset| layout.part(offset).unwrap();
        assert_eq!(part(0), Part { number: 0, range: 0..LEAST });
        let equal = EQUAL * LEAST;
        assert_eq!(part(equal - 1).range, equal - LEAST..equal);
        let grown = Part { number: 9_000, range: equal..equal + 2 * LEAST };
        assert_eq!(part(equal), grown);
        let last = equal + STEP * 2 * LEAST;
        assert_eq!(part(last), Part { number: 9_100, range: last..last + 4 * LEAST });
        let most = equal + STEP * LEAST * 2 * 1_023;
        assert_eq!(part(most - 1).number, 9_999);
        let refused = layout.part(most).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge, "{refused}");
        let large = Layout::new(5 << 40).part((5 << 40) - 1).unwrap();
        assert!(large.number < 9_000 && large.range.end - large.range.start < 640 << 20);
    }

    proptest! {
        #[test]
        fn parts_have_the_bytes_of_the_object(
            lens in prop::collection::vec(0..40_usize, 1..20),
            gaps in prop::collection::vec(0..30_u64, 1..20),
            part in 1..17_u64,
        ) {
            let mut assembly = Assembly::new(Layout::of_parts(part));
            let mut object = Vec::new();
            let mut holes = Vec::new();
            let mut parts = BTreeMap::new();
            let mut write = |assembly: &mut Assembly, mut at: u64, mut bytes: &[u8]| {
                while !bytes.is_empty() {
                    let (taken, complete) = assembly.write(at, bytes).unwrap();
                    parts.extend(complete);
                    at += taken as u64;
                    bytes = &bytes[taken..];
                }
            };
            for (len, gap) in lens.iter().zip(gaps) {
                holes.push(object.len() as u64..object.len() as u64 + gap);
                let end = object.len() + usize::try_from(gap).unwrap() + len;
                object.extend((object.len()..end).map(|place| place.to_le_bytes()[0]));
                assembly.skip_to(object.len() as u64 - *len as u64).unwrap();
                write(&mut assembly, object.len() as u64 - *len as u64, &object[object.len() - len..]);
            }
            for hole in holes.into_iter().rev() {
                let start = usize::try_from(hole.start).unwrap();
                let end = usize::try_from(hole.end).unwrap();
                write(&mut assembly, hole.start, &object[start..end]);
            }
            prop_assert_eq!(assembly.end(), object.len() as u64);
            parts.extend(assembly.finish().unwrap());
            let numbers: Vec<_> = parts.keys().copied().collect();
            prop_assert_eq!(numbers, (0..parts.len()).collect::<Vec<_>>());
            let joined: Vec<u8> = parts.into_values().flatten().collect();
            prop_assert_eq!(joined, object);
        }
    }

    #[test]
    fn missing_bytes_are_an_error() {
        let mut assembly = Assembly::new(Layout::of_parts(4));
        assembly.skip_to(3).unwrap();
        assembly.write(3, b"ab").unwrap();
        assert!(assembly.skip_to(2).is_err());
        assert!(assembly.finish().is_err());
    }
}
