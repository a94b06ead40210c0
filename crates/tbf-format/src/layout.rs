//! The places of a segment's regions, computed from header and footer in constant time.

use core::ops::Range;

use crate::aligned::ALIGNMENT;
use crate::bloom::Bloom;
use crate::columns::{MAX_NODES, column_offsets};
use crate::edges::{self, Adjacency};
use crate::error::FormatError;
use crate::footer::{Footer, RegionEntry};
use crate::header::{Compression, FileHeader, Flags};
use crate::index;
use crate::region::{Dialect, Region};

/// A region's place in the segment.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) range: Range<usize>,
    /// Whether the bytes are stored as they are.
    pub(crate) is_plain: bool,
}

/// The regions of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) footer: Option<Footer>,
    pub(crate) footer_range: Range<usize>,
    pub(crate) extents: [Option<Extent>; Region::DATA.len()],
    /// How many edges are stored, where that can be seen without unpacking.
    pub(crate) stored_edges: Option<u64>,
}

impl Layout {
    /// The regions of the segment that is all of `bytes`.
    pub(crate) fn new(bytes: &[u8], header: &FileHeader) -> Result<Self, FormatError> {
        check_counts(header)?;
        let footer_range = footer_range(bytes, header)?;
        let footer = match bytes.get(footer_range.clone()) {
            Some(footer) if !footer.is_empty() => Some(Footer::parse(footer)?),
            _ => None,
        };
        check_footer(bytes, header, footer.as_ref())?;
        let mut extents = [const { None }; Region::DATA.len()];
        for (region, place) in Region::DATA.into_iter().zip(&mut extents) {
            if is_present(header, region)? {
                let entry = footer.as_ref().and_then(|footer| footer.entry(region));
                *place = Some(extent(bytes, header, region, entry)?);
            }
        }
        let mut layout = Self { footer, footer_range, extents, stored_edges: None };
        layout.check_overlaps()?;
        layout.stored_edges = layout.check_contents(bytes, header)?;
        Ok(layout)
    }

    pub(crate) fn extent(&self, region: Region) -> Option<&Extent> {
        self.extents.get(region.slot()?)?.as_ref()
    }

    /// The regions with their places, in the order of those.
    pub(crate) fn in_order(&self) -> ([(Region, Range<usize>); 8], usize) {
        let mut all = [const { (Region::Header, 0..0) }; 8];
        let header = (Region::Header, 0..FileHeader::SIZE);
        let footer = (Region::Footer, self.footer_range.clone());
        let data = Region::DATA.into_iter().zip(&self.extents);
        let data =
            data.filter_map(|(region, extent)| Some((region, extent.as_ref()?.range.clone())));
        let present = [header].into_iter().chain(data).chain([footer]);
        let mut count = 0;
        for (place, part) in all.iter_mut().zip(present.filter(|(_, range)| !range.is_empty())) {
            *place = part;
            count += 1;
        }
        if let Some(present) = all.get_mut(..count) {
            present.sort_unstable_by_key(|(_, range)| range.start);
        }
        (all, count)
    }

    fn check_overlaps(&self) -> Result<(), FormatError> {
        let (parts, count) = self.in_order();
        let parts = parts.get(..count).unwrap_or_default();
        for ((first, before), (second, after)) in parts.iter().zip(parts.iter().skip(1)) {
            if after.start < before.end {
                let first = *first;
                let second = *second;
                let offset = after.start as u64;
                return Err(FormatError::Overlap { first, second, offset });
            }
        }
        Ok(())
    }

    /// Compares what plain regions say of themselves with header and footer, and returns the
    /// number of edges stored.
    fn check_contents(
        &self,
        bytes: &[u8],
        header: &FileHeader,
    ) -> Result<Option<u64>, FormatError> {
        let mut stored_edges = None;
        for region in [Region::Bloom, Region::Edges] {
            let extent = self.extent(region).filter(|extent| extent.is_plain);
            if let Some(bytes) = extent.and_then(|extent| bytes.get(extent.range.clone())) {
                stored_edges = check_region(region, bytes, header)?;
            }
        }
        Ok(stored_edges)
    }
}

/// Compares what a region says of itself with its length and the header. For edges, returns how
/// many are stored.
pub(crate) fn check_region(
    region: Region,
    bytes: &[u8],
    header: &FileHeader,
) -> Result<Option<u64>, FormatError> {
    if region == Region::Bloom {
        let stated = bytes.len() as u64;
        let found = Bloom::parse(bytes)?.byte_len() as u64;
        if stated != found {
            let what = "length of the bloom filter";
            return Err(FormatError::Contradiction { what, stated, found });
        }
    }
    if region != Region::Edges {
        return Ok(None);
    }
    let found = Adjacency::parse(bytes, header.node_count())?.edges().len() as u64;
    let stated = header.edge_count();
    if header.dialect() == Dialect::Published && stated != found {
        return Err(FormatError::Contradiction { what: "edge_count", stated, found });
    }
    Ok(Some(found))
}

fn check_counts(header: &FileHeader) -> Result<(), FormatError> {
    let count = header.node_count();
    let flags = header.flags();
    if flags.contains(Flags::IS_PARTIAL) {
        return Err(FormatError::Partial);
    }
    if count > MAX_NODES {
        return Err(FormatError::TooMany { what: "nodes", count, limit: MAX_NODES });
    }
    let dim = u64::from(header.embedding_dim());
    if header.has_embeddings() && (dim == 0 || count == 0) {
        let what = "presence of embeddings";
        return Err(FormatError::Contradiction { what, stated: 1, found: dim.min(count) });
    }
    Ok(())
}

fn is_present(header: &FileHeader, region: Region) -> Result<bool, FormatError> {
    let has_offset = header.offset(region) != 0;
    let (is_required, is_wanted) = match region {
        Region::Nodes | Region::Edges => (true, true),
        Region::Embeddings => (header.has_embeddings(), header.has_embeddings()),
        Region::Bloom | Region::Strings | Region::Index => (false, true),
        Region::Header | Region::Footer => (false, false),
    };
    if is_required && !has_offset {
        return Err(FormatError::Absent { region });
    }
    Ok(has_offset && is_wanted)
}

/// The bytes of the footer, which reaches to the end; empty when the segment has none.
fn footer_range(bytes: &[u8], header: &FileHeader) -> Result<Range<usize>, FormatError> {
    let offset = header.offset(Region::Footer);
    if offset == 0 {
        return Ok(0..0);
    }
    let start = start(bytes, Region::Footer, offset, 1)?;
    Ok(start..bytes.len())
}

fn start(bytes: &[u8], region: Region, offset: u64, len: u64) -> Result<usize, FormatError> {
    if !offset.is_multiple_of(ALIGNMENT as u64) {
        return Err(FormatError::Misaligned { region, offset });
    }
    if offset < FileHeader::SIZE as u64 {
        return Err(FormatError::Overlap { first: Region::Header, second: region, offset });
    }
    let segment_bytes = bytes.len() as u64;
    match (usize::try_from(offset), offset.checked_add(len)) {
        (Ok(start), Some(end)) if end <= segment_bytes => Ok(start),
        _ => Err(FormatError::BeyondEnd { region, offset, bytes: len, segment_bytes }),
    }
}

/// Compares header and footer.
fn check_footer(
    bytes: &[u8],
    header: &FileHeader,
    footer: Option<&Footer>,
) -> Result<(), FormatError> {
    let is_encrypted =
        header.dialect() == Dialect::Published && header.flags().contains(Flags::IS_ENCRYPTED);
    let Some(footer) = footer else {
        let needs_one = is_encrypted
            || header.has_reverse()
            || header.compression() != Compression::None
            || header.offset(Region::Strings) != 0
            || header.offset(Region::Index) != 0;
        let absent = FormatError::Absent { region: Region::Footer };
        return if needs_one { Err(absent) } else { Ok(()) };
    };
    let differs = |what, stated: u64, found: u64| {
        if stated == found {
            Ok(())
        } else {
            Err(FormatError::Contradiction { what, stated, found })
        }
    };
    differs("segment length", footer.summary.segment_bytes, bytes.len() as u64)?;
    differs("encryption", is_encrypted.into(), footer.summary.is_encrypted.into())?;
    for region in Region::DATA {
        let is_present = is_present(header, region)?;
        let entry = footer.entry(region);
        differs("presence of a region", is_present.into(), entry.is_some().into())?;
        let Some(entry) = entry else { continue };
        differs("offset of a region", header.offset(region), entry.offset.get())?;
        if entry.compression() != Compression::None {
            let stated = header.compression().code();
            let found = entry.compression().code();
            differs("compression", stated.into(), found.into())?;
        }
        if let Some(found) = computed_bytes(header, region) {
            differs("length of a region", entry.raw_bytes.get(), found)?;
        }
    }
    Ok(())
}

/// The length of a region before packing, where it follows from the header's counts.
fn computed_bytes(header: &FileHeader, region: Region) -> Option<u64> {
    let count = header.node_count();
    let bytes = match region {
        Region::Nodes => column_offsets(count).map(|(_, end)| end),
        Region::Embeddings => {
            header.embedding_dtype().stride(header.embedding_dim()).checked_mul(count)
        }
        Region::Edges => edges::region_bytes(count, header.edge_count(), header.has_reverse()),
        Region::Index => index::region_bytes(count),
        Region::Bloom | Region::Strings | Region::Header | Region::Footer => return None,
    };
    Some(bytes.unwrap_or(u64::MAX))
}

/// The place of a region. Without a footer its length follows from the header or the region itself.
fn extent(
    bytes: &[u8],
    header: &FileHeader,
    region: Region,
    entry: Option<&RegionEntry>,
) -> Result<Extent, FormatError> {
    let offset = header.offset(region);
    let len = match entry {
        Some(entry) => entry.stored_bytes.get(),
        None => {
            let from = start(bytes, region, offset, 0)?;
            let rest = bytes.get(from..).unwrap_or_default();
            if region == Region::Edges {
                Adjacency::parse(rest, header.node_count())?.byte_len() as u64
            } else if region == Region::Bloom {
                Bloom::parse(rest)?.byte_len() as u64
            } else {
                computed_bytes(header, region).unwrap_or(0)
            }
        }
    };
    let start = start(bytes, region, offset, len)?;
    // The end lies inside `bytes`.
    let end = start + usize::try_from(len).unwrap_or(0);
    Ok(Extent { range: start..end, is_plain: entry.is_none_or(RegionEntry::is_plain) })
}
