//! An open Parquet file: its footer, the pages of its columns, and the bytes of these.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tbl_io::{Mapped, ReadError, ReadLimits, RowsDefect, Source};

use crate::ahead::Ahead;
use crate::cache::{FileNumber, Key, PageCache, Part};
use crate::codec::Codec;
use crate::footer::{Chunk, Footer};
use crate::header::{Encoding, PageHeader, PageKind};
use crate::nested::Entries;
use crate::page::{Page, PageContext};
use crate::pages::{self, Slot};
use crate::places::Places;
use crate::rows::starts_of;
use crate::schema::Leaf;
use crate::tail::{Tail, read_tail};
use crate::thrift::Flaw;
use crate::values::Values;

/// The magic at both ends of a file.
pub(crate) const MAGIC: [u8; 4] = *b"PAR1";

/// The first bytes of a page, which have the header of most.
const HEADER_READ: u64 = 256;

/// The longest header, with statistics that hold values.
const MAX_HEADER: u64 = 16 << 20;

/// A file that is open.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    source: Source,
    limits: ReadLimits,
    /// Tells the file from others in the cache.
    number: FileNumber,
    map: OnceLock<Option<Mapped>>,
    ahead: Ahead,
    footer: Footer,
    /// The CRC-32C of the footer's bytes.
    crc32c: u32,
    /// By row group, the rows before it; the number of rows at the end.
    starts: Vec<u64>,
    /// By row group and leaf, its pages once they were asked for.
    pages: Vec<OnceLock<Box<[Slot]>>>,
    /// By leaf, the pages that were decoded.
    decoded: Box<[AtomicU64]>,
    /// The places of images once they were asked for.
    images: OnceLock<Places>,
}

/// A row in its row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) group: usize,
    pub(crate) row: u32,
}

impl ParquetFile {
    pub(crate) fn open(source: Source, limits: ReadLimits) -> Result<Self, ReadError> {
        let Tail { footer, crc32c, last } = read_tail(&source, limits)?;
        let ahead = Ahead::default();
        if !source.is_mappable() {
            let (offset, bytes) = last;
            ahead.put(offset, bytes);
        }
        let starts = starts_of(footer.groups.iter().map(|group| group.rows));
        let leaves = footer.schema.leaves().len();
        let pages = (0..footer.groups.len() * leaves).map(|_| OnceLock::new()).collect();
        let number = FileNumber::next();
        let map = OnceLock::new();
        let decoded = (0..leaves).map(|_| AtomicU64::new(0)).collect();
        let images = OnceLock::new();
        Ok(Self {
            source,
            limits,
            number,
            map,
            ahead,
            footer,
            crc32c,
            starts,
            pages,
            decoded,
            images,
        })
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn limits(&self) -> ReadLimits {
        self.limits
    }

    /// The places of the images, which are those of leaf `leaf`.
    pub(crate) fn places(&self, leaf: usize) -> &Places {
        self.images.get_or_init(|| Places::new(self, leaf))
    }

    /// How many times pages of a leaf were decoded.
    pub(crate) fn decoded_pages(&self, leaf: usize) -> u64 {
        self.decoded[leaf].load(Ordering::Relaxed)
    }

    pub(crate) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The CRC-32C of the footer's bytes, by which a shard index tells the file from others.
    pub(crate) fn footer_crc32c(&self) -> u32 {
        self.crc32c
    }

    pub(crate) fn footer_mut(&mut self) -> &mut Footer {
        &mut self.footer
    }

    pub(crate) fn row_count(&self) -> u64 {
        self.footer.row_count
    }

    /// The error of this file with the place and the defect.
    pub(crate) fn error(&self, flaw: Flaw) -> ReadError {
        in_file(&self.source, flaw)
    }

    /// By row group, the rows before it.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The place of row `row`; `None` past the end.
    pub(crate) fn place(&self, row: u64) -> Option<RowPlace> {
        // Groups without rows start where the next one does, and are passed over.
        let group = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        let rows = self.footer.groups.get(group)?.rows;
        let row = row - self.starts[group];
        Some(RowPlace { group, row: u32::try_from(row).ok().filter(|_| row < rows)? })
    }

    pub(crate) fn leaf(&self, leaf: usize) -> &Leaf {
        &self.footer.schema.leaves()[leaf]
    }

    pub(crate) fn chunk(&self, group: usize, leaf: usize) -> &Chunk {
        &self.footer.groups[group].chunks[leaf]
    }

    /// The codec of a column in a row group.
    pub(crate) fn codec(&self, group: usize, leaf: usize) -> Result<Codec, ReadError> {
        let chunk = self.chunk(group, leaf);
        let flaw = |defect| self.error(Flaw::new(chunk.start, defect));
        if chunk.is_encrypted {
            return Err(flaw(RowsDefect::EncryptedColumn));
        }
        chunk.codec.map_err(|number| {
            let codec = Codec::unknown(number);
            flaw(RowsDefect::UnknownCodec { codec })
        })
    }

    /// The pages of a column in a row group, from the offset index or by their headers.
    pub(crate) fn pages(&self, group: usize, leaf: usize) -> Result<&[Slot], ReadError> {
        if let Some(pages) = self.known_pages(group, leaf) {
            return Ok(pages);
        }
        self.codec(group, leaf)?;
        let rows = self.footer.groups[group].rows;
        let chunk = self.chunk(group, leaf);
        let found = match chunk.index {
            Some(index) => {
                let read = self.with_bytes(index.offset, index.bytes, |bytes| {
                    pages::of_index(bytes, index.offset, chunk, rows)
                });
                read?.map_err(|flaw| self.error(flaw))?
            }
            None => pages::walk(
                chunk,
                rows,
                |offset| self.header(offset, chunk),
                |flaw| self.error(flaw),
            )?,
        };
        Ok(self.pages_of(group, leaf).get_or_init(|| found.into_boxed_slice()))
    }

    /// The place of the pages of a column in a row group.
    pub(crate) fn pages_of(&self, group: usize, leaf: usize) -> &OnceLock<Box<[Slot]>> {
        &self.pages[group * self.footer.schema.leaves().len() + leaf]
    }

    /// As [`pages`](Self::pages), if they were asked for before.
    pub(crate) fn known_pages(&self, group: usize, leaf: usize) -> Option<&[Slot]> {
        self.pages_of(group, leaf).get().map(|pages| &**pages)
    }

    /// The number of the page with row `row` of a row group, among `pages`.
    pub(crate) fn page_of(pages: &[Slot], row: u32) -> usize {
        pages.partition_point(|page| page.first_row <= row).saturating_sub(1)
    }

    /// The rows of page `page`, within the row group.
    pub(crate) fn rows_of(&self, group: usize, pages: &[Slot], page: usize) -> Range<u32> {
        let start = pages[page].first_row;
        let rows = self.footer.groups[group].rows;
        let end = pages.get(page + 1).map_or(u32::try_from(rows).ok(), |next| Some(next.first_row));
        start..end.unwrap_or(u32::MAX)
    }

    /// The header of the page at `offset`.
    pub(crate) fn header(&self, offset: u64, chunk: &Chunk) -> Result<PageHeader, ReadError> {
        let left = (chunk.start + chunk.bytes).saturating_sub(offset);
        let mut len = HEADER_READ;
        loop {
            let is_all = len >= left.min(MAX_HEADER);
            let bytes = len.min(left);
            let parsed =
                self.with_bytes(offset, bytes, |bytes| PageHeader::parse(bytes, offset))?;
            match parsed {
                Err(Flaw { defect: RowsDefect::Truncated { .. }, .. }) if !is_all => len *= 16,
                parsed => return parsed.map_err(|flaw| self.error(flaw)),
            }
        }
    }

    /// Calls `read` with bytes of the file.
    pub(crate) fn with_bytes<R>(
        &self,
        offset: u64,
        len: u64,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        if let Some(map) = self.map() {
            return map.with(offset, len, read);
        }
        if let Some(bytes) = self.ahead.get(offset, len) {
            return Ok(read(&bytes));
        }
        self.check_size("bytes of a page", len)?;
        let mut bytes = Vec::new();
        self.source.read_range_into(offset, len, &mut bytes)?;
        Ok(read(&bytes))
    }

    /// Requests what opening reads of a file that is not mapped: the labels, and the offset indexes of
    /// both columns.
    pub(crate) fn request_together(
        &self,
        label: Option<usize>,
        image: Option<usize>,
    ) -> Result<(), ReadError> {
        if self.map().is_some() {
            return Ok(());
        }
        let mut ranges = Vec::new();
        for group in 0..self.footer.groups.len() {
            let columns = label.into_iter().chain(image);
            let indexes = columns.filter_map(|leaf| self.chunk(group, leaf).index);
            ranges.extend(indexes.map(|index| (index.offset, index.bytes)));
            let labels = label.map(|leaf| self.chunk(group, leaf));
            ranges.extend(labels.map(|chunk| (chunk.start, chunk.bytes)));
        }
        self.ahead.request(&self.source, ranges)
    }

    /// Finds the pages of the images of a file that is not mapped by their offset indexes, and drops
    /// what was requested to open it.
    pub(crate) fn find_pages(&self, image: usize) -> Result<(), ReadError> {
        if self.map().is_none() {
            let indexed = |&group: &usize| self.chunk(group, image).index.is_some();
            let mut groups = (0..self.footer.groups.len()).filter(indexed);
            groups.try_for_each(|group| self.pages(group, image).map(drop))?;
        }
        self.ahead.clear();
        Ok(())
    }

    /// The whole file in memory, if it can be mapped.
    pub(crate) fn map(&self) -> Option<&Mapped> {
        let map = || Mapped::new(&self.source, 0, self.source.len()).ok();
        self.map.get_or_init(map).as_ref()
    }

    pub(crate) fn check_size(&self, what: &'static str, need: u64) -> Result<(), ReadError> {
        let limit = self.limits.sample_bytes;
        if need <= limit {
            return Ok(());
        }
        Err(ReadError::Limit { location: self.source.location().clone(), what, limit, need })
    }

    /// Page `page` of a column in a row group, from the cache or decoded.
    pub(crate) fn page(
        &self,
        group: usize,
        leaf: usize,
        page: usize,
    ) -> Result<Arc<Page>, ReadError> {
        let slots = self.pages(group, leaf)?;
        let slot = slots[page];
        let rows = self.rows_of(group, slots, page);
        PageCache::of_process().get(self.key(group, leaf, Part::Page(page)), || {
            let context = self.context(group, leaf, slot.offset)?;
            self.decoded[leaf].fetch_add(1, Ordering::Relaxed);
            self.with_bytes(slot.offset, slot.bytes.into(), |bytes| {
                let error = |flaw| self.error(flaw);
                let header = checked_header(bytes, slot, rows.len()).map_err(error)?;
                let stored = stored_bytes(bytes, &header, slot.offset).map_err(error)?;
                let is_indexed = header.encoding() == Some(Encoding::Dictionary);
                let dictionary = is_indexed.then(|| self.dictionary(group, leaf)).transpose()?;
                Page::decode(&header, stored, dictionary.as_ref(), context).map_err(error)
            })?
        })
    }

    /// The entries of a leaf of a structure or a list: those of the page with this row, or of the row
    /// group where no index says in which pages rows begin. Returns them with their first row.
    pub(crate) fn entries(
        &self,
        place: RowPlace,
        leaf: usize,
    ) -> Result<(Arc<Entries>, u32), ReadError> {
        let RowPlace { group, row } = place;
        let chunk = self.chunk(group, leaf);
        let mut slots: Cow<'_, [Slot]> = Cow::Borrowed(&[]);
        let mut rows = 0..u32::try_from(self.footer.groups[group].rows).unwrap_or(u32::MAX);
        let mut part = Part::AllEntries;
        if chunk.index.is_some() {
            let pages = self.pages(group, leaf)?;
            let page = Self::page_of(pages, row);
            part = Part::Entries(page);
            rows = self.rows_of(group, pages, page);
            slots = Cow::Borrowed(&pages[page..=page]);
        }
        let first = rows.start;
        let entries = PageCache::of_process().get(self.key(group, leaf, part), || {
            if chunk.index.is_none() {
                self.codec(group, leaf)?;
                let header = |offset| self.header(offset, chunk);
                slots = pages::walk(chunk, chunk.values, header, |flaw| self.error(flaw))?.into();
            }
            let mut entries = Entries::default();
            for slot in &*slots {
                self.push_entries(group, leaf, *slot, &mut entries)?;
            }
            if entries.row_count() != rows.len() {
                let what = "number of rows in the pages of a list";
                let found = entries.row_count() as u64;
                let expected = rows.len() as u64;
                let defect = RowsDefect::Count { what, found, expected };
                return Err(self.error(Flaw::new(chunk.start, defect)));
            }
            Ok(entries)
        })?;
        Ok((entries, first))
    }

    fn push_entries(
        &self,
        group: usize,
        leaf: usize,
        slot: Slot,
        entries: &mut Entries,
    ) -> Result<(), ReadError> {
        let context = self.context(group, leaf, slot.offset)?;
        self.with_bytes(slot.offset, slot.bytes.into(), |bytes| {
            let error = |flaw| self.error(flaw);
            let header = PageHeader::parse(bytes, slot.offset).map_err(error)?;
            if header.page_bytes() != u64::from(slot.bytes) {
                let what = "bytes of the page";
                let found = header.page_bytes();
                let expected = slot.bytes.into();
                let defect = RowsDefect::Count { what, found, expected };
                return Err(error(Flaw::new(slot.offset, defect)));
            }
            let stored = stored_bytes(bytes, &header, slot.offset).map_err(error)?;
            let is_indexed = header.encoding() == Some(Encoding::Dictionary);
            let dictionary = is_indexed.then(|| self.dictionary(group, leaf)).transpose()?;
            entries.push(&header, stored, dictionary.as_ref(), context).map_err(error)
        })?
    }

    fn context(
        &self,
        group: usize,
        leaf: usize,
        offset: u64,
    ) -> Result<PageContext<'_>, ReadError> {
        let codec = self.codec(group, leaf)?;
        let most = self.limits.sample_bytes;
        Ok(PageContext { leaf: self.leaf(leaf), codec, offset, most })
    }

    /// The dictionary of a column in a row group, from the cache or decoded.
    fn dictionary(&self, group: usize, leaf: usize) -> Result<Arc<Values>, ReadError> {
        let key = self.key(group, leaf, Part::Dictionary);
        PageCache::of_process().get(key, || self.decode_dictionary(group, leaf))
    }

    fn key(&self, group: usize, leaf: usize, part: Part) -> Key {
        Key { file: self.number.get(), group, leaf, part }
    }

    fn decode_dictionary(&self, group: usize, leaf: usize) -> Result<Values, ReadError> {
        let chunk = self.chunk(group, leaf);
        let header = self.header(chunk.start, chunk)?;
        let context = self.context(group, leaf, chunk.start)?;
        let is_inside = header.page_bytes() <= chunk.bytes;
        let is_dictionary = matches!(header.kind, PageKind::Dictionary { .. });
        if !is_inside || !is_dictionary {
            let defect = match is_inside {
                false => RowsDefect::OutsideChunk { what: "dictionary" },
                true => RowsDefect::PageKind { expected: "a dictionary" },
            };
            return Err(self.error(Flaw::new(chunk.start, defect)));
        }
        let decoded = self.with_bytes(chunk.start, header.page_bytes(), |bytes| {
            let stored = stored_bytes(bytes, &header, chunk.start)?;
            Page::dictionary(&header, stored, context)
        })?;
        decoded.map_err(|flaw| self.error(flaw))
    }
}

/// The header of a data page whose index entry is `slot`. It must say what the entry says.
pub(crate) fn checked_header(bytes: &[u8], slot: Slot, rows: usize) -> Result<PageHeader, Flaw> {
    let header = PageHeader::parse(bytes, slot.offset)?;
    let flaw = |defect| Flaw::new(slot.offset, defect);
    let Some(values) = header.values() else {
        return Err(flaw(RowsDefect::PageKind { expected: "data" }));
    };
    let count = |what, found, expected| flaw(RowsDefect::Count { what, found, expected });
    if u64::from(values) != rows as u64 {
        return Err(count("number of values in the page", values.into(), rows as u64));
    }
    if let PageKind::DataV2 { rows: stated, .. } = header.kind
        && stated != values
    {
        return Err(count("number of rows in the page", stated.into(), values.into()));
    }
    if header.page_bytes() != u64::from(slot.bytes) {
        return Err(count("bytes of the page", header.page_bytes(), slot.bytes.into()));
    }
    Ok(header)
}

fn stored_bytes<'p>(bytes: &'p [u8], header: &PageHeader, offset: u64) -> Result<&'p [u8], Flaw> {
    let stored = usize::try_from(header.bytes).ok().and_then(|start| bytes.get(start..));
    stored.ok_or_else(|| Flaw::new(offset, RowsDefect::Truncated { what: "page header" }))
}

pub(crate) fn in_file(source: &Source, Flaw { offset, defect }: Flaw) -> ReadError {
    ReadError::Rows { location: source.location().clone(), offset, source: defect }
}
