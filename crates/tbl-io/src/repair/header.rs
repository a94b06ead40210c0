//! The right content of a damaged TBL header, worked out from the rest of the file.

use std::ops::Range;

use tbl_format::metadata::BlockHeader;
use tbl_format::{FormatError, v1, v2};

use crate::error::ReadError;
use crate::source::Source;
use crate::tbl_version::TblVersion;

/// Index entries looked at to judge a sample count.
const MAX_JUDGED_ENTRIES: u64 = 1 << 20;

/// Entries read at a time.
const ENTRIES_PER_READ: u64 = 1 << 12;

/// The weight of a wrong entry against right ones: in a true index nearly all are right.
const WRONG_WEIGHT: i64 = 4;

/// Whether the file is a TBL file, with one damaged byte of the magic forgiven.
pub(super) fn recognise(source: &Source) -> Result<Option<TblVersion>, ReadError> {
    let mut front = [0; 8];
    if source.len() < front.len() as u64 {
        return Ok(None);
    }
    source.read_exact_at(0, &mut front)?;
    // Magic and version together say one thing twice.
    let agrees = |magic: [u8; 4], version: u32| {
        let expected = magic.into_iter().chain(version.to_le_bytes());
        front.iter().zip(expected).filter(|&(&found, expected)| found == expected).count() >= 7
    };
    let is_v2 = |version| agrees(v2::FileHeader::MAGIC, version);
    Ok(if is_v2(v2::FileHeader::VERSION) || is_v2(v2::FileHeader::ZSTD_VERSION) {
        Some(TblVersion::V2)
    } else if agrees(v1::FileHeader::MAGIC, v1::FileHeader::VERSION) {
        Some(TblVersion::V1)
    } else {
        None
    })
}

/// A header to read a damaged file by.
pub(super) struct Rebuilt {
    /// As it would stand at the front of the file.
    pub(super) front: Vec<u8>,
    /// How many samples the index has entries for.
    pub(super) sample_count: u64,
    /// How many samples the file says it has.
    pub(super) claimed: u64,
    /// Neither the header's count nor its size of header and index confirms `sample_count`.
    pub(super) guessed_count: bool,
    /// The metadata section is not all there.
    pub(super) cuts_metadata: bool,
    /// The defect of the stored header.
    pub(super) defects: Vec<FormatError>,
}

/// The header of a version 1 file; it has no checksum, so only its count can be judged.
pub(super) fn rebuild_v1(source: &Source) -> Result<Rebuilt, ReadError> {
    let layout = Layout { header: 32, entry: v1::IndexEntry::SIZE as u64, size_at: 16 };
    let front = read_front::<{ v1::FileHeader::SIZE }>(source)?;
    let mut defects: Vec<_> = v1::FileHeader::parse(&front).err().into_iter().collect();
    let mut claimed = le_u64(&front, 8);
    // The original's writer says the count twice; a seed-style header does not.
    let said_twice = layout.index_end(claimed) == Some(le_u32(&front, layout.size_at));
    let sample_count = if said_twice && layout.fits(source, claimed) {
        claimed
    } else {
        layout.sample_count(source, &front)?
    };
    let guessed_count = !said_twice && !layout.is_stored_count(&front, sample_count);
    if claimed != sample_count {
        let sample_count = claimed;
        let file_bytes = source.len();
        defects.push(FormatError::IndexBeyondEnd { sample_count, file_bytes });
    }
    // A count said twice is that of a file cut short, and one that fits may be right. Any other is
    // a damaged one.
    let may_be_right = guessed_count && layout.fits(source, claimed);
    if !said_twice && !may_be_right {
        claimed = sample_count;
    }
    let header =
        v1::FileHeader::new(sample_count).map_err(|defect| format_error(source, 0, defect))?;
    let custom = if said_twice { None } else { custom_fields(&front, &header) };
    let header = custom.map_or(header, |custom| header.with_custom_metadata(custom));
    let front = header.to_bytes().to_vec();
    Ok(Rebuilt { front, sample_count, claimed, guessed_count, cuts_metadata: false, defects })
}

/// The application's fields in `front`, where the file should have `expected`. A size of header and
/// index with one damaged byte is not taken for such fields.
fn custom_fields(
    front: &[u8; v1::FileHeader::SIZE],
    expected: &v1::FileHeader,
) -> Option<v1::CustomMetadata> {
    let mut bytes = expected.to_bytes();
    let differing = front.iter().zip(&bytes).skip(16).filter(|(stored, right)| stored != right);
    if differing.count() < 2 {
        return None;
    }
    // Judged by the count that the file has, not by the one in its header.
    bytes.get_mut(16..)?.copy_from_slice(front.get(16..)?);
    v1::FileHeader::parse(&bytes).ok()?.0.custom_metadata()
}

/// The header of a version 2 file. A header whose checksum is right is believed, except what
/// lies beyond the end of the file.
pub(super) fn rebuild_v2(source: &Source) -> Result<Rebuilt, ReadError> {
    let layout = Layout { header: 64, entry: v2::IndexEntry::SIZE as u64, size_at: 16 };
    let front = read_front::<{ v2::FileHeader::SIZE }>(source)?;
    let mut defects = Vec::new();
    let mut claimed = le_u64(&front, 8);
    let (sample_count, flags) = match v2::FileHeader::parse(&front) {
        Ok((header, _)) => {
            let room = source.len().saturating_sub(layout.header) / layout.entry;
            if let Err(defect) = header.index_range(source.len()) {
                defects.push(defect);
            }
            (claimed.min(room), header.flags())
        }
        Err(defect) => {
            defects.push(defect);
            let found = layout.sample_count(source, &front)?;
            claimed = found;
            (found, v2::FileFlags::HAS_CHECKSUMS)
        }
    };
    // A count that the header's checksum confirms is not a guess, even if the file was cut short.
    let guessed_count = claimed == sample_count && !layout.is_stored_count(&front, sample_count);
    let start = le_u64(&front, 24);
    let end = le_u64(&front, 24).saturating_add(le_u64(&front, 32));
    let payload_end = layout.payload_end(source, sample_count)?;
    // Where the header may be wrong about the section, the longest run of blocks is the likeliest.
    let tries = [(start, end), (start, source.len()), (payload_end, source.len())];
    let mut section = None;
    // Blocks of samples that do not exist are odd, but do not end a section that is known.
    let described = if defects.is_empty() { u64::MAX } else { sample_count };
    for (start, end) in tries.into_iter().take(if defects.is_empty() { 1 } else { tries.len() }) {
        let found = whole_blocks(source, start, end, described)?;
        let bytes = |section: &Option<Range<u64>>| {
            section.as_ref().map_or(0, |section| section.end - section.start)
        };
        if bytes(&found) > bytes(&section) {
            section = found;
        }
    }
    let cuts_metadata = start != 0 && section.as_ref() != Some(&(start..end));
    if cuts_metadata {
        let offset = start;
        let bytes = end.saturating_sub(start);
        let file_bytes = source.len();
        defects.push(FormatError::BeyondEnd {
            what: "metadata section",
            offset,
            bytes,
            file_bytes,
        });
    }
    let front = v2::FileHeader::new(sample_count, section.unwrap_or(0..0), flags)
        .map_err(|defect| format_error(source, 0, defect))?
        .to_bytes()
        .to_vec();
    Ok(Rebuilt { front, sample_count, claimed, guessed_count, cuts_metadata, defects })
}

/// The blocks from `start` on that lie whole before `end` and describe samples that exist.
fn whole_blocks(
    source: &Source,
    start: u64,
    end: u64,
    sample_count: u64,
) -> Result<Option<Range<u64>>, ReadError> {
    let header_bytes = BlockHeader::SIZE as u64;
    let end = end.min(source.len());
    let mut at = start;
    while start >= v2::FileHeader::SIZE as u64 && end.saturating_sub(at) >= header_bytes {
        let mut header = [0; BlockHeader::SIZE];
        source.read_exact_at(at, &mut header)?;
        let sample_index = le_u64(&header, 0);
        let data_bytes = le_u32(&header, 8);
        let is_sample = sample_index < sample_count || sample_index == BlockHeader::WHOLE_FILE;
        let next = at + header_bytes + data_bytes;
        if !is_sample || next > end {
            break;
        }
        at = next;
    }
    Ok((at > start).then_some(start..at))
}

/// The sizes of a version's header and index entries.
struct Layout {
    header: u64,
    entry: u64,
    /// The offset at which the header repeats the size of header and index as a `u32`.
    size_at: usize,
}

/// The part of an entry that both versions have in common.
struct Extent {
    offset: u64,
    stored_bytes: u64,
}

impl Layout {
    fn index_end(&self, sample_count: u64) -> Option<u64> {
        sample_count.checked_mul(self.entry)?.checked_add(self.header)
    }

    /// Whether the header says that there are this many samples, in either of its two fields.
    fn is_stored_count(&self, front: &[u8], sample_count: u64) -> bool {
        le_u64(front, 8) == sample_count
            || self.index_end(sample_count) == Some(le_u32(front, self.size_at))
    }

    fn fits(&self, source: &Source, sample_count: u64) -> bool {
        self.index_end(sample_count).is_some_and(|end| end <= source.len())
    }

    /// The likeliest sample count: the header says it twice, and the first sample usually starts
    /// where the index ends.
    fn sample_count(&self, source: &Source, front: &[u8]) -> Result<u64, ReadError> {
        let room = source.len().saturating_sub(self.header) / self.entry;
        let from_size = |size: u64| size.saturating_sub(self.header) / self.entry;
        let mut candidates = vec![le_u64(front, 8), from_size(le_u32(front, self.size_at))];
        self.for_each_entry(source, room.min(4), |extent| {
            candidates.push(from_size(extent.offset.saturating_sub(extent.stored_bytes)));
            candidates.push(from_size(extent.offset));
        })?;
        candidates.retain(|&count| count <= room);
        let mut best = (0, 0);
        for count in candidates {
            best = best.max((self.score(source, count)?, count));
        }
        Ok(best.1)
    }

    /// A score of how well the index fits the file if it has this many entries.
    fn score(&self, source: &Source, sample_count: u64) -> Result<i64, ReadError> {
        let index_end = self.index_end(sample_count).unwrap_or(u64::MAX);
        let mut score = 0;
        let mut previous_end = index_end;
        let judged = sample_count.min(MAX_JUDGED_ENTRIES);
        self.for_each_entry(source, judged, |Extent { offset, stored_bytes }| {
            let end = offset.saturating_add(stored_bytes);
            let is_inside = offset >= index_end && end <= source.len();
            score += if is_inside || offset == previous_end { 1 } else { -WRONG_WEIGHT };
            previous_end = end;
        })?;
        Ok(score)
    }

    /// The end of the last payload that lies inside the file.
    fn payload_end(&self, source: &Source, sample_count: u64) -> Result<u64, ReadError> {
        let mut last = self.index_end(sample_count).unwrap_or(u64::MAX);
        self.for_each_entry(source, sample_count, |Extent { offset, stored_bytes }| {
            let end = offset.saturating_add(stored_bytes);
            if end <= source.len() {
                last = last.max(end);
            }
        })?;
        Ok(last)
    }

    fn for_each_entry(
        &self,
        source: &Source,
        count: u64,
        mut visit: impl FnMut(Extent),
    ) -> Result<(), ReadError> {
        let mut chunk = Vec::new();
        let entry_bytes = usize::try_from(self.entry).unwrap_or(usize::MAX);
        let mut first = 0;
        while first < count {
            let take = (count - first).min(ENTRIES_PER_READ);
            source.read_range_into(
                self.header + first * self.entry,
                take * self.entry,
                &mut chunk,
            )?;
            for entry in chunk.chunks_exact(entry_bytes) {
                let stored_bytes = le_u32(entry, 8);
                visit(Extent { offset: le_u64(entry, 0), stored_bytes });
            }
            first += take;
        }
        Ok(())
    }
}

fn read_front<const N: usize>(source: &Source) -> Result<[u8; N], ReadError> {
    let mut front = [0; N];
    if source.len() < N as u64 {
        let need = N as u64;
        let have = source.len();
        let defect = FormatError::Truncated { what: "file header", need, have };
        return Err(format_error(source, 0, defect));
    }
    source.read_exact_at(0, &mut front)?;
    Ok(front)
}

fn format_error(source: &Source, offset: u64, defect: FormatError) -> ReadError {
    ReadError::Format { location: source.location().clone(), offset, source: defect }
}

/// The eight bytes at `at`, which the callers' buffers have.
fn le_u64(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

/// The four bytes at `at`, which are followed by four more.
fn le_u32(bytes: &[u8], at: usize) -> u64 {
    le_u64(bytes, at) & u64::from(u32::MAX)
}
