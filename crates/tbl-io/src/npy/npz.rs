//! Members of `.npz` files, which are ZIP archives of `.npy` files.
//!
//! Only what NumPy writes is read: members that are stored or deflated. Archives of several disks and
//! encrypted members are refused.

use std::borrow::Cow;
use std::io::Read;

use flate2::{Crc, read::DeflateDecoder};

use super::zip::{Directory, Entry, LOCAL_BYTES};
use super::{DEFLATED, NpyError};
use crate::error::ReadError;
use crate::source::Source;

/// Names that an error lists.
const MAX_LISTED: usize = 16;

/// The most bytes that one byte of deflate data stands for.
const MOST_EXPANSION: u64 = 1032;

/// Replaces `out` with member `name` of an `.npz` file: the bytes of a `.npy` file of at most `limit`
/// bytes. The name may lack `.npy`, as it does in NumPy.
///
/// # Errors
/// [`NpyError`] for another file, a damaged one, a missing or too large member.
pub fn npz_member(bytes: &[u8], name: &str, limit: u64, out: &mut Vec<u8>) -> Result<(), NpyError> {
    let read = |offset, len| {
        slice(bytes, offset, len)
            .map(Cow::Borrowed)
            .ok_or(NpyError::Zip { offset, expected: "a part of the ZIP directory" })
    };
    let directory = Directory::read(bytes.len() as u64, read)?;
    let is_it = |entry: &&Entry| {
        entry.name == name.as_bytes() || entry.name.strip_suffix(b".npy") == Some(name.as_bytes())
    };
    let Some(entry) = directory.entries.iter().find(is_it) else {
        let found = directory.entries.iter().take(MAX_LISTED).map(Entry::printable).collect();
        return Err(NpyError::NoMember { name: name.to_owned(), found });
    };
    if entry.bytes > limit {
        let bytes = entry.bytes;
        return Err(NpyError::Limit { name: name.to_owned(), bytes, limit });
    }
    entry.check()?;
    let header = slice(bytes, entry.local, LOCAL_BYTES);
    let packed = header.and_then(|header| entry.content_offset(header));
    let packed = packed.and_then(|start| slice(bytes, start, entry.packed));
    let packed = packed.ok_or(no_member(entry.local))?;
    NpzMember::of(entry, 0).unpack(packed, out)
}

fn no_member(offset: u64) -> NpyError {
    NpyError::Zip { offset, expected: "a member of the ZIP archive" }
}

fn slice(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..)?.get(..usize::try_from(len).ok()?)
}

/// The place of a member of an `.npz` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpzMember {
    /// Its name without `.npy`, as one printable line.
    pub name: String,
    /// True if the name ends with `.npy`.
    pub is_array: bool,
    /// True if it is deflated; otherwise it lies in the file as it is.
    pub is_deflated: bool,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Bytes that it takes there.
    pub stored_bytes: u64,
    /// Bytes of its content, a `.npy` file.
    pub bytes: u64,
    crc: u32,
}

/// The members of an `.npz` file in the order of its directory. None overlaps another one, and each
/// lies in the file before the directory.
///
/// # Errors
/// [`NpyError`] for a damaged directory and members that NumPy does not write, and those of reading.
pub fn npz_members<E: From<NpyError> + From<ReadError>>(
    source: &Source,
) -> Result<Vec<NpzMember>, E> {
    let read = |offset, len| {
        let mut bytes = Vec::new();
        source.read_range_into(offset, len, &mut bytes)?;
        Ok::<_, E>(Cow::Owned(bytes))
    };
    let Directory { entries, start } = Directory::read(source.len(), read)?;
    let is_outside =
        |entry: &&Entry| entry.local.checked_add(LOCAL_BYTES).is_none_or(|end| end > start);
    if let Some(entry) = entries.iter().find(is_outside) {
        return Err(no_member(entry.local).into());
    }
    let headers: Vec<_> = entries.iter().map(|entry| (entry.local, LOCAL_BYTES)).collect();
    let headers = source.read_ranges(&headers)?;
    let mut members = Vec::with_capacity(entries.len());
    let mut ranges = Vec::with_capacity(entries.len());
    for (entry, header) in entries.iter().zip(headers) {
        entry.check()?;
        let offset = entry.content_offset(&header).ok_or(no_member(entry.local))?;
        let end = offset.checked_add(entry.packed).filter(|&end| end <= start);
        ranges.push((entry.local, end.ok_or(no_member(entry.local))?));
        members.push(NpzMember::of(entry, offset));
    }
    ranges.sort_unstable();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        let expected = "members of the ZIP archive that do not overlap";
        return Err(NpyError::Zip { offset: pair[1].0, expected }.into());
    }
    Ok(members)
}

impl NpzMember {
    fn of(entry: &Entry, offset: u64) -> Self {
        Self {
            name: entry.printable(),
            is_array: entry.name.ends_with(b".npy"),
            is_deflated: entry.method == DEFLATED,
            offset,
            stored_bytes: entry.packed,
            bytes: entry.bytes,
            crc: entry.crc,
        }
    }

    /// Replaces `out` with the content, of which `packed` are the bytes in the file, and checks its
    /// length and checksum. No more memory is taken than the directory states.
    ///
    /// # Errors
    /// [`NpyError`] for damaged bytes.
    pub fn unpack(&self, packed: &[u8], out: &mut Vec<u8>) -> Result<(), NpyError> {
        out.clear();
        if self.is_deflated {
            let largest = (packed.len() as u64).saturating_mul(MOST_EXPANSION);
            out.reserve_exact(usize::try_from(self.bytes.min(largest)).unwrap_or(0));
            // One byte more than the directory says would show that it is wrong.
            let mut inflated = DeflateDecoder::new(packed).take(self.bytes.saturating_add(1));
            let read = inflated.read_to_end(out);
            read.map_err(|_| NpyError::Deflate { name: self.name.clone() })?;
        } else {
            out.extend_from_slice(packed);
        }
        if out.len() as u64 != self.bytes {
            return Err(NpyError::Truncated {
                what: "a member of the .npz file",
                need: self.bytes,
                have: out.len() as u64,
            });
        }
        let mut crc = Crc::new();
        crc.update(out);
        self.check_crc(crc.sum())
    }

    /// The first bytes of the content, at most `most`, of which `packed` are the first bytes in the
    /// file.
    ///
    /// # Errors
    /// [`NpyError`] for damaged bytes.
    pub fn front(&self, packed: &[u8], most: u64) -> Result<Vec<u8>, NpyError> {
        let mut front = Vec::new();
        if !self.is_deflated {
            front.extend_from_slice(packed);
            front.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            return Ok(front);
        }
        let mut inflated = DeflateDecoder::new(packed).take(most.min(self.bytes));
        match inflated.read_to_end(&mut front) {
            // The rest of the packed bytes is not there, so they may end early.
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                Err(NpyError::Deflate { name: self.name.clone() })
            }
            Ok(_) | Err(_) => Ok(front),
        }
    }

    /// Reads a stored member in parts, and checks it against its checksum.
    ///
    /// # Errors
    /// [`NpyError::Checksum`], and those of reading.
    pub fn verify_stored<E: From<NpyError> + From<ReadError>>(
        &self,
        source: &Source,
    ) -> Result<(), E> {
        const PART: u64 = 1 << 20;
        let mut crc = Crc::new();
        let mut bytes = Vec::new();
        let mut done = 0;
        while done < self.stored_bytes {
            let part = PART.min(self.stored_bytes - done);
            source.read_range_into(self.offset + done, part, &mut bytes)?;
            crc.update(&bytes);
            done += part;
        }
        Ok(self.check_crc(crc.sum())?)
    }

    fn check_crc(&self, computed: u32) -> Result<(), NpyError> {
        let stored = self.crc;
        if stored == computed {
            return Ok(());
        }
        Err(NpyError::Checksum { name: self.name.clone(), stored, computed })
    }
}
