//! The end of a file: its magic and its footer.

use tbl_format::checksum::crc32c;
use tbl_io::{ReadError, ReadLimits, RowsDefect, Source};

use crate::file::{MAGIC, in_file};
use crate::footer::{self, Footer};
use crate::thrift::Flaw;

/// The magic of a file whose footer is encrypted.
const ENCRYPTED_MAGIC: [u8; 4] = *b"PARE";

/// The length and the magic at the end.
const TAIL_BYTES: u64 = 8;

/// Bytes that are read at the end of a file, which have the footer of most.
const TAIL_READ: u64 = 64 << 10;

/// As [`TAIL_READ`], of a file that is not mapped, whose end has its offset indexes too: a request takes
/// as long as the transfer of a megabyte.
const TAIL_REQUEST: u64 = 512 << 10;

/// The end of a file.
pub(crate) struct Tail {
    pub(crate) footer: Footer,
    /// The CRC-32C of the footer's bytes.
    pub(crate) crc32c: u32,
    /// The last bytes of the file, with their offset.
    pub(crate) last: (u64, Vec<u8>),
}

/// Reads the footer, with what comes with it.
pub(crate) fn read_tail(source: &Source, limits: ReadLimits) -> Result<Tail, ReadError> {
    let flaw = |offset, defect| in_file(source, Flaw::new(offset, defect));
    let len = source.len();
    let mut head = [0; MAGIC.len()];
    let least = MAGIC.len() as u64 + TAIL_BYTES;
    if len < least {
        return Err(flaw(0, RowsDefect::Short { bytes: len, least }));
    }
    source.read_exact_at(0, &mut head)?;
    if head != MAGIC && head != ENCRYPTED_MAGIC {
        return Err(flaw(0, RowsDefect::Magic { found: head }));
    }
    let tail_bytes = if source.is_mappable() { TAIL_READ } else { TAIL_REQUEST };
    let tail_start = len - tail_bytes.min(len);
    let mut tail = Vec::new();
    source.read_range_into(tail_start, len - tail_start, &mut tail)?;
    let Some((rest, magic)) = tail.split_last_chunk::<4>() else {
        return Err(flaw(0, RowsDefect::Short { bytes: len, least }));
    };
    match *magic {
        MAGIC => {}
        ENCRYPTED_MAGIC => return Err(flaw(len - TAIL_BYTES, RowsDefect::Encrypted)),
        found => return Err(flaw(len - 4, RowsDefect::Magic { found })),
    }
    let length = rest.last_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    let end = len - TAIL_BYTES;
    let length = u64::from(length);
    let start = end.checked_sub(length).filter(|&start| start >= MAGIC.len() as u64);
    let Some(start) = start.filter(|_| length <= limits.sample_bytes) else {
        let limit = (end - MAGIC.len() as u64).min(limits.sample_bytes);
        let what = "length of the footer";
        return Err(flaw(end, RowsDefect::TooLarge { what, found: length, limit }));
    };
    let mut long = Vec::new();
    let bytes = if start < tail_start {
        source.read_range_into(start, length, &mut long)?;
        Some(&*long)
    } else {
        let first = usize::try_from(start - tail_start).unwrap_or(0);
        let last = usize::try_from(end - tail_start).unwrap_or(0);
        tail.get(first..last)
    };
    let bytes = bytes.unwrap_or_default();
    let crc32c = crc32c(bytes);
    let footer = footer::parse(bytes, start, start).map_err(|flaw| in_file(source, flaw))?;
    Ok(Tail { footer, crc32c, last: (tail_start, tail) })
}
