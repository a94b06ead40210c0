//! Opening a TBL file: the header, and the positions of index and metadata.

use std::ops::Range;
use std::sync::OnceLock;

use tbl_format::{FormatError, v1, v2};

use super::entry::Header;
use super::metadata::Metadata;
use super::region::Region;
use super::{Damage, ReadOptions, TblFile};
use crate::error::ReadError;
use crate::source::Source;
use crate::view::ViewMap;

/// The content of a header, checked against the file's length.
struct Layout {
    header: Header,
    sample_count: u64,
    metadata: Option<Range<u64>>,
}

pub(super) fn open(source: Source, options: ReadOptions) -> Result<TblFile, ReadError> {
    let mut front = [0; v2::FileHeader::SIZE];
    let have = usize::try_from(source.len()).map_or(front.len(), |len| len.min(front.len()));
    let front = &mut front[..have];
    source.read_exact_at(0, front)?;
    open_with_front(source, front, options)
}

/// Opens a file as if it started with `front`, which holds a header.
pub(super) fn open_with_front(
    source: Source,
    front: &[u8],
    options: ReadOptions,
) -> Result<TblFile, ReadError> {
    let mut defects = Defects { damage: options.damage, found: Vec::new() };
    let layout = if tbl_format::sniff(front) == Some(1) {
        layout_v1(front, source.len(), &mut defects)
    } else {
        layout_v2(front, source.len(), &mut defects)
    };
    let Layout { header, sample_count, metadata } = layout.map_err(|defect| ReadError::Format {
        location: source.location().clone(),
        offset: 0,
        source: defect,
    })?;

    let version = header.version();
    // Both layouts found room for this many entries in the file, so nothing overflows.
    let index_bytes = sample_count * version.entry_bytes() as u64;
    let index = Region::open(&source, version.header_bytes(), index_bytes)?;
    let opened = metadata.map(|range| {
        Metadata::open(&source, range, sample_count, options.damage, &mut defects.found)
    });
    let metadata = match opened {
        None => Metadata::none(),
        Some(Err(ReadError::Format { source: defect, .. }))
            if options.damage == Damage::LeaveOut =>
        {
            defects.found.push(defect);
            Metadata::none()
        }
        Some(metadata) => metadata?,
    };
    let index_end = version.header_bytes() + index_bytes;
    let defects = defects.found;
    let views = ViewMap::default();
    let dictionary = OnceLock::new();
    Ok(TblFile {
        source,
        options,
        header,
        sample_count,
        index,
        index_end,
        metadata,
        dictionary,
        defects,
        views,
    })
}

/// Damage that is left out where that was asked for.
struct Defects {
    damage: Damage,
    found: Vec<FormatError>,
}

impl Defects {
    /// Passes good values and damage on, or notes the damage and returns `None`.
    fn tolerate<T>(&mut self, result: Result<T, FormatError>) -> Result<Option<T>, FormatError> {
        match (result, self.damage) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(defect), Damage::Refuse) => Err(defect),
            (Err(defect), Damage::LeaveOut) => {
                self.found.push(defect);
                Ok(None)
            }
        }
    }
}

fn layout_v1(front: &[u8], file_bytes: u64, defects: &mut Defects) -> Result<Layout, FormatError> {
    let (file_header, _) = v1::FileHeader::parse(front)?;
    let header = Header::V1 { custom: file_header.custom_metadata() };
    let whole = defects.tolerate(file_header.index_range(file_bytes))?.is_some();
    let sample_count =
        if whole { file_header.sample_count() } else { entries_that_fit(header, file_bytes) };
    Ok(Layout { header, sample_count, metadata: None })
}

fn layout_v2(front: &[u8], file_bytes: u64, defects: &mut Defects) -> Result<Layout, FormatError> {
    let (file_header, _) = v2::FileHeader::parse_unverified(front)?;
    defects.tolerate(file_header.verify())?;
    let header = Header::V2 { flags: file_header.flags() };
    let whole = defects.tolerate(file_header.index_range(file_bytes))?.is_some();
    let sample_count =
        if whole { file_header.sample_count() } else { entries_that_fit(header, file_bytes) };
    let metadata = defects.tolerate(file_header.metadata_range(file_bytes))?.flatten();
    Ok(Layout { header, sample_count, metadata })
}

/// How many index entries a file cut short can still have.
fn entries_that_fit(header: Header, file_bytes: u64) -> u64 {
    let version = header.version();
    file_bytes.saturating_sub(version.header_bytes()) / version.entry_bytes() as u64
}
