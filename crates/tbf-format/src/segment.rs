//! Reading a segment: its regions as views over the bytes that hold it.

use crate::aligned::AlignedBytes;
use crate::bloom::{Bloom, BloomKey};
use crate::columns::{Column, Columns};
use crate::edges::{Adjacency, Edge};
use crate::embedding::Embeddings;
use crate::error::FormatError;
use crate::footer::RegionEntry;
use crate::header::{Compression, FileHeader};
use crate::index::Index;
use crate::layout::{Layout, check_region};
use crate::region::{Dialect, Region, Stored};
use crate::string_table::Strings;

/// The options of opening a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Refuse what the reference's writer gets wrong, instead of reporting it as an [`Oddity`]:
    /// a count of edges that are not stored, and edges to rows that are not there.
    pub strict: bool,
}

/// Something a reader has to tolerate, and may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// The version's halves are swapped, as the reference's writer has them. Its flags mean
    /// nothing either.
    ReferenceDialect,
    /// The header has no checksum, so that damage of it may go unnoticed.
    NoHeaderChecksum,
    /// The header counts edges that are not stored: such without a source.
    EdgeCount {
        /// The header's count.
        stated: u64,
        /// How many there are.
        stored: u64,
    },
    /// Edges that lead to rows that are not there.
    EdgeTargets {
        /// How many.
        count: u64,
        /// The number of the first such edge.
        edge: u64,
        /// The target of the edge.
        target: u32,
    },
    /// Bytes after the last region of a segment without a footer.
    TrailingBytes {
        /// How many.
        bytes: u64,
    },
    /// A region whose contents were not looked at, because it has not been unpacked.
    NotUnpacked {
        /// The region.
        region: Region,
    },
}

/// A segment in memory or in a mapped file.
///
/// Opening reads the header and the footer and a few numbers between them, whatever the segment's
/// size. Columns, vectors and edges are checked when they are read, as far as they are;
/// [`verify`](Self::verify) looks at every byte.
///
/// Views lend slices of numbers without a copy where the bytes are aligned in memory, which those
/// of a mapped file are. For a segment that was read into memory of another kind there is
/// [`AlignedBytes`].
///
/// A region that is compressed or encrypted has to be [unpacked](Self::unpack) before it is read;
/// the others are not touched by that.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    bytes: &'a [u8],
    header: FileHeader,
    layout: Layout,
    strict: bool,
    unpacked: [Option<AlignedBytes>; Region::DATA.len()],
}

impl<'a> Segment<'a> {
    /// Opens the segment that is all of `bytes`.
    ///
    /// # Errors
    /// [`FormatError::Partial`] for a segment that was not written to its end; otherwise what is
    /// wrong with the header, the footer, or the place of a region.
    pub fn open(bytes: &'a [u8]) -> Result<Self, FormatError> {
        Self::open_with(bytes, OpenOptions::default())
    }

    /// Opens the segment that is all of `bytes`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(bytes: &'a [u8], options: OpenOptions) -> Result<Self, FormatError> {
        let header = *FileHeader::parse(bytes)?;
        let layout = Layout::new(bytes, &header)?;
        let OpenOptions { strict } = options;
        let unpacked = [const { None }; Region::DATA.len()];
        let segment = Self { bytes, header, layout, strict, unpacked };
        match segment.edge_count_oddity() {
            Some(Oddity::EdgeCount { stated, stored }) if strict => {
                Err(FormatError::Contradiction { what: "edge_count", stated, found: stored })
            }
            _ => Ok(segment),
        }
    }

    /// The header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> u64 {
        self.header.node_count()
    }

    /// How many edges are stored. While the edges are packed, the header's number.
    pub fn edge_count(&self) -> u64 {
        self.layout.stored_edges.unwrap_or(self.header.edge_count())
    }

    /// The writer of the segment.
    pub fn dialect(&self) -> Dialect {
        self.header.dialect()
    }

    /// The oddities that opening tolerated. [`verify`](Self::verify) finds more.
    pub fn oddities(&self) -> impl Iterator<Item = Oddity> + use<> {
        let dialect = (self.dialect() == Dialect::Reference).then_some(Oddity::ReferenceDialect);
        let checksum = (!self.header.has_checksum()).then_some(Oddity::NoHeaderChecksum);
        [dialect, checksum, self.edge_count_oddity()].into_iter().flatten()
    }

    fn edge_count_oddity(&self) -> Option<Oddity> {
        let stated = self.header.edge_count();
        let stored = self.edge_count();
        (stated != stored).then_some(Oddity::EdgeCount { stated, stored })
    }

    /// Whether the segment has a region.
    pub fn has(&self, region: Region) -> bool {
        region == Region::Header
            || (region == Region::Footer && self.layout.footer.is_some())
            || self.layout.extent(region).is_some()
    }

    /// Whether the segment has a region that cannot be read before it is unpacked.
    pub fn is_packed(&self, region: Region) -> bool {
        matches!(self.region(region), Err(FormatError::Packed { .. }))
    }

    /// The storage of a region in the segment, if it exists.
    pub fn stored(&self, region: Region) -> Option<Stored> {
        let footer = self.layout.footer.as_ref();
        let entry = footer.and_then(|footer| footer.entry(region));
        let range = match region {
            Region::Header => 0..FileHeader::SIZE,
            Region::Footer => self.layout.footer_range.clone(),
            Region::Nodes
            | Region::Embeddings
            | Region::Edges
            | Region::Bloom
            | Region::Strings
            | Region::Index => self.layout.extent(region)?.range.clone(),
        };
        let stored_bytes = range.len() as u64;
        (stored_bytes > 0 || region != Region::Footer).then(|| Stored {
            offset: range.start as u64,
            stored_bytes,
            bytes: entry.map_or(stored_bytes, |entry| entry.raw_bytes.get()),
            compression: entry.map_or(Compression::None, RegionEntry::compression),
            is_encrypted: entry.is_some_and(|entry| entry.is_encrypted != 0),
        })
    }

    /// The writer's name for the key, of an encrypted segment.
    pub fn key_id(&self) -> Option<[u8; 16]> {
        let summary = self.layout.footer.as_ref().map(|footer| footer.summary);
        summary.filter(|summary| summary.is_encrypted).map(|summary| summary.key_id)
    }

    /// The bytes of a region that holds data.
    ///
    /// # Errors
    /// [`FormatError::Absent`] or [`FormatError::Packed`].
    pub fn region(&self, region: Region) -> Result<&[u8], FormatError> {
        let absent = FormatError::Absent { region };
        let slot = region.slot().ok_or(absent.clone())?;
        if let Some(Some(unpacked)) = self.unpacked.get(slot) {
            return Ok(unpacked.as_bytes());
        }
        let extent = self.layout.extent(region).ok_or(absent.clone())?;
        if !extent.is_plain {
            return Err(FormatError::Packed { region });
        }
        self.bytes.get(extent.range.clone()).ok_or(absent)
    }

    /// The columns.
    ///
    /// # Errors
    /// [`FormatError::Packed`].
    pub fn columns(&self) -> Result<Columns<'_>, FormatError> {
        Columns::parse(self.region(Region::Nodes)?, self.node_count())
    }

    /// The column of a name, one of [`Columns::NAMES`].
    ///
    /// # Errors
    /// [`FormatError::Packed`].
    pub fn column(&self, name: &str) -> Result<Option<Column<'_>>, FormatError> {
        Ok(self.columns()?.by_name(name))
    }

    /// The vectors.
    ///
    /// # Errors
    /// [`FormatError::Absent`] or [`FormatError::Packed`].
    pub fn embeddings(&self) -> Result<Embeddings<'_>, FormatError> {
        let dim = self.header.embedding_dim();
        let dtype = self.header.embedding_dtype();
        Embeddings::parse(self.region(Region::Embeddings)?, self.node_count(), dim, dtype)
    }

    /// The edges by source.
    ///
    /// # Errors
    /// [`FormatError::Packed`].
    #[inline]
    pub fn outgoing(&self) -> Result<Adjacency<'_>, FormatError> {
        Adjacency::parse(self.region(Region::Edges)?, self.node_count())
    }

    /// The edges by target, from the reverse index.
    ///
    /// # Errors
    /// [`FormatError::Absent`] when the segment has no reverse index, [`FormatError::Packed`], or
    /// [`FormatError::Truncated`].
    pub fn incoming(&self) -> Result<Adjacency<'_>, FormatError> {
        if !self.header.has_reverse() {
            return Err(FormatError::Absent { region: Region::Edges });
        }
        Adjacency::parse_reverse(self.region(Region::Edges)?, self.node_count())
    }

    /// The edges that leave a node, in the order in which they were added.
    ///
    /// # Errors
    /// As for [`outgoing`](Self::outgoing) and [`Adjacency::row`].
    #[inline]
    pub fn edges(&self, row: usize) -> Result<&[Edge], FormatError> {
        self.outgoing()?.row(row)
    }

    /// The filter over ids.
    ///
    /// # Errors
    /// [`FormatError::Absent`] or [`FormatError::Packed`].
    #[inline]
    pub fn bloom(&self) -> Result<Bloom<'_>, FormatError> {
        Bloom::parse(self.region(Region::Bloom)?)
    }

    /// The texts.
    ///
    /// # Errors
    /// [`FormatError::Absent`], [`FormatError::Packed`] or [`FormatError::Truncated`].
    pub fn strings(&self) -> Result<Strings<'_>, FormatError> {
        Strings::parse(self.region(Region::Strings)?, self.node_count())
    }

    /// The trees over ids and timestamps.
    ///
    /// # Errors
    /// [`FormatError::Absent`] or [`FormatError::Packed`].
    pub fn index(&self) -> Result<Index<'_>, FormatError> {
        Index::parse(self.region(Region::Index)?, self.node_count())
    }

    /// The row of the node with an id: by the filter and the index where the segment has them,
    /// otherwise by looking at every id. Of several nodes with the id it is the first.
    ///
    /// # Errors
    /// [`FormatError::Packed`] for a region that would be needed, [`FormatError::IndexEntry`] for
    /// a damaged index.
    pub fn find(&self, id: &[u8; 16]) -> Result<Option<usize>, FormatError> {
        if let Some(bloom) = if_present(self.bloom())?
            && !bloom.may_contain(&BloomKey::new(id))
        {
            return Ok(None);
        }
        let ids = self.columns()?.ids();
        let Some(index) = if_present(self.index())? else {
            return Ok(ids.iter().position(|found| found == *id));
        };
        let place = index.ids().lower_bound(id);
        if index.ids().keys().get(place) != Some(*id) {
            return Ok(None);
        }
        let row = index.ids().rows().get(place).and_then(|row| usize::try_from(row).ok());
        let row = row.filter(|&row| ids.get(row) == Some(*id));
        row.map(Some).ok_or(FormatError::IndexEntry { key: "id", entry: place as u64 })
    }

    /// Takes the unpacked bytes of a region.
    pub(crate) fn keep(&mut self, region: Region, bytes: AlignedBytes) -> Result<(), FormatError> {
        if let Some(edges) = check_region(region, bytes.as_bytes(), &self.header)? {
            self.layout.stored_edges = Some(edges);
        }
        if let Some(place) = region.slot().and_then(|slot| self.unpacked.get_mut(slot)) {
            *place = Some(bytes);
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }
}

/// A region that is not there is not an error for callers that can do without it.
pub(crate) fn if_present<T>(view: Result<T, FormatError>) -> Result<Option<T>, FormatError> {
    match view {
        Ok(view) => Ok(Some(view)),
        Err(FormatError::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
