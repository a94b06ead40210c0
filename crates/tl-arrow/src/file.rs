//! An open Parquet file: its footer, the pages of its columns, and the bytes of these.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tbl_io::{Mapped, ParquetDefect, ReadError, ReadLimits, Source};

use crate::cache;
use crate::codec::Codec;
use crate::footer::{self, Chunk, Footer};
use crate::header::{Encoding, PageHeader, PageKind};
use crate::nested::Entries;
use crate::page::{Page, PageContext};
use crate::pages::{self, Slot};
use crate::places::Places;
use crate::schema::Leaf;
use crate::thrift::Flaw;
use crate::values::Values;

/// The magic at both ends of a file.
pub(crate) const MAGIC: [u8; 4] = *b"PAR1";

/// The magic of a file whose footer is encrypted.
const ENCRYPTED_MAGIC: [u8; 4] = *b"PARE";

/// The length and the magic at the end.
const TAIL_BYTES: u64 = 8;

/// Bytes that are read at the end of a file, which have the footer of most.
const TAIL_READ: u64 = 64 << 10;

/// Memory for each row of samples: its label, and the place and the format of its image.
const ROW_BYTES: u64 = 18;

/// The first bytes of a page, which have the header of most.
const HEADER_READ: u64 = 256;

/// The longest header, with statistics that hold values.
const MAX_HEADER: u64 = 16 << 20;

/// A file that is open.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    source: Source,
    limits: ReadLimits,
    /// Tells the file from others in caches.
    id: u64,
    map: OnceLock<Option<Mapped>>,
    footer: Footer,
    /// By row group, the rows before it; the number of rows at the end.
    starts: Vec<u64>,
    /// By row group and leaf, its pages once they were asked for.
    pages: Vec<OnceLock<Box<[Slot]>>>,
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let footer = read_footer(&source, limits)?;
        let mut starts = vec![0];
        let mut rows = 0;
        for group in &footer.groups {
            rows += group.rows;
            starts.push(rows);
        }
        let leaves = footer.schema.leaves().len();
        let pages = (0..footer.groups.len() * leaves).map(|_| OnceLock::new()).collect();
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let images = OnceLock::new();
        Ok(Self { source, limits, id, map: OnceLock::new(), footer, starts, pages, images })
    }

    /// Fails if the places of all rows take more memory than samples may.
    pub(crate) fn check_rows(&self) -> Result<(), ReadError> {
        let need = self.row_count().saturating_mul(ROW_BYTES);
        self.check_size("bytes for places of rows", need)
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

    pub(crate) fn footer(&self) -> &Footer {
        &self.footer
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
            return Err(flaw(ParquetDefect::EncryptedColumn));
        }
        chunk.codec.map_err(|number| {
            let codec = Codec::unknown(number);
            flaw(ParquetDefect::UnknownCodec { codec })
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
        let place = &self.pages[group * self.footer.schema.leaves().len() + leaf];
        Ok(place.get_or_init(|| found.into_boxed_slice()))
    }

    /// As [`pages`](Self::pages), if they were asked for before.
    pub(crate) fn known_pages(&self, group: usize, leaf: usize) -> Option<&[Slot]> {
        let place = &self.pages[group * self.footer.schema.leaves().len() + leaf];
        place.get().map(|pages| &**pages)
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
                Err(Flaw { defect: ParquetDefect::Truncated { .. }, .. }) if !is_all => len *= 16,
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
        self.check_size("bytes of a page", len)?;
        let mut bytes = Vec::new();
        self.source.read_range_into(offset, len, &mut bytes)?;
        Ok(read(&bytes))
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

    /// Page `page` of a column in a row group, from this thread's cache or decoded.
    pub(crate) fn page(
        &self,
        group: usize,
        leaf: usize,
        page: usize,
    ) -> Result<Rc<Page>, ReadError> {
        let slots = self.pages(group, leaf)?;
        let key = cache::Key { file: self.id, group, leaf, page };
        if let Some(found) = cache::page(key) {
            return Ok(found);
        }
        let slot = slots[page];
        let rows = self.rows_of(group, slots, page);
        let context = self.context(group, leaf, slot.offset)?;
        let decoded = self.with_bytes(slot.offset, slot.bytes.into(), |bytes| {
            let error = |flaw| self.error(flaw);
            let header = checked_header(bytes, slot, rows.len()).map_err(error)?;
            let stored = stored_bytes(bytes, &header, slot.offset).map_err(error)?;
            let is_indexed = header.encoding() == Some(Encoding::Dictionary);
            let dictionary = is_indexed.then(|| self.dictionary(group, leaf)).transpose()?;
            Page::decode(&header, stored, dictionary.as_ref(), context).map_err(error)
        })?;
        let decoded = Rc::new(decoded?);
        cache::keep_page(key, &decoded);
        Ok(decoded)
    }

    /// The entries of a leaf of a structure or a list: those of the page with this row, or of the row
    /// group where no index says in which pages rows begin. Returns them with their first row.
    pub(crate) fn entries(
        &self,
        place: RowPlace,
        leaf: usize,
    ) -> Result<(Rc<Entries>, u32), ReadError> {
        let RowPlace { group, row } = place;
        let chunk = self.chunk(group, leaf);
        let mut slots: Cow<'_, [Slot]> = Cow::Borrowed(&[]);
        let mut rows = 0..u32::try_from(self.footer.groups[group].rows).unwrap_or(u32::MAX);
        // No page has this number, and no dictionary.
        let mut page = usize::MAX - 1;
        if chunk.index.is_some() {
            let pages = self.pages(group, leaf)?;
            page = Self::page_of(pages, row);
            rows = self.rows_of(group, pages, page);
            slots = Cow::Borrowed(&pages[page..=page]);
        }
        let key = cache::Key { file: self.id, group, leaf, page };
        if let Some(found) = cache::entries(key) {
            return Ok((found, rows.start));
        }
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
            let defect = ParquetDefect::Count { what, found, expected };
            return Err(self.error(Flaw::new(chunk.start, defect)));
        }
        let entries = Rc::new(entries);
        cache::keep_entries(key, &entries);
        Ok((entries, rows.start))
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
                let defect = ParquetDefect::Count { what, found, expected };
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

    /// The dictionary of a column in a row group, from this thread's cache or decoded.
    fn dictionary(&self, group: usize, leaf: usize) -> Result<Rc<Values>, ReadError> {
        let key = cache::Key { file: self.id, group, leaf, page: usize::MAX };
        if let Some(found) = cache::dictionary(key) {
            return Ok(found);
        }
        let chunk = self.chunk(group, leaf);
        let header = self.header(chunk.start, chunk)?;
        let context = self.context(group, leaf, chunk.start)?;
        let is_inside = header.page_bytes() <= chunk.bytes;
        let is_dictionary = matches!(header.kind, PageKind::Dictionary { .. });
        if !is_inside || !is_dictionary {
            let defect = match is_inside {
                false => ParquetDefect::OutsideChunk { what: "dictionary" },
                true => ParquetDefect::PageKind { expected: "a dictionary" },
            };
            return Err(self.error(Flaw::new(chunk.start, defect)));
        }
        let decoded = self.with_bytes(chunk.start, header.page_bytes(), |bytes| {
            let stored = stored_bytes(bytes, &header, chunk.start)?;
            Page::dictionary(&header, stored, context)
        })?;
        let decoded = Rc::new(decoded.map_err(|flaw| self.error(flaw))?);
        cache::keep_dictionary(key, &decoded);
        Ok(decoded)
    }
}

/// The header of a data page whose index entry is `slot`. It must say what the entry says.
pub(crate) fn checked_header(bytes: &[u8], slot: Slot, rows: usize) -> Result<PageHeader, Flaw> {
    let header = PageHeader::parse(bytes, slot.offset)?;
    let flaw = |defect| Flaw::new(slot.offset, defect);
    let Some(values) = header.values() else {
        return Err(flaw(ParquetDefect::PageKind { expected: "data" }));
    };
    let count = |what, found, expected| flaw(ParquetDefect::Count { what, found, expected });
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
    stored.ok_or_else(|| Flaw::new(offset, ParquetDefect::Truncated { what: "page header" }))
}

fn in_file(source: &Source, Flaw { offset, defect }: Flaw) -> ReadError {
    ReadError::Parquet { location: source.location().clone(), offset, source: defect }
}

fn read_footer(source: &Source, limits: ReadLimits) -> Result<Footer, ReadError> {
    let flaw = |offset, defect| in_file(source, Flaw::new(offset, defect));
    let len = source.len();
    let mut head = [0; MAGIC.len()];
    let least = MAGIC.len() as u64 + TAIL_BYTES;
    if len < least {
        return Err(flaw(0, ParquetDefect::Short { bytes: len, least }));
    }
    source.read_exact_at(0, &mut head)?;
    if head != MAGIC && head != ENCRYPTED_MAGIC {
        return Err(flaw(0, ParquetDefect::Magic { found: head }));
    }
    let tail_start = len - TAIL_READ.min(len);
    let mut tail = Vec::new();
    source.read_range_into(tail_start, len - tail_start, &mut tail)?;
    let Some((rest, magic)) = tail.split_last_chunk::<4>() else {
        return Err(flaw(0, ParquetDefect::Short { bytes: len, least }));
    };
    match *magic {
        MAGIC => {}
        ENCRYPTED_MAGIC => return Err(flaw(len - TAIL_BYTES, ParquetDefect::Encrypted)),
        found => return Err(flaw(len - 4, ParquetDefect::Magic { found })),
    }
    let length = rest.last_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    let end = len - TAIL_BYTES;
    let length = u64::from(length);
    let start = end.checked_sub(length).filter(|&start| start >= MAGIC.len() as u64);
    let Some(start) = start.filter(|_| length <= limits.sample_bytes) else {
        let limit = (end - MAGIC.len() as u64).min(limits.sample_bytes);
        let what = "length of the footer";
        return Err(flaw(end, ParquetDefect::TooLarge { what, found: length, limit }));
    };
    if start < tail_start {
        source.read_range_into(start, length, &mut tail)?;
    } else {
        let first = usize::try_from(start - tail_start).unwrap_or(0);
        let last = usize::try_from(end - tail_start).unwrap_or(0);
        tail.truncate(last);
        tail.drain(..first);
    }
    let footer = footer::parse(&tail, start, start).map_err(|flaw| in_file(source, flaw))?;
    Ok(footer)
}
