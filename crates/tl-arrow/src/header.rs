//! The headers of pages.

use tbl_io::RowsDefect;

use crate::thrift::{Field, Flaw, Thrift};

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Bytes of the header.
    pub(crate) bytes: u32,
    /// Bytes of the page after its header.
    pub(crate) stored: u32,
    /// Bytes of the page when it is decompressed.
    pub(crate) decompressed: u32,
    /// The CRC-32 of the stored bytes.
    pub(crate) checksum: Option<u32>,
    pub(crate) kind: PageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    Dictionary {
        values: u32,
    },
    /// Values with nulls, and their levels within the compressed bytes.
    Data {
        values: u32,
        encoding: Encoding,
        definition: Levels,
        repetition: Levels,
    },
    /// Values with nulls, and their levels in front of the compressed bytes.
    DataV2 {
        values: u32,
        rows: u32,
        encoding: Encoding,
        definition_bytes: u32,
        repetition_bytes: u32,
        is_compressed: bool,
    },
    /// A page of an index, which nobody writes.
    Other,
}

/// The encoding of levels in a page of the first version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    Rle,
    /// Without a length; writers have not used it since 2013.
    BitPacked,
}

/// The encoding of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Dictionary,
    Rle,
    DeltaBinaryPacked,
    DeltaLengthBytes,
    DeltaBytes,
    ByteStreamSplit,
}

impl Encoding {
    fn of(thrift: &Thrift<'_>, value: i64) -> Result<Self, Flaw> {
        Ok(match value {
            0 => Self::Plain,
            2 | 8 => Self::Dictionary,
            3 => Self::Rle,
            5 => Self::DeltaBinaryPacked,
            6 => Self::DeltaLengthBytes,
            7 => Self::DeltaBytes,
            9 => Self::ByteStreamSplit,
            value => {
                let what = "encoding of a page";
                let expected = "0, 2, 3 or 5 to 9";
                return Err(thrift.flaw(RowsDefect::Value { what, value, expected }));
            }
        })
    }
}

const WHAT: &str = "page header";

impl PageHeader {
    /// Reads the header at the front of `bytes`, which are those of the file from `start` on.
    pub(crate) fn parse(bytes: &[u8], start: u64) -> Result<Self, Flaw> {
        let mut thrift = Thrift::new(bytes, start, WHAT);
        let mut last = 0;
        let mut page_type = None;
        let mut stored = None;
        let mut decompressed = None;
        let mut checksum = None;
        let mut kind = None;
        while let Some(field) = thrift.field(&mut last)? {
            match field.id {
                1 => page_type = Some(thrift.integer(field)?),
                2 => decompressed = Some(thrift.size(field, "size of a decompressed page")?),
                3 => stored = Some(thrift.size(field, "size of a page")?),
                4 => {
                    let crc = i32::try_from(thrift.integer(field)?);
                    checksum = crc.ok().map(i32::cast_unsigned);
                }
                5 => {
                    thrift.structure(field)?;
                    kind = Some(data(&mut thrift)?);
                }
                7 => {
                    thrift.structure(field)?;
                    kind = Some(dictionary(&mut thrift)?);
                }
                8 => {
                    thrift.structure(field)?;
                    kind = Some(data_v2(&mut thrift)?);
                }
                _ => thrift.skip(field)?,
            }
        }
        let page_type = page_type.ok_or_else(|| thrift.missing("type of the page"))?;
        let is_same = |kind: &PageKind| match kind {
            PageKind::Data { .. } => page_type == 0,
            PageKind::Dictionary { .. } => page_type == 2,
            PageKind::DataV2 { .. } => page_type == 3,
            PageKind::Other => false,
        };
        let kind = match kind.filter(is_same) {
            Some(kind) => kind,
            None if page_type == 1 => PageKind::Other,
            None => return Err(thrift.missing("description of its type")),
        };
        Ok(Self {
            bytes: u32::try_from(thrift.consumed()).map_err(|_| thrift.missing("end"))?,
            stored: stored.ok_or_else(|| thrift.missing("size of the page"))?,
            decompressed: decompressed.ok_or_else(|| thrift.missing("decompressed size"))?,
            checksum,
            kind,
        })
    }

    /// The values of a data page, nulls included.
    pub(crate) fn values(&self) -> Option<u32> {
        match self.kind {
            PageKind::Data { values, .. } | PageKind::DataV2 { values, .. } => Some(values),
            PageKind::Dictionary { .. } | PageKind::Other => None,
        }
    }

    /// The encoding of the values of a data page.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        match self.kind {
            PageKind::Data { encoding, .. } | PageKind::DataV2 { encoding, .. } => Some(encoding),
            PageKind::Dictionary { .. } | PageKind::Other => None,
        }
    }

    /// Of the bytes after the header, the place of those that are compressed as one, and their number
    /// when they are decompressed.
    pub(crate) fn compressed_part(&self) -> (u32, u32) {
        let levels = match self.kind {
            PageKind::DataV2 { definition_bytes, repetition_bytes, .. } => {
                definition_bytes.saturating_add(repetition_bytes)
            }
            PageKind::Data { .. } | PageKind::Dictionary { .. } | PageKind::Other => 0,
        };
        (levels, self.decompressed.saturating_sub(levels))
    }

    /// Bytes of the page with its header.
    pub(crate) fn page_bytes(&self) -> u64 {
        u64::from(self.bytes) + u64::from(self.stored)
    }
}

fn data(thrift: &mut Thrift<'_>) -> Result<PageKind, Flaw> {
    let mut last = 0;
    let mut values = None;
    let mut encoding = None;
    let mut definition = Levels::Rle;
    let mut repetition = Levels::Rle;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => values = Some(thrift.size(field, "number of values of a page")?),
            2 => {
                let value = thrift.integer(field)?;
                encoding = Some(Encoding::of(thrift, value)?);
            }
            3 => definition = levels(thrift, field)?,
            4 => repetition = levels(thrift, field)?,
            _ => thrift.skip(field)?,
        }
    }
    Ok(PageKind::Data {
        values: values.ok_or_else(|| thrift.missing("number of values"))?,
        encoding: encoding.ok_or_else(|| thrift.missing("encoding"))?,
        definition,
        repetition,
    })
}

fn levels(thrift: &mut Thrift<'_>, field: Field) -> Result<Levels, Flaw> {
    match thrift.integer(field)? {
        3 => Ok(Levels::Rle),
        4 => Ok(Levels::BitPacked),
        value => {
            let what = "encoding of levels";
            let expected = "3 or 4";
            Err(thrift.flaw(RowsDefect::Value { what, value, expected }))
        }
    }
}

fn dictionary(thrift: &mut Thrift<'_>) -> Result<PageKind, Flaw> {
    let mut last = 0;
    let mut values = None;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => values = Some(thrift.size(field, "number of values of a dictionary")?),
            2 => match thrift.integer(field)? {
                0 | 2 => {}
                value => {
                    let what = "encoding of a dictionary";
                    let expected = "0 or 2";
                    return Err(thrift.flaw(RowsDefect::Value { what, value, expected }));
                }
            },
            _ => thrift.skip(field)?,
        }
    }
    Ok(PageKind::Dictionary { values: values.ok_or_else(|| thrift.missing("number of values"))? })
}

fn data_v2(thrift: &mut Thrift<'_>) -> Result<PageKind, Flaw> {
    let mut last = 0;
    let mut values = None;
    let mut rows = None;
    let mut encoding = None;
    let mut definition = None;
    let mut repetition = None;
    let mut is_compressed = true;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => values = Some(thrift.size(field, "number of values of a page")?),
            3 => rows = Some(thrift.size(field, "number of rows of a page")?),
            4 => {
                let value = thrift.integer(field)?;
                encoding = Some(Encoding::of(thrift, value)?);
            }
            5 => definition = Some(thrift.size(field, "bytes of definition levels")?),
            6 => repetition = Some(thrift.size(field, "bytes of repetition levels")?),
            7 => is_compressed = thrift.boolean(field)?,
            _ => thrift.skip(field)?,
        }
    }
    Ok(PageKind::DataV2 {
        values: values.ok_or_else(|| thrift.missing("number of values"))?,
        rows: rows.ok_or_else(|| thrift.missing("number of rows"))?,
        encoding: encoding.ok_or_else(|| thrift.missing("encoding"))?,
        definition_bytes: definition.ok_or_else(|| thrift.missing("bytes of definition levels"))?,
        repetition_bytes: repetition.ok_or_else(|| thrift.missing("bytes of repetition levels"))?,
        is_compressed,
    })
}
