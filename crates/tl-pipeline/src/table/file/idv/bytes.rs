//! Sources as the input of `idv-format`, which knows no crate of this workspace.

use std::io;

use idv_format::ReadAt;
use tbl_io::{Mapped, ReadError, Source};
use tl_handoff::sync::Arc;

/// A [`Source`] as [`IdvFile`](idv_format::IdvFile) reads it. Errors of stores are
/// [`ReadError`]s inside the [`io::Error`].
///
/// Bytes of a mapping are copied: what the reader has checked, such as UTF-8, is then what it uses,
/// also where another process writes to the file.
#[derive(Clone, Debug)]
pub struct IdvBytes {
    source: Source,
    mapped: Option<Arc<Mapped>>,
}

impl IdvBytes {
    /// Bytes that are read by position.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self { source, mapped: None }
    }

    /// Copies from a mapping, or reads by position without one. A mapped file may have been cut
    /// short; [`Mapped::check`] after reading finds out.
    ///
    /// # Errors
    /// As for [`Mapped::new`].
    pub fn mapped(source: &Source) -> Result<Self, ReadError> {
        let map = || Mapped::new(source, 0, source.len()).map(Arc::new);
        let mapped = source.is_mappable().then(map).transpose()?;
        Ok(Self { source: source.clone(), mapped })
    }

    /// The mapping of the file.
    #[must_use]
    pub fn mapping(&self) -> Option<&Arc<Mapped>> {
        self.mapped.as_ref()
    }

    /// The error as the reader of the format gets it.
    #[must_use]
    pub fn io_error(error: ReadError) -> io::Error {
        if let ReadError::Io { source, .. } = error {
            return source;
        }
        // The file is shorter now.
        if matches!(error, ReadError::ChangedWhileOpen { .. }) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        io::Error::other(error)
    }
}

impl ReadAt for IdvBytes {
    fn size(&self) -> io::Result<u64> {
        Ok(self.source.len())
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let Some(mapped) = &self.mapped else {
            return self.source.read_exact_at(offset, bytes).map_err(Self::io_error);
        };
        let found = mapped.lend(offset, bytes.len() as u64);
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
