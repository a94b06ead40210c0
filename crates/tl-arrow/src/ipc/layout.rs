//! The places of schema, dictionaries and record batches: from the footer of a file, or message by
//! message of a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tbl_io::{ReadError, RowsDefect, Source};

use crate::ipc::file::values_of;
use crate::ipc::flat::{Flat, Table};
use crate::ipc::input::Input;
use crate::ipc::message::{Batch, Buffer, Frame, MARK, Message, PREFIX_BYTES};
use crate::ipc::schema::Columns;
use crate::thrift::Flaw;

/// The magic at both ends of a file.
pub(crate) const MAGIC: [u8; 6] = *b"ARROW1";

/// The batches of a file.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) batches: Vec<Batch>,
    pub(crate) dictionaries: Vec<Dictionary>,
    /// The places of dictionaries in the list, by their number, in the order of the file.
    pub(crate) by_id: BTreeMap<i64, Vec<usize>>,
    /// False for a stream that ends without saying so.
    pub(crate) has_end: bool,
}

/// Values of a dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// True for values that are added to those before.
    pub(crate) is_delta: bool,
    /// The record batches in front of it.
    pub(crate) before: usize,
    pub(crate) values: Batch,
}

/// A place that the footer states.
struct Block {
    offset: u64,
    metadata_bytes: u64,
    body_bytes: u64,
}

/// Bytes that are read at the start of a message in a store, which have the metadata of most.
const METADATA_READ: u64 = 4 << 10;

/// The most bytes of a schema, which has the features of `datasets`: 64 MiB.
const MAX_METADATA: u64 = 64 << 20;

/// Bytes that are read at the end of a file in a store.
const TAIL_READ: u64 = 64 << 10;

/// The length and the magic at the end of a file.
const TAIL_BYTES: u64 = 10;

/// The bytes of the magic at the start, with those that fill up to 8.
const HEAD_BYTES: u64 = 8;

/// Whether a file is an Arrow file or begins with the schema of a stream.
pub(crate) fn is_arrow(source: &Source) -> Result<bool, ReadError> {
    let len = source.len();
    let mut head = [0; 8];
    if len < head.len() as u64 {
        return Ok(false);
    }
    source.read_exact_at(0, &mut head)?;
    if head.starts_with(&MAGIC) {
        return Ok(true);
    }
    // Other files may begin with such bytes.
    let Ok(Some(frame)) = Frame::parse(&head, 0) else { return Ok(false) };
    let is_schema = frame.metadata_bytes <= MAX_METADATA && frame.metadata_bytes.is_multiple_of(8);
    if !head.starts_with(&MARK) || !is_schema {
        return Ok(false);
    }
    if frame.end() > len {
        // A stream that was cut short, which the reader says of it.
        return Ok(true);
    }
    let mut metadata = Vec::new();
    source.read_range_into(frame.metadata, frame.metadata_bytes, &mut metadata)?;
    let root = Flat::new(&metadata, frame.metadata, "schema").root();
    Ok(root.and_then(|message| message.byte(1)).is_ok_and(|kind| kind == 1))
}

/// Reads the places of everything, with the columns.
pub(crate) fn read(input: &Input<'_>) -> Result<(Columns, Layout), ReadError> {
    let mut head = [0; MAGIC.len()];
    let has_head = input.source.len() >= head.len() as u64;
    if has_head {
        input.source.read_exact_at(0, &mut head)?;
    }
    let found = if head == MAGIC { read_file(input) } else { read_stream(input) };
    // Lent bytes are copied by now.
    if let Some(map) = input.map {
        map.check()?;
    }
    found
}

fn read_stream(input: &Input<'_>) -> Result<(Columns, Layout), ReadError> {
    let mut at = 0;
    let mut columns = None;
    let mut layout = Layout::default();
    let end = input.source.len();
    while at < end {
        let Some(framed) = Framed::read(input, at, end)? else {
            layout.has_end = true;
            at = end.min(at + PREFIX_BYTES);
            break;
        };
        at = framed.take(input, end, |message, body| match (message, &columns) {
            (Message::Schema(found), None) => {
                columns = Some(found);
                Ok(())
            }
            (message, Some(columns)) => layout.push(&message, columns, framed.frame, body),
            (_, None) => {
                let expected = "a schema";
                Err(Flaw::new(framed.frame.metadata, RowsDefect::MessageKind { expected }))
            }
        })?;
    }
    if at < end {
        let what = "number of bytes after the end of the stream";
        let defect = RowsDefect::TooLarge { what, found: end - at, limit: 0 };
        return Err(input.error(Flaw::new(at, defect)));
    }
    let missing = || {
        let defect = RowsDefect::Missing { what: "stream", field: "schema" };
        input.error(Flaw::new(0, defect))
    };
    Ok((columns.ok_or_else(missing)?, layout))
}

impl Layout {
    /// Adds a dictionary or a record batch.
    fn push(
        &mut self,
        message: &Message<'_>,
        columns: &Columns,
        frame: Frame,
        body: Buffer,
    ) -> Result<(), Flaw> {
        let offset = frame.metadata;
        match message {
            Message::Batch { batch, .. } => {
                self.batches.push(Batch::parse(*batch, offset, body, columns.total)?);
            }
            Message::Dictionary { id, is_delta, values, .. } => {
                let expected = values_of(&columns.fields, *id).ok_or_else(|| {
                    let what = "number of a dictionary";
                    let expected = "that of a column";
                    Flaw::new(offset, RowsDefect::Value { what, value: *id, expected })
                })?;
                let values = Batch::parse(*values, offset, body, expected)?;
                let before = self.batches.len();
                self.by_id.entry(*id).or_default().push(self.dictionaries.len());
                self.dictionaries.push(Dictionary { is_delta: *is_delta, before, values });
            }
            Message::Schema(_) => {
                let expected = "a record batch or a dictionary";
                return Err(Flaw::new(offset, RowsDefect::MessageKind { expected }));
            }
        }
        Ok(())
    }
}

/// A message with its metadata.
struct Framed<'s> {
    frame: Frame,
    metadata: Cow<'s, [u8]>,
}

impl<'s> Framed<'s> {
    /// Reads the message at `offset`, whose metadata end before `end`; `None` at the end of a stream.
    fn read(input: &Input<'s>, offset: u64, end: u64) -> Result<Option<Self>, ReadError> {
        let bytes = METADATA_READ.min(end.saturating_sub(offset));
        let first = input.bytes(Buffer { offset, bytes })?;
        let mark_bytes = if first.starts_with(&MARK) { PREFIX_BYTES } else { 4 };
        if bytes < mark_bytes {
            let what = "message";
            return Err(input.error(Flaw::new(offset, RowsDefect::Truncated { what })));
        }
        let frame = Frame::parse(&first, offset).map_err(|flaw| input.error(flaw))?;
        let Some(frame) = frame else { return Ok(None) };
        let place = Buffer { offset: frame.metadata, bytes: frame.metadata_bytes };
        if frame.end() > end {
            let what = "metadata of a message";
            let Buffer { offset, bytes } = place;
            let defect = RowsDefect::OutsideFile { what, offset, bytes, file_bytes: end };
            return Err(input.error(Flaw::new(frame.metadata, defect)));
        }
        let within = |at: u64| usize::try_from(at.checked_sub(offset)?).ok();
        let range = within(place.offset).zip(within(frame.end()));
        let metadata = match (first, range) {
            (Cow::Borrowed(first), Some((start, end))) if end <= first.len() => {
                Cow::Borrowed(first.get(start..end).unwrap_or_default())
            }
            (Cow::Owned(mut first), Some((start, end))) if end <= first.len() => {
                first.truncate(end);
                first.drain(..start);
                Cow::Owned(first)
            }
            _ => input.bytes(place)?,
        };
        Ok(Some(Self { frame, metadata }))
    }

    /// Calls `take` with the message and its body, and returns the offset of the byte after it, which
    /// must be before `end`.
    fn take(
        &self,
        input: &Input<'_>,
        end: u64,
        take: impl FnOnce(Message<'_>, Buffer) -> Result<(), Flaw>,
    ) -> Result<u64, ReadError> {
        let take = || {
            let message = Message::parse(&self.metadata, self.frame.metadata)?;
            let bytes = match &message {
                Message::Schema(_) => 0,
                Message::Dictionary { body_bytes, .. } | Message::Batch { body_bytes, .. } => {
                    *body_bytes
                }
            };
            let offset = self.frame.end();
            if offset.checked_add(bytes).is_none_or(|after| after > end) {
                let what = "body of a message";
                let defect = RowsDefect::OutsideFile { what, offset, bytes, file_bytes: end };
                return Err(Flaw::new(self.frame.metadata, defect));
            }
            take(message, Buffer { offset, bytes })?;
            Ok(offset + bytes)
        };
        take().map_err(|flaw| input.error(flaw))
    }
}

fn read_file(input: &Input<'_>) -> Result<(Columns, Layout), ReadError> {
    let end = input.source.len();
    let flaw = |offset, defect| input.error(Flaw::new(offset, defect));
    let least = HEAD_BYTES + TAIL_BYTES;
    if end < least {
        return Err(flaw(0, RowsDefect::ShortArrow { bytes: end, least }));
    }
    if input.map.is_none() {
        // The footer comes with it, and the metadata of all record batches with one more request.
        let bytes = TAIL_READ.min(end);
        input.ahead.request(input.source, vec![(end - bytes, bytes)])?;
    }
    let tail = input.bytes(Buffer { offset: end - TAIL_BYTES, bytes: TAIL_BYTES })?;
    let magic = tail.last_chunk().copied().unwrap_or_default();
    if magic != MAGIC {
        return Err(flaw(end - MAGIC.len() as u64, RowsDefect::ArrowMagic { found: magic }));
    }
    let length = tail.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    let bytes = u64::from(length);
    let footer_end = end - TAIL_BYTES;
    let start = footer_end.checked_sub(bytes).filter(|&start| start >= HEAD_BYTES);
    let Some(start) = start else {
        let what = "length of the footer";
        let limit = footer_end - HEAD_BYTES;
        return Err(flaw(footer_end, RowsDefect::TooLarge { what, found: bytes, limit }));
    };
    let footer = input.bytes(Buffer { offset: start, bytes })?;
    let parsed = Footer::parse(&footer, start).map_err(|flaw| input.error(flaw))?;
    let mut layout = Layout { has_end: true, ..Layout::default() };
    let blocks = || parsed.dictionaries.iter().chain(&parsed.batches);
    if input.map.is_none() {
        let inside = |block: &&Block| {
            block.offset.checked_add(block.metadata_bytes).is_some_and(|after| after <= start)
        };
        let ranges = blocks().filter(inside).map(|block| (block.offset, block.metadata_bytes));
        input.ahead.request(input.source, ranges.collect())?;
    }
    // Blocks can name the same message again and again.
    let mut left = end;
    for block in blocks() {
        left = left.checked_sub(block.metadata_bytes).ok_or_else(|| {
            flaw(start, RowsDefect::Damaged { what: "list of record batches in the footer" })
        })?;
        layout.push_block(input, &parsed.columns, block, start)?;
    }
    // Dictionaries hold for all record batches, wherever they are.
    for dictionary in &mut layout.dictionaries {
        dictionary.before = 0;
    }
    Ok((parsed.columns, layout))
}

impl Layout {
    /// Adds the message of a block, which must be what the block says and end before `end`.
    fn push_block(
        &mut self,
        input: &Input<'_>,
        columns: &Columns,
        block: &Block,
        end: u64,
    ) -> Result<(), ReadError> {
        let flaw = |defect| Err(input.error(Flaw::new(block.offset, defect)));
        let metadata_end = block.offset.saturating_add(block.metadata_bytes);
        if metadata_end > end {
            let what = "record batch";
            let Block { offset, metadata_bytes: bytes, .. } = *block;
            return flaw(RowsDefect::OutsideFile { what, offset, bytes, file_bytes: end });
        }
        let Some(mut framed) = Framed::read(input, block.offset, metadata_end)? else {
            return flaw(RowsDefect::MessageKind { expected: "a record batch" });
        };
        // Bytes between the metadata and the body fill up to a multiple of 8.
        framed.frame.metadata_bytes = metadata_end - framed.frame.metadata;
        let after = framed
            .take(input, end, |message, body| self.push(&message, columns, framed.frame, body))?;
        let found = after - metadata_end;
        if found != block.body_bytes {
            let what = "number of bytes of the record batch";
            let expected = block.body_bytes;
            return flaw(RowsDefect::Count { what, found, expected });
        }
        Ok(())
    }
}

struct Footer {
    columns: Columns,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
}

impl Footer {
    fn parse(bytes: &[u8], offset: u64) -> Result<Self, Flaw> {
        let footer = Flat::new(bytes, offset, "footer").root()?;
        let columns = Columns::parse(footer.required(1, "schema")?)?;
        let blocks = |slot| -> Result<Vec<Block>, Flaw> {
            footer.structures::<24>(slot)?.iter().map(|bytes| block(footer, bytes)).collect()
        };
        Ok(Self { columns, dictionaries: blocks(2)?, batches: blocks(3)? })
    }
}

fn block(footer: Table<'_>, bytes: &[u8; 24]) -> Result<Block, Flaw> {
    let (words, _) = bytes.as_chunks::<8>();
    let [offset, metadata, body] = words else {
        return Err(footer.error(RowsDefect::Flatbuffer { what: "footer" }));
    };
    let [a, b, c, d, ..] = *metadata;
    let number = |value: i64| {
        let what = "place of a record batch";
        let expected = "at least 0";
        let defect = RowsDefect::Value { what, value, expected };
        u64::try_from(value).map_err(|_| footer.error(defect))
    };
    Ok(Block {
        offset: number(i64::from_le_bytes(*offset))?,
        metadata_bytes: number(i32::from_le_bytes([a, b, c, d]).into())?,
        body_bytes: number(i64::from_le_bytes(*body))?,
    })
}
