//! The errors of mappings whose file was cut short, or whose pages could not be read.

use std::io;

use super::{Mapped, Memory};
use crate::error::ReadError;

impl Mapped {
    /// Whether the file still reaches to the end of a range that lies inside the mapped part.
    pub(super) fn check_file_len(&self, offset: u64, len: u64) -> Result<(), ReadError> {
        let Memory::File { file, .. } = &self.memory else { return Ok(()) };
        let file_len =
            file.current().metadata().map_err(|error| ReadError::io(&self.location, error))?.len();
        // The range is inside the mapped part, so its end does not overflow.
        if file_len < offset + len { Err(self.changed(offset, len)) } else { Ok(()) }
    }

    /// The error of a mapping that the handler has put zero pages over. A file that is as it was when
    /// it was opened was not cut short: its pages could not be read, which may pass.
    pub(super) fn damaged(&self, offset: u64, expected: u64) -> ReadError {
        let Memory::File { file, .. } = &self.memory else { return self.changed(offset, expected) };
        match file.is_unchanged() {
            Ok(false) => self.changed(offset, expected),
            Ok(true) => ReadError::io(&self.location, io::Error::from_raw_os_error(libc::EIO)),
            Err(error) => ReadError::io(&self.location, error),
        }
    }

    pub(super) fn changed(&self, offset: u64, expected: u64) -> ReadError {
        ReadError::ChangedWhileOpen { location: self.location.clone(), offset, expected }
    }
}
