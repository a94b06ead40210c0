//! The lines of a file of texts: found by one pass, or listed by a shard index.

use std::sync::Arc;

use tbl_format::shard_index::{PartReader, push_number};
use tbl_format::{FormatError, SampleFormat};
use tbl_io::{
    ContainerFormat, Entry, FilePart, Location, ReadError, SampleSource, Source, SourceKind,
    Stores, TokensDefect, open_seekable,
};

use super::files::TextKind;
use crate::mix::mix;

/// The most lines of a file: 8 bytes of memory each.
const MAX_LINES: u64 = 1 << 28;

/// Bytes that are searched for ends of lines at a time.
const SEARCHED_BYTES: usize = 1 << 20;

/// Bytes at each end of a file that its number has.
const HASHED_BYTES: u64 = 64 << 10;

/// The lines of a file that have texts: those that are not only spaces.
///
/// As a [`SampleSource`] each line is a sample.
#[derive(Debug)]
pub(crate) struct TextLines {
    /// The plain bytes.
    source: Source,
    starts: Vec<u64>,
    has_blanks: bool,
    id: u64,
}

impl TextLines {
    /// Finds the lines of a file, in one pass. Of a compressed file with a seek table they are those of
    /// the plain bytes.
    ///
    /// # Errors
    /// [`TokensDefect::CompressedText`], [`ReadError::Limit`], and those of reading.
    pub(crate) fn find(source: &Source) -> Result<Self, ReadError> {
        let source = plain(source)?;
        let id = content_id(&source)?;
        let mut lines = Self { source, starts: Vec::new(), has_blanks: false, id };
        lines.search()?;
        Ok(lines)
    }

    fn search(&mut self) -> Result<(), ReadError> {
        let Self { source, starts, has_blanks, .. } = self;
        let mut start = 0;
        let mut is_blank = true;
        let mut bytes = Vec::new();
        let mut at = 0;
        while at < source.len() {
            let length = (source.len() - at).min(SEARCHED_BYTES as u64);
            source.read_range_into(at, length, &mut bytes)?;
            let mut rest = &bytes[..];
            if at == 0 {
                // A line with nothing but the mark of UTF-8 is blank.
                rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
            }
            while let Some(end) = memchr::memchr(b'\n', rest) {
                is_blank &= rest[..end].trim_ascii().is_empty();
                if is_blank {
                    *has_blanks = true;
                } else {
                    starts.push(start);
                }
                rest = &rest[end + 1..];
                start = at + length - rest.len() as u64;
                is_blank = true;
            }
            is_blank &= rest.trim_ascii().is_empty();
            at += length;
            if starts.len() as u64 > MAX_LINES {
                let location = source.location().clone();
                let need = starts.len() as u64;
                return Err(ReadError::Limit { location, what: "lines", limit: MAX_LINES, need });
            }
        }
        if !is_blank {
            starts.push(start);
        }
        Ok(())
    }

    /// The part in a shard index.
    fn to_part(&self) -> Vec<u8> {
        let mut part = Vec::new();
        push_number(&mut part, self.has_blanks.into());
        push_number(&mut part, self.source.len());
        part.extend(self.id.to_le_bytes());
        push_number(&mut part, self.starts.len() as u64);
        let mut last = 0;
        for start in &self.starts {
            push_number(&mut part, start - last);
            last = *start;
        }
        part
    }

    /// The lines of a file by its part in a shard index. Nothing of the file is read, unless it has a
    /// seek table.
    fn of_part(source: &Source, part: &[u8]) -> Result<Self, ReadError> {
        let source = plain(source)?;
        let damaged = |defect| {
            let location = source.location().clone();
            ReadError::Format { location, offset: 0, source: defect }
        };
        let mut part = PartReader::new(part, "lines of a file");
        let mut read = || {
            let has_blanks = part.number()? != 0;
            if part.number()? != source.len() {
                return Err(part.unreadable());
            }
            let id = part.bytes(size_of::<u64>())?;
            let id = u64::from_le_bytes(id.try_into().map_err(|_| part.unreadable())?);
            let count = part.count()?;
            if count as u64 > MAX_LINES {
                return Err(part.unreadable());
            }
            let mut starts: Vec<u64> = Vec::with_capacity(count);
            for _ in 0..count {
                let step = part.number()?;
                let start = starts.last().map_or(Some(step), |last| last.checked_add(step));
                let is_next = starts.is_empty() || step > 0;
                let start = start.filter(|start| is_next && *start < source.len());
                starts.push(start.ok_or_else(|| part.unreadable())?);
            }
            part.clone().finish()?;
            Ok::<_, FormatError>((has_blanks, id, starts))
        };
        let (has_blanks, id, starts) = read().map_err(damaged)?;
        Ok(Self { starts, has_blanks, id, source })
    }

    /// The plain bytes.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// True if lines of spaces are between the lines, so that their numbers are not known.
    pub(crate) fn has_blanks(&self) -> bool {
        self.has_blanks
    }

    /// A number that tells the plain bytes from others, for saved states.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Offset and length in bytes of a line that exists, with lines of spaces after it.
    pub(crate) fn range(&self, line: u64) -> (u64, u64) {
        let place = usize::try_from(line).unwrap_or(usize::MAX);
        let start = self.starts.get(place).copied().unwrap_or(self.source.len());
        let next = place.saturating_add(1);
        let end = self.starts.get(next).copied().unwrap_or(self.source.len());
        (start, end - start)
    }
}

impl SampleSource for TextLines {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Tokens
    }

    fn sample_count(&self) -> u64 {
        self.starts.len() as u64
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        if index >= self.sample_count() {
            let location = self.location().clone();
            let sample_count = self.sample_count();
            return Err(ReadError::SampleOutOfRange { location, index, sample_count });
        }
        let (offset, bytes) = self.range(index);
        let format = SampleFormat::Unknown;
        let stored_bytes = bytes;
        Ok(Entry {
            key: None,
            label: None,
            format,
            width: 0,
            height: 0,
            offset,
            stored_bytes,
            bytes,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let Entry { offset, bytes: length, .. } = self.entry(index)?;
        let read = self.source.read_range_into(offset, length, bytes);
        read.map_err(|error| error.for_sample(index, None))
    }
}

/// The plain bytes of a file, by position.
///
/// # Errors
/// [`TokensDefect::CompressedText`] for a compressed file without a seek table.
pub(super) fn plain(source: &Source) -> Result<Source, ReadError> {
    if let Some(plain) = open_seekable(source)? {
        return Ok(plain);
    }
    let mut front = [0; 4];
    if source.len() >= front.len() as u64 {
        source.read_exact_at(0, &mut front)?;
    }
    if front.starts_with(&[0x1f, 0x8b]) || front == [0x28, 0xb5, 0x2f, 0xfd] {
        let location = source.location().clone();
        let source = TokensDefect::CompressedText;
        return Err(ReadError::Tokens { location, offset: 0, source });
    }
    Ok(source.clone())
}

/// A number that tells bytes from others: of their length and both ends.
pub(super) fn content_id(source: &Source) -> Result<u64, ReadError> {
    let mut id = mix(0, source.len());
    let ends = source.len().min(HASHED_BYTES);
    let mut bytes = Vec::new();
    for first in [0, source.len() - ends] {
        source.read_range_into(first, ends, &mut bytes)?;
        id = bytes.iter().fold(id, |id, &byte| mix(id, byte.into()));
    }
    Ok(id)
}

/// JSON Lines of texts, as files of a shard index.
#[derive(Debug)]
struct TextFormat;

impl ContainerFormat for TextFormat {
    /// None: JSON Lines that are opened as samples are lists of files.
    fn open(&self, _: &Stores, _: &Source) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
        Ok(None)
    }

    fn extension(&self) -> &'static str {
        "jsonl"
    }

    fn index(&self, _: &Stores, source: &Source) -> Result<Option<FilePart>, ReadError> {
        if TextKind::of(source)? != TextKind::Lines {
            return Ok(None);
        }
        let lines = TextLines::find(source)?;
        Ok(Some(FilePart { samples: lines.sample_count(), bytes: lines.to_part() }))
    }

    fn open_part(
        &self,
        _: &Stores,
        source: &Source,
        part: &[u8],
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        Ok(Box::new(TextLines::of_part(source, part)?))
    }
}

/// The same stores, in which [`index_shards`](tbl_io::index_shards) takes JSON Lines of texts as well.
/// Not for opening data sets, where JSON Lines are lists of files.
#[must_use]
pub fn index_texts_in(stores: Stores) -> Stores {
    stores.with_format(Arc::new(TextFormat))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source() -> Source {
        Source::from_bytes("a.jsonl", b"{\"a\": 1}\n\n{}\n{\"b\": 2}".to_vec())
    }

    fn check(part: &[u8]) -> Result<(), TestCaseError> {
        let Ok(lines) = TextLines::of_part(&source(), part) else { return Ok(()) };
        let mut end = 0;
        for line in 0..lines.sample_count() {
            let (offset, length) = lines.range(line);
            prop_assert!(length > 0 && (line == 0 || offset == end));
            end = offset + length;
            lines.read_into(line, &mut Vec::new()).unwrap();
        }
        prop_assert!(end == lines.source.len() || lines.sample_count() == 0);
        Ok(())
    }

    #[test]
    fn a_part_has_the_lines_that_a_pass_finds() {
        let found = TextLines::find(&source()).unwrap();
        let part = found.to_part();
        let again = TextLines::of_part(&source(), &part).unwrap();
        assert_eq!((&found.starts, found.has_blanks, found.id), (&vec![0, 10, 13], true, again.id));
        assert_eq!((again.starts, again.has_blanks), (found.starts, true));
        for len in 0..part.len() {
            assert!(TextLines::of_part(&source(), &part[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn damaged_parts_are_errors_or_lines_of_the_file(
            place: prop::sample::Index,
            byte: u8,
            more in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut part = TextLines::find(&source()).unwrap().to_part();
            *place.get_mut(&mut part) = byte;
            check(&part)?;
            part.truncate(place.index(part.len()));
            part.extend(more);
            check(&part)?;
        }
    }
}
