//! Files of tokens that are being written.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tbl_io::{AtomicFile, Placement, WriteError};

use super::target::TokenTarget;
use crate::format::{HEADER_BYTES, header};
use crate::number::TokenType;

/// Bytes of the index that are read and written at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// A file of tokens, and its index, which have their names when they are complete.
#[derive(Debug)]
pub(super) struct Draft {
    tokens: AtomicFile,
    index: Option<Index>,
    number: TokenType,
    placement: Placement,
    bytes: u64,
}

impl Draft {
    pub(super) fn create(
        path: &Path,
        target: TokenTarget,
        number: TokenType,
        placement: Placement,
    ) -> Result<Self, WriteError> {
        let create = |path: &Path| AtomicFile::create(path, placement).map_err(io_error(path));
        if target == TokenTarget::Megatron && path.extension() != Some(OsStr::new("bin")) {
            let text = "the name of tokens of Megatron-LM ends with .bin";
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(io_error(path)(error));
        }
        let tokens = create(path)?;
        let index = match target {
            TokenTarget::Raw => None,
            TokenTarget::Megatron => Some(Index::new(create(&path.with_extension("idx"))?)?),
        };
        Ok(Self { tokens, index, number, placement, bytes: 0 })
    }

    /// Appends documents: their tokens, and the length of each.
    pub(super) fn write(&mut self, tokens: &[u8], lengths: &[u32]) -> Result<(), WriteError> {
        self.tokens.file().write_all(tokens).map_err(io_error(self.tokens.target()))?;
        self.bytes += tokens.len() as u64;
        self.index.as_mut().map_or(Ok(()), |index| index.write(lengths))
    }

    /// Completes the files and returns their bytes. An index that exists is removed first, so that it
    /// never stands next to other tokens.
    pub(super) fn finish(self) -> Result<u64, WriteError> {
        let Self { tokens, index, number, placement, mut bytes } = self;
        let path = tokens.target().to_owned();
        let Some(index) = index else {
            tokens.commit().map_err(io_error(&path))?;
            return Ok(bytes);
        };
        let (file, index_bytes) = index.finish(number)?;
        bytes += index_bytes;
        let index_path = file.target().to_owned();
        if placement.overwrite {
            match fs::remove_file(&index_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error(&index_path)(error));
                }
                _ => {}
            }
        }
        tokens.commit().map_err(io_error(&path))?;
        if let Err(error) = file.commit() {
            // Tokens without documents are not what was asked for.
            fs::remove_file(&path).map_err(io_error(&path))?;
            return Err(io_error(&index_path)(error));
        }
        Ok(bytes)
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> WriteError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| WriteError::Io { path: path.clone(), source }
}

/// An index of Megatron-LM, whose lengths are written as they come. The rest follows from them.
#[derive(Debug)]
struct Index {
    file: AtomicFile,
    buffer: Vec<u8>,
    documents: u64,
}

impl Index {
    fn new(file: AtomicFile) -> Result<Self, WriteError> {
        let mut index = Self { file, buffer: Vec::with_capacity(BUFFER_BYTES), documents: 0 };
        index.push(&[0; HEADER_BYTES])?;
        Ok(index)
    }

    fn write(&mut self, lengths: &[u32]) -> Result<(), WriteError> {
        self.documents += lengths.len() as u64;
        lengths.iter().try_for_each(|length| self.push(&length.to_le_bytes()))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.file.file().write_all(&self.buffer).map_err(io_error(self.file.target()))?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the place of each document, the numbers of the first sequence of each and of all, which
    /// are its own, and the header.
    fn finish(mut self, number: TokenType) -> Result<(AtomicFile, u64), WriteError> {
        self.flush()?;
        let error = io_error(self.file.target());
        let documents = self.documents;
        let mut start = 0u64;
        let mut lengths = vec![0; BUFFER_BYTES];
        let mut at = HEADER_BYTES as u64;
        let end = at + 4 * documents;
        while at < end {
            let count =
                usize::try_from(end - at).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
            self.file.file().read_exact_at(&mut lengths[..count], at).map_err(&error)?;
            let (chunks, _) = lengths[..count].as_chunks();
            for length in chunks {
                self.push(&start.to_le_bytes())?;
                start += u64::from(u32::from_le_bytes(*length)) * number.bytes() as u64;
            }
            at += count as u64;
        }
        (0..=documents).try_for_each(|document| self.push(&document.to_le_bytes()))?;
        self.flush()?;
        let header = header(number, documents, documents + 1);
        self.file.file().write_all_at(&header, 0).map_err(&error)?;
        Ok((self.file, end + 8 * (2 * documents + 1)))
    }
}
