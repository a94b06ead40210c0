//! A byte sequence that is written once and read once: in memory while it is short, then in an
//! unnamed file.

use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::SpooledTempFile;

/// Bytes of one spool kept in memory. A writer has eight spools.
const MEMORY_BYTES: usize = 1 << 20;

/// Buffer in front of each spool, which is fed a few bytes at a time.
const BUFFER_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(super) struct Spool {
    out: BufWriter<SpooledTempFile>,
    bytes: u64,
}

impl Spool {
    /// An empty spool that overflows into `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        let file = tempfile::spooled_tempfile_in(MEMORY_BYTES, folder);
        Self { out: BufWriter::with_capacity(BUFFER_BYTES, file), bytes: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Sets `bits` in the byte at `offset`, which has been pushed.
    pub(super) fn set_bits(&mut self, offset: u64, bits: u8) -> io::Result<()> {
        let mut byte = [0];
        self.out.seek(SeekFrom::Start(offset))?;
        self.out.get_mut().read_exact(&mut byte)?;
        self.out.seek(SeekFrom::Start(offset))?;
        self.out.write_all(&[byte[0] | bits])?;
        self.out.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// How much has been pushed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Everything pushed, from the front.
    pub(super) fn into_reader(self) -> io::Result<impl Read> {
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Writes everything pushed to `out`.
    pub(super) fn copy_to(self, out: &mut impl Write) -> io::Result<()> {
        io::copy(&mut self.into_reader()?, out)?;
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
