//! Files that are read from front to end, such as JSON Lines: compressed by gzip, by Zstandard, or not
//! at all.

use std::fmt;
use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::error::ReadError;
use crate::source::Source;
use crate::unpack::{BUFFER_BYTES, Compressor, Input, MAX_WINDOW_LOG};

/// The plain bytes of a file, from front to end. Compression is detected by the first bytes.
///
/// ```
/// let source = tbl_io::Source::from_bytes("a.txt", b"plain".to_vec());
/// let mut reader = tbl_io::PlainReader::new(&source)?;
/// let mut bytes = [0; 8];
/// assert_eq!(reader.read(&mut bytes)?, 5);
/// assert_eq!((reader.read(&mut bytes)?, reader.consumed()), (0, 5));
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
pub struct PlainReader(Stream);

enum Stream {
    Plain(Input),
    Gzip(Box<MultiGzDecoder<BufReader<Input>>>),
    Zstd(zstd::Decoder<'static, BufReader<Input>>),
}

impl PlainReader {
    /// Reads the first bytes of `source`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn new(source: &Source) -> Result<Self, ReadError> {
        let input = || BufReader::with_capacity(BUFFER_BYTES, Input::new(source));
        let stream = match Compressor::of(source)? {
            None => Stream::Plain(Input::new(source)),
            Some(Compressor::Gzip) => Stream::Gzip(Box::new(MultiGzDecoder::new(input()))),
            Some(Compressor::Zstd) => {
                let zstd = || {
                    let mut decoder = zstd::Decoder::with_buffer(input())?;
                    decoder.window_log_max(MAX_WINDOW_LOG)?;
                    Ok(Stream::Zstd(decoder))
                };
                zstd().map_err(|error| ReadError::io(source.location(), error))?
            }
        };
        Ok(Self(stream))
    }

    /// Fills the front of `bytes` and returns how many were read; 0 at the end.
    ///
    /// # Errors
    /// [`ReadError::Compressed`] with the offset in the compressed file, and those of reading.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<usize, ReadError> {
        let read = match &mut self.0 {
            Stream::Plain(input) => input.read(bytes),
            Stream::Gzip(decoder) => decoder.read(bytes),
            Stream::Zstd(decoder) => decoder.read(bytes),
        };
        read.map_err(|error| self.error(error))
    }

    /// The bytes of the stored file that were read so far.
    pub fn consumed(&self) -> u64 {
        match &self.0 {
            Stream::Plain(input) => input.at(),
            Stream::Gzip(decoder) => offset(decoder.get_ref()),
            Stream::Zstd(decoder) => offset(decoder.get_ref()),
        }
    }

    fn error(&mut self, error: io::Error) -> ReadError {
        let offset = self.consumed();
        let (input, by) = match &mut self.0 {
            Stream::Plain(input) => (input, None),
            Stream::Gzip(decoder) => (decoder.get_mut().get_mut(), Some(Compressor::Gzip)),
            Stream::Zstd(decoder) => (decoder.get_mut().get_mut(), Some(Compressor::Zstd)),
        };
        if let Some(fault) = input.take_fault() {
            return fault;
        }
        let location = input.source().location().clone();
        let Some(by) = by else { return ReadError::io(location, error) };
        let source = if error.kind() == io::ErrorKind::UnexpectedEof {
            io::Error::new(error.kind(), "the data ends early")
        } else {
            error
        };
        ReadError::Compressed { location, offset, by: by.name(), source }
    }
}

impl fmt::Debug for PlainReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainReader").field("consumed", &self.consumed()).finish_non_exhaustive()
    }
}

/// The place of a decoder in the compressed file.
fn offset(input: &BufReader<Input>) -> u64 {
    input.get_ref().at() - input.buffer().len() as u64
}
