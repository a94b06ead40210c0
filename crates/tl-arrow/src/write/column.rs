//! The pages of a column: uncompressed and plain, with levels in runs.

use crate::pages::Slot;
use crate::write::thrift::{ThriftWriter, varint};

/// Bytes of levels and values after which a page of images ends. `datasets` aims at the same.
pub(super) const IMAGE_PAGE: usize = 1 << 20;

/// The same of other columns, whose pages are decoded as a whole for one value.
pub(super) const FIELD_PAGE: usize = 32 << 10;

/// The most bytes of a page, with its header: sizes are positive numbers of 32 bits.
pub(super) const PAGE_LIMIT: u64 = i32::MAX as u64 - (1 << 10);

/// A stored column under construction.
#[derive(Debug)]
pub(super) struct Column {
    /// The level of a value that is not null.
    max_definition: u8,
    /// Bytes after which a page ends.
    page_bytes: usize,
    levels: Runs,
    values: Vec<u8>,
    /// Rows of this row group that are in complete pages, and in the one under construction.
    rows_before: u32,
    rows: u32,
    /// Complete pages that are not in the file yet.
    pub(super) pages: Vec<u8>,
    /// The complete pages of this row group, each with its place among them.
    slots: Vec<Slot>,
    bytes: u64,
}

/// The complete pages of a column in a row group.
#[derive(Debug)]
pub(super) struct ColumnPages {
    /// With their places in the column.
    pub(super) slots: Vec<Slot>,
    pub(super) bytes: u64,
}

impl Column {
    pub(super) fn new(max_definition: u8, page_bytes: usize) -> Self {
        Self {
            max_definition,
            page_bytes,
            levels: Runs::default(),
            values: Vec::new(),
            rows_before: 0,
            rows: 0,
            pages: Vec::new(),
            slots: Vec::new(),
            bytes: 0,
        }
    }

    /// Bytes in memory.
    pub(super) fn held(&self) -> usize {
        self.values.len() + self.pages.len()
    }

    /// Bytes of this row group, those of the page under construction included.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.values.len() as u64
    }

    pub(super) fn push_null(&mut self, level: u8) {
        self.push_level(level);
    }

    /// Appends bytes, which are below [`PAGE_LIMIT`].
    pub(super) fn push_bytes(&mut self, value: &[u8]) {
        let size = value.len() + size_of::<u32>();
        if (self.values.len() + size) as u64 > PAGE_LIMIT - (1 << 20) {
            self.end_page();
        }
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.values.extend_from_slice(&len.to_le_bytes());
        self.values.extend_from_slice(value);
        self.push_level(self.max_definition);
    }

    pub(super) fn push_number(&mut self, value: [u8; 8]) {
        self.values.extend_from_slice(&value);
        self.push_level(self.max_definition);
    }

    fn push_level(&mut self, level: u8) {
        self.levels.push(level);
        self.rows += 1;
        // Each level takes at least a bit of the reader's memory, whatever its run is.
        if self.values.len() >= self.page_bytes || self.rows as usize >= FIELD_PAGE {
            self.end_page();
        }
    }

    fn end_page(&mut self) {
        if self.rows == 0 {
            return;
        }
        let levels = self.levels.take();
        let level_bytes = u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes();
        let stored = level_bytes.len() + levels.len() + self.values.len();
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&level_bytes);
        checksum.update(&levels);
        checksum.update(&self.values);
        let header = page_header(self.rows, stored, checksum.finalize());
        let before = self.pages.len();
        self.pages.reserve(header.len() + stored);
        self.pages.extend_from_slice(&header);
        self.pages.extend_from_slice(&level_bytes);
        self.pages.extend_from_slice(&levels);
        self.pages.append(&mut self.values);
        let bytes = self.pages.len() - before;
        let slot_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.slots.push(Slot {
            offset: self.bytes,
            first_row: self.rows_before,
            bytes: slot_bytes,
        });
        self.bytes += bytes as u64;
        self.rows_before += self.rows;
        self.rows = 0;
    }

    /// Ends the column in this row group. [`pages`](Self::pages) has those of its pages that are not in
    /// the file yet.
    pub(super) fn end_group(&mut self) -> ColumnPages {
        self.end_page();
        self.rows_before = 0;
        let slots = std::mem::take(&mut self.slots);
        ColumnPages { slots, bytes: std::mem::take(&mut self.bytes) }
    }
}

fn page_header(rows: u32, stored: usize, checksum: u32) -> Vec<u8> {
    const DATA: i32 = 0;
    const RLE: i32 = 3;
    let size = i32::try_from(stored).unwrap_or(i32::MAX);
    let mut header = ThriftWriter::new();
    header.i32(1, DATA);
    header.i32(2, size);
    header.i32(3, size);
    header.i32(4, checksum.cast_signed());
    header.structure(5, |data| {
        data.i32(1, rows.cast_signed());
        data.i32(2, 0);
        data.i32(3, RLE);
        data.i32(4, RLE);
    });
    header.finish()
}

/// Levels as runs of equal ones.
#[derive(Debug, Default)]
struct Runs {
    bytes: Vec<u8>,
    level: u8,
    len: u64,
}

impl Runs {
    fn push(&mut self, level: u8) {
        if level != self.level {
            self.end_run();
            self.level = level;
        }
        self.len += 1;
    }

    fn end_run(&mut self) {
        if self.len > 0 {
            varint(&mut self.bytes, self.len << 1);
            self.bytes.push(self.level);
        }
        self.len = 0;
    }

    fn take(&mut self) -> Vec<u8> {
        self.end_run();
        std::mem::take(&mut self.bytes)
    }
}
