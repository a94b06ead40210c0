//! The bytes of a file, mapped, requested ahead or read.

use std::borrow::Cow;

use tbl_io::{Mapped, ReadError, ReadLimits, Source};

use crate::ahead::Ahead;
use crate::ipc::message::Buffer;
use crate::thrift::Flaw;

/// The bytes of a file that is being opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'s> {
    pub(crate) source: &'s Source,
    pub(crate) map: Option<&'s Mapped>,
    pub(crate) ahead: &'s Ahead,
    pub(crate) limits: ReadLimits,
}

impl<'s> Input<'s> {
    /// Bytes of the file, lent if it is mapped. A caller that uses lent bytes checks the mapping after.
    pub(crate) fn bytes(&self, place: Buffer) -> Result<Cow<'s, [u8]>, ReadError> {
        if let Some(map) = self.map {
            return match map.lend(place.offset, place.bytes) {
                Some(bytes) => Ok(Cow::Borrowed(bytes)),
                // The error says that the range is not in the file.
                None => map.slice(place.offset, place.bytes).map(Cow::Borrowed),
            };
        }
        if place.bytes == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if let Some(bytes) = self.ahead.get(place.offset, place.bytes) {
            return Ok(Cow::Owned(bytes));
        }
        self.check_size("bytes of a buffer", place.bytes)?;
        let mut bytes = Vec::new();
        self.source.read_range_into(place.offset, place.bytes, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    pub(crate) fn error(&self, Flaw { offset, defect }: Flaw) -> ReadError {
        ReadError::Rows { location: self.source.location().clone(), offset, source: defect }
    }

    pub(crate) fn check_size(&self, what: &'static str, need: u64) -> Result<(), ReadError> {
        let limit = self.limits.sample_bytes;
        if need <= limit {
            return Ok(());
        }
        Err(ReadError::Limit { location: self.source.location().clone(), what, limit, need })
    }
}
