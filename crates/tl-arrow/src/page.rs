//! Pages in memory: decompressed, with their levels and values.

use std::ops::Range;
use std::sync::Arc;

use tbl_io::RowsDefect;

use crate::cache;
use crate::codec::Codec;
use crate::header::{Encoding, Levels, PageHeader, PageKind};
use crate::runs;
use crate::schema::Leaf;
use crate::thrift::Flaw;
use crate::values::{Value, Values};

/// The most values of a page, nulls included: each may take a few bytes of memory, and a few bytes of
/// the file can state any number. Writers aim at 20,000.
pub(crate) const PAGE_VALUES: u32 = 1 << 25;

/// Pages up to this size are decompressed whatever they are compressed to: 64 MiB. Writers aim at
/// 1 MiB.
const PAGE_BYTES: u64 = 64 << 20;

/// The most that a larger page may be compressed, as DEFLATE can at most.
const MAX_RATIO: u64 = 1032;

/// A decoded page of a column that is not in a list: a value or null for each row.
#[derive(Debug)]
pub(crate) struct Page {
    rows: usize,
    /// By row, the values before it; empty if none is null.
    before: Vec<u32>,
    values: Values,
}

/// The place and the column of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageContext<'a> {
    pub(crate) leaf: &'a Leaf,
    pub(crate) codec: Codec,
    /// The offset of the page's header in the file.
    pub(crate) offset: u64,
    /// The most bytes of a page.
    pub(crate) most: u64,
}

impl Page {
    /// The rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The value of row `row`; `None` for null, and past the end.
    pub(crate) fn get(&self, row: usize) -> Option<Value<'_>> {
        if row >= self.rows {
            return None;
        }
        if self.before.is_empty() {
            return self.values.get(row);
        }
        let before = *self.before.get(row)?;
        let after = match self.before.get(row + 1) {
            Some(&after) => usize::try_from(after).ok()?,
            None => self.values.len(),
        };
        let before = usize::try_from(before).ok()?;
        if before < after { self.values.get(before) } else { None }
    }

    /// The memory of its values, if they are bytes.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        self.values.into_buffer()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.values.memory() + size_of_val(&*self.before)
    }

    /// Decodes a data page; `stored` are its bytes after the header.
    pub(crate) fn decode(
        header: &PageHeader,
        stored: &[u8],
        dictionary: Option<&Arc<Values>>,
        context: PageContext<'_>,
    ) -> Result<Self, Flaw> {
        let damaged = |what| context.flaw(RowsDefect::Damaged { what });
        let parts = PageParts::of(header, stored, context)?;
        let rows = usize::try_from(parts.values).map_err(|_| damaged("number of values"))?;
        let nulls = Nulls::decode(parts.definition(), context.leaf.max_definition, rows)
            .ok_or_else(|| damaged("definition levels of the page"))?;
        let values = parts.into_values(rows - nulls.count, dictionary, context)?;
        Ok(Self { rows, before: nulls.before, values })
    }

    /// Decodes a page that is a dictionary.
    pub(crate) fn dictionary(
        header: &PageHeader,
        stored: &[u8],
        context: PageContext<'_>,
    ) -> Result<Values, Flaw> {
        let PageKind::Dictionary { values } = header.kind else {
            return Err(context.flaw(RowsDefect::PageKind { expected: "a dictionary" }));
        };
        let bytes = decompress(header, stored, context)?;
        let count = usize::try_from(values.min(PAGE_VALUES)).unwrap_or(0);
        let decoded =
            Values::decode(context.leaf, Encoding::Plain, bytes, 0, count, None, context.most);
        let is_whole = values <= PAGE_VALUES;
        let decoded = decoded.filter(|_| is_whole);
        decoded.ok_or_else(|| context.flaw(RowsDefect::Damaged { what: "dictionary" }))
    }
}

impl PageContext<'_> {
    pub(crate) fn flaw(&self, defect: RowsDefect) -> Flaw {
        Flaw::new(self.offset, defect)
    }
}

/// A data page, decompressed.
pub(crate) struct PageParts {
    pub(crate) values: u32,
    encoding: Encoding,
    /// Levels and values, or values alone.
    bytes: Vec<u8>,
    /// The place of the values in the bytes.
    start: usize,
    /// Levels that are apart from the values.
    apart: Option<Vec<u8>>,
    repetition: LevelPlace,
    definition: LevelPlace,
}

/// The place of levels.
struct LevelPlace {
    range: Range<usize>,
    encoding: Levels,
}

/// The levels of a page, as they are stored.
#[derive(Clone, Copy)]
pub(crate) struct StoredLevels<'p> {
    bytes: &'p [u8],
    encoding: Levels,
}

impl StoredLevels<'_> {
    /// Calls `take` with runs of `count` levels; `None` if the bytes are damaged, or a level is greater
    /// than `max`.
    pub(crate) fn decode(
        self,
        max: u8,
        count: usize,
        mut take: impl FnMut(u8, usize),
    ) -> Option<()> {
        let mut is_valid = true;
        let take = |level: u32, run: usize| {
            is_valid &= level <= max.into();
            take(u8::try_from(level).unwrap_or(u8::MAX).min(max), run);
        };
        let width = runs::width_of(max);
        match self.encoding {
            Levels::Rle => runs::decode(self.bytes, width, count, take)?,
            Levels::BitPacked => runs::decode_packed(self.bytes, width, count, take)?,
        }
        is_valid.then_some(())
    }
}

impl PageParts {
    /// Decompresses a data page; `stored` are its bytes after the header.
    pub(crate) fn of(
        header: &PageHeader,
        stored: &[u8],
        context: PageContext<'_>,
    ) -> Result<Self, Flaw> {
        match header.kind {
            PageKind::Data { values, encoding, definition, repetition } => {
                let bytes = decompress(header, stored, context)?;
                let damaged = || context.flaw(RowsDefect::Damaged { what: LEVELS });
                let place = |encoding, max, start: usize| {
                    let rest = bytes.get(start..)?;
                    let len = level_bytes(rest, encoding, max, values)?;
                    // The length in front of them is not a level.
                    let first = if encoding == Levels::Rle { len.min(LENGTH_BYTES) } else { 0 };
                    Some(LevelPlace { range: start + first..start + len, encoding })
                };
                let max = context.leaf.max_repetition;
                let repetition = place(repetition, max, 0).ok_or_else(damaged)?;
                let max = context.leaf.max_definition;
                let definition =
                    place(definition, max, repetition.range.end).ok_or_else(damaged)?;
                let start = definition.range.end;
                Ok(Self { values, encoding, bytes, start, apart: None, repetition, definition })
            }
            PageKind::DataV2 { .. } => Self::of_version_2(header, stored, context),
            PageKind::Dictionary { .. } | PageKind::Other => {
                Err(context.flaw(RowsDefect::PageKind { expected: "data" }))
            }
        }
    }

    fn of_version_2(
        header: &PageHeader,
        stored: &[u8],
        context: PageContext<'_>,
    ) -> Result<Self, Flaw> {
        let damaged = || context.flaw(RowsDefect::Damaged { what: LEVELS });
        let PageKind::DataV2 {
            values,
            encoding,
            definition_bytes,
            repetition_bytes,
            is_compressed,
            ..
        } = header.kind
        else {
            return Err(context.flaw(RowsDefect::PageKind { expected: "data" }));
        };
        check_checksum(header, stored, context)?;
        let first = usize::try_from(repetition_bytes).map_err(|_| damaged())?;
        let second = usize::try_from(definition_bytes).map_err(|_| damaged())?;
        let end = first.checked_add(second).ok_or_else(damaged)?;
        let (levels, stored) = stored.split_at_checked(end).ok_or_else(damaged)?;
        let len = u64::from(header.decompressed).checked_sub(levels.len() as u64);
        let codec = if is_compressed { context.codec } else { Codec::Uncompressed };
        let bytes = unpack(codec, stored, len.ok_or_else(damaged)?, context)?;
        let place = |range| LevelPlace { range, encoding: Levels::Rle };
        let apart = Some(levels.to_vec());
        let repetition = place(0..first);
        let definition = place(first..end);
        Ok(Self { values, encoding, bytes, start: 0, apart, repetition, definition })
    }

    /// The repetition levels.
    pub(crate) fn repetition(&self) -> StoredLevels<'_> {
        self.levels(&self.repetition)
    }

    /// The definition levels.
    pub(crate) fn definition(&self) -> StoredLevels<'_> {
        self.levels(&self.definition)
    }

    fn levels(&self, place: &LevelPlace) -> StoredLevels<'_> {
        let bytes = self.apart.as_deref().unwrap_or(&self.bytes);
        let bytes = bytes.get(place.range.clone()).unwrap_or_default();
        StoredLevels { bytes, encoding: place.encoding }
    }

    /// Decodes `count` values.
    pub(crate) fn into_values(
        self,
        count: usize,
        dictionary: Option<&Arc<Values>>,
        context: PageContext<'_>,
    ) -> Result<Values, Flaw> {
        let Self { encoding, bytes, start, .. } = self;
        let most = context.most;
        let values = Values::decode(context.leaf, encoding, bytes, start, count, dictionary, most);
        values.ok_or_else(|| context.flaw(RowsDefect::Damaged { what: "values of the page" }))
    }
}

/// Bytes of the length in front of levels.
const LENGTH_BYTES: usize = size_of::<u32>();

const LEVELS: &str = "levels of the page";

/// The bytes of definition levels in front of values.
pub(crate) fn level_bytes(page: &[u8], encoding: Levels, max: u8, values: u32) -> Option<usize> {
    if max == 0 {
        return Some(0);
    }
    let bytes = match encoding {
        Levels::Rle => {
            let length = page.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*length)).ok()?.checked_add(length.len())?
        }
        Levels::BitPacked => {
            runs::packed_bytes(runs::width_of(max), usize::try_from(values).ok()?)?
        }
    };
    (bytes <= page.len()).then_some(bytes)
}

/// The rows that are null.
#[derive(Default)]
struct Nulls {
    count: usize,
    /// As [`Page::before`].
    before: Vec<u32>,
}

impl Nulls {
    fn decode(levels: StoredLevels<'_>, max: u8, rows: usize) -> Option<Self> {
        let mut nulls = Self::default();
        if max == 0 {
            return Some(nulls);
        }
        let mut row = 0;
        levels.decode(max, rows, |level, run| {
            let is_null = level < max;
            if is_null && nulls.before.is_empty() {
                nulls.before = (0..).take(row).collect();
                nulls.before.reserve(rows - row);
            }
            for _ in 0..run {
                if is_null || nulls.count > 0 {
                    let before = u32::try_from(row - nulls.count).unwrap_or(u32::MAX);
                    nulls.before.push(before);
                }
                nulls.count += usize::from(is_null);
                row += 1;
            }
        })?;
        Some(nulls)
    }
}

/// The bytes of a page that is compressed as a whole.
fn decompress(
    header: &PageHeader,
    stored: &[u8],
    context: PageContext<'_>,
) -> Result<Vec<u8>, Flaw> {
    check_checksum(header, stored, context)?;
    unpack(context.codec, stored, header.decompressed.into(), context)
}

fn unpack(
    codec: Codec,
    stored: &[u8],
    need: u64,
    context: PageContext<'_>,
) -> Result<Vec<u8>, Flaw> {
    decompressed(codec, stored, need, context.offset, context.most)
}

/// Decompresses `need` bytes, of which there may be `most`. Errors name `offset`.
pub(crate) fn decompressed(
    codec: Codec,
    stored: &[u8],
    need: u64,
    offset: u64,
    most: u64,
) -> Result<Vec<u8>, Flaw> {
    let most = PAGE_BYTES.max((stored.len() as u64).saturating_mul(MAX_RATIO)).min(most);
    let too_large = || {
        let what = "size of decompressed data";
        Flaw::new(offset, RowsDefect::TooLarge { what, found: need, limit: most })
    };
    if need > most {
        return Err(too_large());
    }
    let len = usize::try_from(need).map_err(|_| too_large())?;
    let mut bytes = cache::spare(len);
    // Without clearing it: only bytes beyond the earlier ones need zeroing.
    bytes.try_reserve_exact(len.saturating_sub(bytes.len())).map_err(|_| too_large())?;
    bytes.resize(len, 0);
    if codec.decompress(stored, &mut bytes) {
        return Ok(bytes);
    }
    Err(Flaw::new(offset, RowsDefect::Compressed { codec: codec.name(), bytes: need }))
}

fn check_checksum(
    header: &PageHeader,
    stored: &[u8],
    context: PageContext<'_>,
) -> Result<(), Flaw> {
    let Some(expected) = header.checksum else { return Ok(()) };
    let computed = crc32fast::hash(stored);
    if computed == expected {
        return Ok(());
    }
    Err(context.flaw(RowsDefect::Checksum { stored: expected, computed }))
}
