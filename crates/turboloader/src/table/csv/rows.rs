//! Rows of a CSV file, by RFC 4180 to the letter and in bounded memory.
//!
//! Lines end in CR LF, LF or CR. Everything else that the grammar does not have is an error with
//! its place: nothing is guessed, and no row is passed over.

use std::fmt;
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

use super::error::CsvError;
use crate::table::error::TableError;

/// The most columns of a CSV file; each slot of a vector is one. Converting as many takes a few
/// hundred MiB.
pub(crate) const MAX_COLUMNS: usize = 1 << 18;

/// The most bytes of the cells of one row together, and so of one cell: 64 MiB.
pub(crate) const MAX_ROW_BYTES: usize = 64 << 20;

/// The byte order mark that some programs put before UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes that are read together.
const BUFFER_BYTES: usize = 64 << 10;

/// A place in a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line, from 1. Line ends within quotes count.
    pub(crate) line: u64,
    /// The offset of the byte, from 0.
    pub(crate) byte: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}", self.line, self.byte)
    }
}

/// The cells of one row, without their quotes.
#[derive(Debug, Default)]
pub(super) struct Row {
    text: String,
    ends: Vec<usize>,
    is_blank: bool,
}

impl Row {
    /// The cell of number `index`.
    pub(super) fn cell(&self, index: usize) -> Option<&str> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(index)?)
    }

    /// All cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|index| self.cell(index))
    }

    /// Bytes of all cells together.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether the line has no bytes, not even quotes.
    pub(super) fn is_blank(&self) -> bool {
        self.is_blank
    }
}

/// Reads rows, the header among them. All have as many cells as the first.
#[derive(Debug)]
pub(super) struct RowReader<R> {
    source: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// The place of the next byte.
    at: Position,
    /// Whether the last byte was a carriage return: a line feed after it ends no other line.
    after_return: bool,
    width: Option<usize>,
}

impl<R: Read> RowReader<R> {
    /// A reader from the start of `source`.
    ///
    /// # Errors
    /// [`TableError::Io`].
    pub(super) fn new(mut source: R) -> Result<Self, TableError> {
        let mut front = Vec::new();
        source.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut front)?;
        let mut byte = 0;
        if front == BYTE_ORDER_MARK {
            byte = front.len() as u64;
            front.clear();
        }
        Ok(Self {
            source: BufReader::with_capacity(BUFFER_BYTES, Cursor::new(front).chain(source)),
            at: Position { line: 1, byte },
            after_return: false,
            width: None,
        })
    }

    /// The place of the byte after the last row.
    pub(super) fn position(&self) -> Position {
        self.at
    }

    /// Reads the next row into `row`; `false` at the end of the file.
    ///
    /// # Errors
    /// [`TableError::Csv`], [`TableError::Io`].
    pub(super) fn read(&mut self, row: &mut Row) -> Result<bool, TableError> {
        let mut parser = Parser::new(self.at, std::mem::take(row));
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if chunk.is_empty() {
                if !parser.end()? {
                    return Ok(false);
                }
                break;
            }
            let (used, is_done) = parser.feed(chunk, &mut self.at, &mut self.after_return)?;
            self.source.consume(used);
            if is_done {
                break;
            }
        }
        let start = parser.start;
        *row = parser.finish()?;
        let found = row.ends.len();
        let expected = *self.width.get_or_insert(row.ends.len());
        if found == expected {
            Ok(true)
        } else if row.is_blank {
            Err(CsvError::BlankLine { at: start, expected }.into())
        } else {
            Err(CsvError::Width { at: start, found, expected }.into())
        }
    }
}

/// The state of the grammar before the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    RowStart,
    CellStart,
    /// In a cell without quotes.
    Plain,
    /// In a cell within quotes.
    Quoted,
    /// After a quote within quotes: it ends the cell, or is the first of two that are one.
    Quote,
}

/// A row in the making.
#[derive(Debug)]
struct Parser {
    state: State,
    start: Position,
    /// The place of the cell's opening quote.
    quote: Position,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    is_blank: bool,
}

impl Parser {
    /// Uses the memory of `row`.
    fn new(start: Position, row: Row) -> Self {
        let mut bytes = row.text.into_bytes();
        let mut ends = row.ends;
        bytes.clear();
        ends.clear();
        Self { state: State::RowStart, start, quote: start, bytes, ends, is_blank: false }
    }

    /// Takes bytes up to the end of the row. Returns how many, and whether the row ended.
    fn feed(
        &mut self,
        chunk: &[u8],
        at: &mut Position,
        after_return: &mut bool,
    ) -> Result<(usize, bool), CsvError> {
        let mut rest = chunk;
        while let Some((&byte, tail)) = rest.split_first() {
            let is_special = |byte: &u8| matches!(byte, b',' | b'"' | b'\r' | b'\n');
            if !is_special(&byte) {
                let run = rest.iter().position(is_special).unwrap_or(rest.len());
                let (text, after) = rest.split_at(run);
                match self.state {
                    State::Quote => return Err(CsvError::AfterQuote { at: *at }),
                    State::RowStart | State::CellStart => self.state = State::Plain,
                    State::Plain | State::Quoted => {}
                }
                self.push(text)?;
                at.byte += run as u64;
                *after_return = false;
                rest = after;
                continue;
            }
            let follows_return = byte == b'\n' && *after_return;
            // Such a line feed belongs to the line end of the row before.
            let ended = !(follows_return && self.state == State::RowStart)
                && self.take_special(byte, *at)?;
            at.byte += 1;
            at.line += u64::from(byte == b'\r' || (byte == b'\n' && !follows_return));
            *after_return = byte == b'\r';
            rest = tail;
            if ended {
                return Ok((chunk.len() - rest.len(), true));
            }
            if self.state == State::RowStart {
                self.start = *at;
            }
        }
        Ok((chunk.len(), false))
    }

    /// Takes a comma, a quote or a byte of a line end. Returns whether it ends the row.
    fn take_special(&mut self, byte: u8, at: Position) -> Result<bool, CsvError> {
        match (self.state, byte) {
            (State::Quoted, b'"') => self.state = State::Quote,
            (State::Quoted, _) => self.push(&[byte])?,
            (State::Quote, b'"') => {
                self.push(b"\"")?;
                self.state = State::Quoted;
            }
            (State::Plain, b'"') => return Err(CsvError::StrayQuote { at }),
            (State::RowStart | State::CellStart, b'"') => {
                (self.state, self.quote) = (State::Quoted, at);
            }
            (_, b',') => {
                self.end_cell()?;
                self.state = State::CellStart;
            }
            (state, _) => {
                self.is_blank = state == State::RowStart;
                self.end_cell()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The end of the file. Whether there is a row: the end of the last line starts no other.
    fn end(&mut self) -> Result<bool, CsvError> {
        match self.state {
            State::RowStart => return Ok(false),
            State::Quoted => return Err(CsvError::Unclosed { at: self.quote }),
            State::CellStart | State::Plain | State::Quote => self.end_cell()?,
        }
        Ok(true)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), CsvError> {
        if self.bytes.len().saturating_add(bytes.len()) > MAX_ROW_BYTES {
            let at = self.start;
            let cell = self.ends.len() + 1;
            return Err(CsvError::RowBytes { at, cell, limit: MAX_ROW_BYTES });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn end_cell(&mut self) -> Result<(), CsvError> {
        if self.ends.len() == MAX_COLUMNS {
            return Err(CsvError::Columns { at: self.start, limit: MAX_COLUMNS });
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn finish(self) -> Result<Row, CsvError> {
        let Self { start, bytes, ends, is_blank, .. } = self;
        let text = match String::from_utf8(bytes) {
            // A character that starts in one cell and ends in the next is invalid.
            Ok(text) => match ends.iter().position(|&end| !text.is_char_boundary(end)) {
                None => text,
                Some(cell) => return Err(CsvError::NotUtf8 { at: start, cell: cell + 1 }),
            },
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let cell = ends.partition_point(|&end| end <= valid);
                return Err(CsvError::NotUtf8 { at: start, cell: cell + 1 });
            }
        };
        Ok(Row { text, ends, is_blank })
    }
}

#[cfg(test)]
mod tests;
