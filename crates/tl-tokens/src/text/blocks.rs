//! Files of texts in blocks, which threads tokenize one at a time.

use std::sync::Arc;

use tbl_io::{
    ListOptions, Location, Manifest, PlainReader, ReadError, SampleSource, Source, Stores,
};

use super::files::{TextFiles, TextKind};
use super::{TextOptions, too_long};

/// Bytes of lines that a block has about: some 50 ms of tokenizing.
const BLOCK_BYTES: usize = 256 << 10;

/// Rows of a table that a block has.
const BLOCK_ROWS: u64 = 64;

/// A part of the texts.
#[derive(Debug)]
pub(super) enum Block {
    /// Whole lines; `line` and `offset` are those of the first one.
    Lines { location: Location, line: u64, offset: u64, bytes: Vec<u8> },
    /// One text.
    Whole { location: Location, bytes: Vec<u8> },
    /// Rows of a table.
    Rows { source: Arc<dyn SampleSource>, first: u64, count: u64 },
    /// A text that cannot be read.
    Bad(ReadError),
}

/// The blocks of files, in order.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    stores: &'a Stores,
    options: &'a TextOptions,
    files: TextFiles,
    current: Option<Current>,
    /// Bytes of the files that are done, and of those before the current one.
    done: u64,
    before: u64,
}

#[derive(Debug)]
enum Current {
    Lines(Box<Lines>),
    Rows { source: Arc<dyn SampleSource>, bytes: u64, next: u64 },
}

impl<'a> Blocks<'a> {
    pub(super) fn new(stores: &'a Stores, options: &'a TextOptions, files: TextFiles) -> Self {
        Self { stores, options, files, current: None, done: 0, before: 0 }
    }

    /// Bytes of the files whose blocks were returned.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// Those of files that cannot be read. No block follows.
    pub(super) fn next(&mut self) -> Result<Option<Block>, ReadError> {
        loop {
            match &mut self.current {
                None => {
                    let Some(location) = self.files.files.pop_front() else { return Ok(None) };
                    self.before = self.done;
                    if let Some(block) = self.open(&location)? {
                        return Ok(Some(block));
                    }
                }
                Some(Current::Lines(lines)) => {
                    let block = lines.next(self.options.document_bytes)?;
                    self.done = self.before + lines.reader.consumed();
                    if block.is_some() {
                        return Ok(block);
                    }
                    self.current = None;
                }
                Some(Current::Rows { source, bytes, next }) => {
                    let first = *next;
                    let all = source.sample_count();
                    let count = (all - first).min(BLOCK_ROWS);
                    *next += count;
                    let part = u128::from(*bytes) * u128::from(*next) / u128::from(all.max(1));
                    self.done = self.before + u64::try_from(part).unwrap_or(*bytes);
                    if count > 0 {
                        let source = Arc::clone(source);
                        return Ok(Some(Block::Rows { source, first, count }));
                    }
                    self.done = self.before + *bytes;
                    self.current = None;
                }
            }
        }
    }

    /// Opens the next file; a text that fills it is returned.
    fn open(&mut self, location: &Location) -> Result<Option<Block>, ReadError> {
        let source = self.stores.open_existing(location)?.ok_or_else(|| {
            let source = std::io::ErrorKind::NotFound.into();
            ReadError::Io { location: location.clone(), source }
        })?;
        match TextKind::of(&source)? {
            TextKind::Lines => {
                self.current = Some(Current::Lines(Box::new(Lines::new(&source)?)));
                Ok(None)
            }
            TextKind::Whole => {
                let block = whole(&source, self.options.document_bytes)?;
                self.done += source.len();
                Ok(Some(block))
            }
            TextKind::Rows => {
                let bytes = source.len();
                let source = open_rows(self.stores, location, &self.options.field)?;
                self.current = Some(Current::Rows { source, bytes, next: 0 });
                Ok(None)
            }
        }
    }
}

/// A table as samples, whose bytes are those of the column `field`.
pub(crate) fn open_rows(
    stores: &Stores,
    location: &Location,
    field: &str,
) -> Result<Arc<dyn SampleSource>, ReadError> {
    let manifest = Manifest { image: Some(field.to_owned()), ..Manifest::default() };
    let lists = ListOptions { manifest, ..ListOptions::default() };
    let stores = stores.clone().with_list_options(lists);
    tbl_io::open_in(&stores, location).map(Arc::from)
}

/// All bytes of a file as one text.
fn whole(source: &Source, most: u64) -> Result<Block, ReadError> {
    let location = source.location().clone();
    let mut reader = PlainReader::new(source)?;
    let mut bytes = Vec::new();
    let mut end = 0;
    loop {
        bytes.resize(end + BLOCK_BYTES, 0);
        let read = reader.read(&mut bytes[end..])?;
        end += read;
        if read == 0 {
            break;
        }
        if end as u64 > most {
            return Ok(Block::Bad(too_long(&location, None, 0, most)));
        }
    }
    bytes.truncate(end);
    Ok(Block::Whole { location, bytes })
}

/// The lines of a file.
#[derive(Debug)]
struct Lines {
    location: Location,
    reader: PlainReader,
    /// Bytes after the last block, and how many of them have no end of a line.
    rest: Vec<u8>,
    searched: usize,
    line: u64,
    offset: u64,
    is_at_end: bool,
}

impl Lines {
    fn new(source: &Source) -> Result<Self, ReadError> {
        let location = source.location().clone();
        let reader = PlainReader::new(source)?;
        let rest = Vec::new();
        Ok(Self { location, reader, rest, searched: 0, line: 1, offset: 0, is_at_end: false })
    }

    fn next(&mut self, most: u64) -> Result<Option<Block>, ReadError> {
        let mut bytes = std::mem::take(&mut self.rest);
        while !self.is_at_end {
            self.fill(&mut bytes)?;
            let end = bytes[self.searched..].iter().rposition(|&byte| byte == b'\n');
            if let Some(end) = end {
                self.rest = bytes.split_off(self.searched + end + 1);
                self.searched = self.rest.len();
                break;
            }
            self.searched = bytes.len();
            if bytes.len() as u64 > most {
                return self.skip_line(bytes.len(), most).map(Some);
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let location = self.location.clone();
        let block = Block::Lines { location, line: self.line, offset: self.offset, bytes };
        if let Block::Lines { bytes, .. } = &block {
            self.line += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.offset += bytes.len() as u64;
        }
        Ok(Some(block))
    }

    /// Appends about as many bytes as a block has.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let start = bytes.len();
        bytes.resize(start + BLOCK_BYTES, 0);
        let mut end = start;
        while end < bytes.len() && !self.is_at_end {
            let read = self.reader.read(&mut bytes[end..])?;
            self.is_at_end = read == 0;
            end += read;
        }
        bytes.truncate(end);
        Ok(())
    }

    /// Passes over the rest of a line that is too long, whose first `begun` bytes were read.
    fn skip_line(&mut self, begun: usize, most: u64) -> Result<Block, ReadError> {
        let bad = Block::Bad(too_long(&self.location, Some(self.line), self.offset, most));
        let mut length = begun as u64;
        let mut bytes = Vec::new();
        self.searched = 0;
        while !self.is_at_end {
            bytes.clear();
            self.fill(&mut bytes)?;
            if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
                self.rest = bytes.split_off(end + 1);
                length += bytes.len() as u64;
                break;
            }
            length += bytes.len() as u64;
        }
        self.line += 1;
        self.offset += length;
        Ok(bad)
    }
}
