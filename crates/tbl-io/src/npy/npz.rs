//! Members of `.npz` files, which are ZIP archives of `.npy` files.
//!
//! Only what NumPy writes is read: members that are stored or deflated, found by the central
//! directory (APPNOTE.TXT 6.3.10, sections 4.3.7 to 4.3.16). Archives of several disks, encrypted
//! members and members of 4 GiB and more are refused.

use std::io::Read;

use flate2::{Crc, read::DeflateDecoder};

use crate::escape::Escaped;

use super::NpyError;

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const CENTRAL_BYTES: usize = 46;
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;

/// The longest comment that can follow the end record.
const MAX_COMMENT: usize = u16::MAX as usize;

/// Names that an error lists.
const MAX_LISTED: usize = 16;

/// Replaces `out` with member `name` of an `.npz` file: the bytes of a `.npy` file of at most `limit`
/// bytes. The name may lack `.npy`, as it does in NumPy.
///
/// # Errors
/// [`NpyError`] for another file, a damaged one, a missing or too large member.
pub fn npz_member(bytes: &[u8], name: &str, limit: u64, out: &mut Vec<u8>) -> Result<(), NpyError> {
    let mut found = Vec::new();
    for member in members(bytes)? {
        let member = member?;
        let own = member.name;
        if own != name.as_bytes() && own.strip_suffix(b".npy") != Some(name.as_bytes()) {
            if found.len() < MAX_LISTED {
                let own = own.strip_suffix(b".npy").unwrap_or(own);
                found.push(Escaped(own).to_string());
            }
            continue;
        }
        return member.read(bytes, name, limit, out);
    }
    Err(NpyError::NoMember { name: name.to_owned(), found })
}

/// An entry of the central directory.
struct Member<'a> {
    name: &'a [u8],
    method: u16,
    crc: u32,
    packed: u32,
    bytes: u32,
    local: u32,
}

/// The entries of the central directory in order, until one is damaged.
fn members(bytes: &[u8]) -> Result<impl Iterator<Item = Result<Member<'_>, NpyError>>, NpyError> {
    let last = bytes.len().checked_sub(END_BYTES);
    let first = last.map_or(0, |last| last.saturating_sub(MAX_COMMENT));
    let end = last.and_then(|last| (first..=last).rev().find(|&at| bytes[at..].starts_with(&END)));
    let expected = "the end of a ZIP directory";
    let end = end.ok_or(NpyError::Zip { offset: bytes.len() as u64, expected })?;
    let count = u16_at(bytes, end + 10).unwrap_or(0);
    let mut at = u32_at(bytes, end + 16).unwrap_or(0) as usize;
    Ok((0..count).scan(false, move |failed, _| {
        if *failed {
            return None;
        }
        let member = entry(bytes, &mut at);
        *failed = member.is_none();
        let expected = "an entry of the ZIP directory";
        Some(member.ok_or(NpyError::Zip { offset: at as u64, expected }))
    }))
}

/// Reads the entry at `at`, and moves `at` to the next one.
fn entry<'a>(bytes: &'a [u8], at: &mut usize) -> Option<Member<'a>> {
    let header = bytes.get(*at..at.checked_add(CENTRAL_BYTES)?)?;
    if !header.starts_with(&CENTRAL) {
        return None;
    }
    let length = |place| u16_at(header, place).map(usize::from);
    let start = *at + CENTRAL_BYTES;
    let name_end = start.checked_add(length(28)?)?;
    let name = bytes.get(start..name_end)?;
    *at = name_end.checked_add(length(30)?)?.checked_add(length(32)?)?;
    Some(Member {
        name,
        method: u16_at(header, 10)?,
        crc: u32_at(header, 16)?,
        packed: u32_at(header, 20)?,
        bytes: u32_at(header, 24)?,
        local: u32_at(header, 42)?,
    })
}

impl Member<'_> {
    fn read(&self, file: &[u8], name: &str, limit: u64, out: &mut Vec<u8>) -> Result<(), NpyError> {
        let bytes = u64::from(self.bytes);
        if bytes > limit {
            return Err(NpyError::Limit { name: name.to_owned(), bytes, limit });
        }
        let packed = self.packed(file).ok_or(NpyError::Zip {
            offset: self.local.into(),
            expected: "a member of the ZIP archive",
        })?;
        out.clear();
        match self.method {
            0 => out.extend_from_slice(packed),
            8 => {
                // Deflate expands at most 1032 times, so the member's size may be reserved only then.
                let largest = (packed.len() as u64).saturating_mul(1032);
                out.reserve(usize::try_from(bytes.min(largest)).unwrap_or(0));
                // One byte more than the directory says would show that it is wrong.
                let mut inflated = DeflateDecoder::new(packed).take(bytes + 1);
                let read = inflated.read_to_end(out);
                read.map_err(|_| NpyError::Deflate { name: name.to_owned() })?;
            }
            method => return Err(NpyError::Method { name: name.to_owned(), method }),
        }
        if out.len() as u64 != bytes {
            let have = out.len() as u64;
            return Err(NpyError::Truncated {
                what: "a member of the .npz file",
                need: bytes,
                have,
            });
        }
        let mut crc = Crc::new();
        crc.update(out);
        let stored = self.crc;
        let computed = crc.sum();
        if stored != computed {
            return Err(NpyError::Checksum { name: name.to_owned(), stored, computed });
        }
        Ok(())
    }

    /// The bytes of the member as they are stored.
    fn packed<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let local = file.get(self.local as usize..)?;
        let header = local.get(..LOCAL_BYTES)?;
        if !header.starts_with(&LOCAL) {
            return None;
        }
        let start =
            LOCAL_BYTES + usize::from(u16_at(header, 26)?) + usize::from(u16_at(header, 28)?);
        local.get(start..start.checked_add(self.packed as usize)?)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
