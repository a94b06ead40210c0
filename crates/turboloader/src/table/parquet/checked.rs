//! The bytes of a Parquet file, with its sizes checked before the decoder takes memory for them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::thrift;

/// Pages up to this size are decoded, whatever they are compressed to: 64 MiB. Writers aim at 1 MiB.
const PAGE_BYTES: u64 = 64 << 20;

/// The most that a larger page may be compressed, as DEFLATE can at most.
const MAX_RATIO: u64 = 1032;

/// The length and the signature at the end of a file.
const FOOTER_BYTES: u64 = 8;

/// A file whose size is known.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    file: Arc<File>,
    len: u64,
}

impl Checked {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), len })
    }

    /// Checks the structure of the metadata in front of the footer. A footer that gives no place
    /// for it is left to the decoder, which refuses it.
    pub(super) fn check_metadata(&self) -> Result<()> {
        let Some(footer) = self.len.checked_sub(FOOTER_BYTES) else { return Ok(()) };
        let mut length = [0; 4];
        self.file.get_read(footer)?.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let Some(start) = footer.checked_sub(length) else { return Ok(()) };
        let mut metadata = self.file.get_read(start)?.take(length);
        thrift::check_structure(&mut metadata).map_err(|error| {
            let at = footer - metadata.limit();
            ParquetError::General(format!("byte {at}: metadata of the file: {error}"))
        })
    }
}

impl Length for Checked {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Checked {
    type T = PageHeaderReader;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let is_footer = start.checked_add(FOOTER_BYTES) == Some(self.len);
        let reader = self.file.get_read(start)?;
        let left = self.len.saturating_sub(start);
        Ok(PageHeaderReader { reader, start, left, is_checked: is_footer })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.len) {
            let file_bytes = self.len;
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} end beyond the file of {file_bytes} bytes"
            )));
        }
        self.file.get_bytes(start, length)
    }
}

/// Reads the header of a page, and before that checks the sizes that it states and its structure.
/// The decoder also makes readers from which it reads nothing, at other places.
#[derive(Debug)]
pub(super) struct PageHeaderReader {
    reader: BufReader<File>,
    start: u64,
    /// Bytes of the file from `start` on.
    left: u64,
    is_checked: bool,
}

impl PageHeaderReader {
    /// Checks the structure of the header, and returns to its start.
    fn check_structure(&mut self) -> io::Result<()> {
        let mut header = self.reader.by_ref().take(self.left);
        thrift::check_structure(&mut header).map_err(|error| {
            let at = self.start + self.left - header.limit();
            io::Error::new(error.kind(), format!("byte {at}: {error}"))
        })?;
        let bytes = self.left - header.limit();
        self.reader.seek_relative(-i64::try_from(bytes).map_err(io::Error::other)?)
    }
}

impl Read for PageHeaderReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_checked {
            let sizes = PageSizes::parse(self.reader.fill_buf()?);
            let is_plausible = sizes.is_some_and(|sizes| sizes.is_plausible());
            if !is_plausible {
                let at = self.start;
                let message = match sizes {
                    None => format!("byte {at}: not the header of a page"),
                    Some(PageSizes { stored, decoded }) => format!(
                        "byte {at}: page of {stored} bytes that decode to {decoded}, expected at \
                         most {MAX_RATIO} times as many"
                    ),
                };
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.check_structure()?;
            self.is_checked = true;
        }
        self.reader.read(buffer)
    }
}

/// The sizes of a page without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageSizes {
    stored: u64,
    decoded: u64,
}

impl PageSizes {
    /// Reads the first three fields of a header in Thrift's compact protocol: the kind of page, its
    /// decoded and its stored size, which all headers have.
    fn parse(mut header: &[u8]) -> Option<Self> {
        /// A field of 32 bits, whose number is that of the field before and one.
        const NEXT_I32: u8 = 0x15;
        let mut field = || {
            let (&NEXT_I32, mut rest) = header.split_first()? else { return None };
            let mut zigzag = 0u64;
            for shift in (0..35).step_by(7) {
                let (&byte, after) = rest.split_first()?;
                rest = after;
                zigzag |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    header = rest;
                    // Odd numbers stand for negative ones.
                    return zigzag.is_multiple_of(2).then_some(zigzag / 2);
                }
            }
            None
        };
        let _kind = field()?;
        Some(Self { decoded: field()?, stored: field()? })
    }

    fn is_plausible(self) -> bool {
        self.decoded <= PAGE_BYTES.max(self.stored.saturating_mul(MAX_RATIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_a_page_are_the_second_and_third_field() {
        let header = [0x15, 0x00, 0x15, 0x80, 0x04, 0x15, 0x0c, 0x2c];
        assert_eq!(PageSizes::parse(&header), Some(PageSizes { decoded: 256, stored: 6 }));
        for end in 0..header.len() - 1 {
            assert_eq!(PageSizes::parse(&header[..end]), None);
        }
        let negative = [0x15, 0x00, 0x15, 0x01, 0x15, 0x0c];
        assert_eq!(PageSizes::parse(&negative), None);
    }

    #[test]
    fn pages_decode_to_what_their_bytes_can_hold() {
        let check = |stored, decoded| PageSizes { stored, decoded }.is_plausible();
        assert!(check(0, PAGE_BYTES) && !check(10, PAGE_BYTES + 1));
        assert!(check(1 << 20, 1032 << 20) && !check(1 << 20, (1032 << 20) + 1));
    }
}
