//! The directory of a ZIP archive: the part of APPNOTE.TXT 6.3.10 that archives of arrays need
//! (sections 4.3.7 to 4.3.16), with the fields of 64 bits.

use std::borrow::Cow;

use super::NpyError;
use crate::escape::Escaped;

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const END_64: [u8; 4] = *b"PK\x06\x06";
const END_64_BYTES: u64 = 56;
const LOCATOR_64: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_64_BYTES: usize = 20;
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const CENTRAL_BYTES: usize = 46;

/// The first bytes of a member, before its own header.
pub(super) const LOCAL: [u8; 4] = *b"PK\x03\x04";
pub(super) const LOCAL_BYTES: u64 = 30;

/// The longest comment that can follow the end record.
const MOST_COMMENT: usize = u16::MAX as usize;

/// The most bytes that end records take with a comment.
const MOST_TAIL: u64 = (LOCATOR_64_BYTES + END_BYTES + MOST_COMMENT) as u64;

/// The largest directory that is read: that of half a million members.
const MOST_DIRECTORY: u64 = 64 << 20;

/// The number of the extra field with sizes of 64 bits.
const EXTRA_64: u16 = 1;

/// The bit of an entry's flags that says that the member is encrypted.
const ENCRYPTED: u16 = 1;

/// An entry of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name as it is stored.
    pub(super) name: Vec<u8>,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// Bytes that the member takes in the archive.
    pub(super) packed: u64,
    /// Bytes of its content.
    pub(super) bytes: u64,
    /// The offset of its own header.
    pub(super) local: u64,
    pub(super) is_encrypted: bool,
}

/// The entries of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) entries: Vec<Entry>,
    /// The offset of the directory, where members end.
    pub(super) start: u64,
}

impl Directory {
    /// Reads the directory of an archive of `len` bytes, of which `read` has the bytes from an offset on.
    ///
    /// # Errors
    /// The defect of the directory, and those of `read`.
    pub(super) fn read<'a, E: From<NpyError>>(
        len: u64,
        mut read: impl FnMut(u64, u64) -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<Self, E> {
        let tail_start = len.saturating_sub(MOST_TAIL);
        let tail = read(tail_start, len - tail_start)?;
        let expected = "the end of a ZIP directory";
        let at = end_record(&tail).ok_or(NpyError::Zip { offset: len, expected })?;
        let end_offset = tail_start + at as u64;
        let one_disk = NpyError::Zip { offset: end_offset, expected: "a ZIP archive of one disk" };
        let range = Range::of(&tail[at..], end_offset).ok_or(one_disk)?;
        let locator = at.checked_sub(LOCATOR_64_BYTES).map(|at| &tail[at..]);
        let locator = locator.filter(|locator| range.is_64() && locator.starts_with(&LOCATOR_64));
        let Range { count, bytes, start, end } = match locator {
            // An archive of 65,535 members needs none.
            None => range,
            Some(locator) => {
                let offset = end_offset - LOCATOR_64_BYTES as u64;
                let expected = "the place of a ZIP64 directory";
                let end_64 = u64_at(locator, 8).filter(|&end_64| {
                    end_64.checked_add(END_64_BYTES).is_some_and(|end| end <= offset)
                });
                let end_64 = end_64.ok_or(NpyError::Zip { offset, expected })?;
                let record = read(end_64, END_64_BYTES)?;
                let expected = "the end of a ZIP64 directory";
                Range::of_64(&record, end_64).ok_or(NpyError::Zip { offset: end_64, expected })?
            }
        };
        let fits = start.checked_add(bytes).is_some_and(|reached| reached <= end)
            && count <= bytes / CENTRAL_BYTES as u64
            && bytes <= MOST_DIRECTORY;
        if !fits {
            let expected = "a ZIP directory of this place and size";
            return Err(NpyError::Zip { offset: end, expected }.into());
        }
        let directory = read(start, bytes)?;
        let mut at = 0;
        let mut entries = Vec::new();
        for _ in 0..count {
            let offset = start + at as u64;
            let expected = "an entry of the ZIP directory";
            let entry = entry(&directory, &mut at).ok_or(NpyError::Zip { offset, expected })?;
            entries.push(entry);
        }
        if at as u64 != bytes {
            let expected = "the end of the ZIP directory";
            return Err(NpyError::Zip { offset: start + at as u64, expected }.into());
        }
        Ok(Self { entries, start })
    }
}

/// The place of the last end record, whose comment reaches to the end.
fn end_record(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END_BYTES)?;
    (0..=last).rev().find(|&at| {
        let comment = u16_at(tail, at + 20).map(usize::from);
        tail[at..].starts_with(&END) && comment == Some(last - at)
    })
}

/// The place of a directory as its end record states it.
struct Range {
    count: u64,
    bytes: u64,
    start: u64,
    /// The offset of the end record.
    end: u64,
}

impl Range {
    fn of(record: &[u8], end: u64) -> Option<Self> {
        let is_one_disk = [0, u16::MAX].contains(&u16_at(record, 4)?);
        is_one_disk.then_some(Self {
            count: u16_at(record, 10)?.into(),
            bytes: u32_at(record, 12)?.into(),
            start: u32_at(record, 16)?.into(),
            end,
        })
    }

    /// Whether the numbers are in the record with 64 bits.
    fn is_64(&self) -> bool {
        self.count == u64::from(u16::MAX)
            || self.bytes == u64::from(u32::MAX)
            || self.start == u64::from(u32::MAX)
    }

    fn of_64(record: &[u8], end: u64) -> Option<Self> {
        let is_whole = record.starts_with(&END_64) && u32_at(record, 16)? == 0;
        is_whole.then_some(Self {
            count: u64_at(record, 32)?,
            bytes: u64_at(record, 40)?,
            start: u64_at(record, 48)?,
            end,
        })
    }
}

/// Reads the entry at `at`, and moves `at` to the next one.
fn entry(directory: &[u8], at: &mut usize) -> Option<Entry> {
    let header = directory.get(*at..at.checked_add(CENTRAL_BYTES)?)?;
    if !header.starts_with(&CENTRAL) {
        return None;
    }
    let length = |place| u16_at(header, place).map(usize::from);
    let name_start = *at + CENTRAL_BYTES;
    let name_end = name_start.checked_add(length(28)?)?;
    let name = directory.get(name_start..name_end)?;
    let extra_end = name_end.checked_add(length(30)?)?;
    let extra = directory.get(name_end..extra_end)?;
    *at = extra_end.checked_add(length(32)?)?;
    let mut of_64 = extra_64(extra)?;
    let mut number = |place| {
        let number = u32_at(header, place)?;
        if number == u32::MAX { of_64.next() } else { Some(u64::from(number)) }
    };
    // The extra field has those that do not fit, in this order.
    let bytes = number(24)?;
    let packed = number(20)?;
    let local = number(42)?;
    Some(Entry {
        name: name.to_vec(),
        method: u16_at(header, 10)?,
        crc: u32_at(header, 16)?,
        packed,
        bytes,
        local,
        is_encrypted: u16_at(header, 8)? & ENCRYPTED != 0,
    })
}

/// The numbers of the extra field with 64 bits; none without one, `None` for damaged fields.
fn extra_64(mut extra: &[u8]) -> Option<impl Iterator<Item = u64>> {
    let mut found: &[u8] = &[];
    // Some writers pad with a few zeros.
    while extra.len() >= 4 {
        let length = usize::from(u16_at(extra, 2)?);
        let field = extra.get(4..4 + length)?;
        if u16_at(extra, 0)? == EXTRA_64 {
            found = field;
        }
        extra = &extra[4 + length..];
    }
    Some(found.chunks_exact(8).filter_map(|bytes| u64_at(bytes, 0)))
}

impl Entry {
    /// The offset of the content, by the 30 bytes of the member's own header; `None` if they are not
    /// those of this entry.
    pub(super) fn content_offset(&self, header: &[u8]) -> Option<u64> {
        let name_bytes = usize::from(u16_at(header, 26)?);
        let is_own = header.starts_with(&LOCAL)
            && name_bytes == self.name.len()
            && u16_at(header, 8)? == self.method;
        let after = name_bytes as u64 + u64::from(u16_at(header, 28)?);
        if is_own { self.local.checked_add(LOCAL_BYTES + after) } else { None }
    }

    /// The name in messages.
    pub(super) fn printable(&self) -> String {
        Escaped(self.name.strip_suffix(b".npy").unwrap_or(&self.name)).to_string()
    }

    /// Fails for a member that is packed otherwise than NumPy does it.
    pub(super) fn check(&self) -> Result<(), NpyError> {
        if self.is_encrypted {
            return Err(NpyError::Encrypted { name: self.printable() });
        }
        match self.method {
            super::STORED if self.packed != self.bytes => Err(NpyError::Truncated {
                what: "a member of the .npz file",
                need: self.bytes,
                have: self.packed,
            }),
            super::STORED | super::DEFLATED => Ok(()),
            method => Err(NpyError::Method { name: self.printable(), method }),
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
