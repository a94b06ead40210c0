//! The messages of Arrow files: a schema, dictionaries, record batches.

use std::ops::Range;
use std::sync::OnceLock;

use tbl_io::RowsDefect;

use crate::codec::Codec;
use crate::ipc::flat::{Flat, Table};
use crate::ipc::schema::{Columns, Cursor};
use crate::thrift::Flaw;

/// The place of a message in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The offset of the metadata.
    pub(crate) metadata: u64,
    pub(crate) metadata_bytes: u64,
}

/// A message.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    Schema(Columns),
    Dictionary { id: i64, is_delta: bool, values: Table<'a>, body_bytes: u64 },
    Batch { batch: Table<'a>, body_bytes: u64 },
}

/// Values of all columns, or of a dictionary.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The offset of the message's metadata, which errors name.
    pub(crate) offset: u64,
    pub(crate) rows: u32,
    nodes: Box<[FieldNode]>,
    buffers: Box<[Buffer]>,
    /// By field of views, the buffers that only it has.
    views: Box<[u32]>,
    pub(crate) codec: Option<Codec>,
    /// By buffer of a batch with a codec, the length in front of it once it was read.
    lengths: Box<[OnceLock<i64>]>,
}

/// The values of a field in a record batch.
#[derive(Clone, Copy, Debug, Default)]
struct FieldNode {
    count: u64,
    nulls: u64,
}

/// A range of the file, which is inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Bytes in front of the metadata of a message: the mark and the length.
pub(crate) const PREFIX_BYTES: u64 = 8;

/// The mark of a message; the earliest writers have none.
pub(crate) const MARK: [u8; 4] = [0xff; 4];

/// The versions of metadata that are read: 4 and 5, since Arrow 0.8 of 2017.
const VERSIONS: [i16; 2] = [3, 4];

const WHAT: &str = "metadata of a message";

impl Frame {
    /// The place of the message at `offset`, from its first bytes; `None` for the end of a stream.
    /// Bytes that are missing count as zeros, as at the end of a stream.
    pub(crate) fn parse(prefix: &[u8], offset: u64) -> Result<Option<Self>, Flaw> {
        let number = |at: usize| {
            let bytes = prefix.get(at..).and_then(<[u8]>::first_chunk);
            i32::from_le_bytes(bytes.copied().unwrap_or_default())
        };
        let has_mark = prefix.starts_with(&MARK);
        let length = number(if has_mark { 4 } else { 0 });
        let metadata = offset + if has_mark { PREFIX_BYTES } else { 4 };
        let what = "length of the metadata of a message";
        let expected = "at least 0";
        let metadata_bytes = u64::try_from(length).map_err(|_| {
            let value = length.into();
            Flaw::new(metadata - 4, RowsDefect::Value { what, value, expected })
        })?;
        Ok((metadata_bytes > 0).then_some(Self { metadata, metadata_bytes }))
    }

    /// The offset of the byte after the metadata.
    pub(crate) fn end(self) -> u64 {
        self.metadata.saturating_add(self.metadata_bytes)
    }
}

impl<'a> Message<'a> {
    /// Parses the metadata of a message, which is at `offset`.
    pub(crate) fn parse(metadata: &'a [u8], offset: u64) -> Result<Self, Flaw> {
        let message = Flat::new(metadata, offset, WHAT).root()?;
        let version = message.i16(0, 0)?;
        if !VERSIONS.contains(&version) {
            let what = "version of the metadata";
            let value = version.into();
            let expected = "3 or 4";
            return Err(message.error(RowsDefect::Value { what, value, expected }));
        }
        let body_bytes = message.count(3, "bytes of a message")?;
        let header = || message.required(2, "header");
        Ok(match message.byte(1)? {
            1 => Self::Schema(Columns::parse(header()?)?),
            2 => {
                let header = header()?;
                let values = header.required(1, "values")?;
                let is_delta = header.byte(2)? != 0;
                Self::Dictionary { id: header.i64(0)?, is_delta, values, body_bytes }
            }
            3 => Self::Batch { batch: header()?, body_bytes },
            kind => {
                let what = "type of a message";
                let value = kind.into();
                let expected = "1, 2 or 3";
                return Err(message.error(RowsDefect::Value { what, value, expected }));
            }
        })
    }
}

impl Batch {
    /// Parses a table of type `RecordBatch`, whose values lie in the file from `body` on and take as
    /// much as `expected`.
    pub(crate) fn parse(
        table: Table<'_>,
        offset: u64,
        body: Buffer,
        expected: Cursor,
    ) -> Result<Self, Flaw> {
        let rows = table.count(0, "rows of a record batch")?;
        let rows = u32::try_from(rows).map_err(|_| {
            let what = "rows of a record batch";
            let limit = u32::MAX.into();
            table.error(RowsDefect::TooLarge { what, found: rows, limit })
        })?;
        let nodes = table.structures::<16>(1)?.iter().map(FieldNode::of);
        let nodes: Box<[FieldNode]> = nodes.collect();
        let mut views = Vec::new();
        for count in table.structures::<8>(4)? {
            let count = i64::from_le_bytes(*count);
            let what = "buffers of a column of views";
            let defect = RowsDefect::Value { what, value: count, expected: "at least 0" };
            views.push(u32::try_from(count).map_err(|_| table.error(defect))?);
        }
        let mut buffers = Vec::new();
        for buffer in table.structures::<16>(2)? {
            buffers.push(inside(table, body, buffer)?);
        }
        let of_views: u64 = views.iter().map(|&count| u64::from(count)).sum();
        let count = |what, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => {
                let found = found as u64;
                let expected = expected as u64;
                Err(table.error(RowsDefect::Count { what, found, expected }))
            }
        };
        count("number of nodes in a record batch", nodes.len(), expected.nodes)?;
        count("number of columns of views in a record batch", views.len(), expected.views)?;
        let expected = expected.buffers.saturating_add(usize::try_from(of_views).unwrap_or(0));
        count("number of buffers in a record batch", buffers.len(), expected)?;
        let codec = table.table(3)?.map(codec).transpose()?;
        let with_lengths = if codec.is_some() { buffers.len() } else { 0 };
        let lengths = (0..with_lengths).map(|_| OnceLock::new()).collect();
        let buffers = buffers.into_boxed_slice();
        let views = views.into_boxed_slice();
        Ok(Self { offset, rows, nodes, buffers, views, codec, lengths })
    }

    /// The number of values of a field.
    pub(crate) fn len(&self, at: Cursor) -> u64 {
        self.nodes.get(at.nodes).map_or(0, |node| node.count)
    }

    /// Whether a field has nulls, as far as the metadata say.
    pub(crate) fn has_nulls(&self, at: Cursor) -> bool {
        self.nodes.get(at.nodes).is_some_and(|node| node.nulls > 0)
    }

    /// The number of buffer `number` of a field.
    pub(crate) fn buffer_number(&self, at: Cursor, number: usize) -> usize {
        let views = self.views.get(..at.views).unwrap_or(&self.views);
        let before: usize = views.iter().map(|&count| count as usize).sum();
        at.buffers + before + number
    }

    /// Whether any field has nulls.
    pub(crate) fn has_any_nulls(&self) -> bool {
        self.nodes.iter().any(|node| node.nulls > 0)
    }

    /// The numbers of the buffers from that of one field up to that of another.
    pub(crate) fn buffer_numbers(&self, from: Cursor, to: Cursor) -> Range<usize> {
        self.buffer_number(from, 0)..self.buffer_number(to, 0)
    }

    pub(crate) fn buffer(&self, number: usize) -> Option<Buffer> {
        self.buffers.get(number).copied()
    }

    /// The length in front of buffer `number` of a batch with a codec, from `read` the first time.
    pub(crate) fn length<E>(
        &self,
        number: usize,
        read: impl FnOnce() -> Result<i64, E>,
    ) -> Result<i64, E> {
        let kept = self.lengths.get(number);
        if let Some(length) = kept.and_then(OnceLock::get) {
            return Ok(*length);
        }
        let length = read()?;
        Ok(kept.map_or(length, |kept| *kept.get_or_init(|| length)))
    }

    /// The buffers that only a field of views has.
    pub(crate) fn view_buffers(&self, at: Cursor) -> u32 {
        self.views.get(at.views).copied().unwrap_or(0)
    }
}

impl FieldNode {
    /// Of two numbers, which cannot be negative.
    fn of(structure: &[u8; 16]) -> Self {
        let (numbers, _) = structure.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|number| i64::from_le_bytes(*number));
        let mut number = || numbers.next().and_then(|number| u64::try_from(number).ok());
        Self { count: number().unwrap_or(0), nulls: number().unwrap_or(0) }
    }
}

/// A buffer by its place in the body.
fn inside(table: Table<'_>, body: Buffer, structure: &[u8; 16]) -> Result<Buffer, Flaw> {
    let (numbers, _) = structure.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
    let offset = numbers.next().unwrap_or(0);
    let bytes = numbers.next().unwrap_or(0);
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= body.bytes);
    if !is_inside {
        let what = "buffer of a record batch";
        let file_bytes = body.bytes;
        return Err(table.error(RowsDefect::OutsideFile { what, offset, bytes, file_bytes }));
    }
    Ok(Buffer { offset: body.offset + offset, bytes })
}

fn codec(table: Table<'_>) -> Result<Codec, Flaw> {
    match table.byte(0)? {
        0 => Ok(Codec::Lz4Frame),
        1 => Ok(Codec::Zstd),
        number => {
            let codec = format!("codec {number}");
            Err(table.error(RowsDefect::UnknownCodec { codec }))
        }
    }
}
