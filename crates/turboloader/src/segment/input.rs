//! Segments that are read: mapped files.

use std::path::Path;

use tbf_format::{FormatError, Key, Region, Segment, UnpackOptions};
use tbl_io::{Location, Mapped, Source};

use super::error::SegmentError;

/// A mapped file that holds a segment.
#[derive(Debug)]
pub(crate) struct SegmentInput {
    mapped: Mapped,
}

impl SegmentInput {
    /// Maps the file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, SegmentError> {
        let source = Source::open(path)?;
        Ok(Self { mapped: Mapped::new(&source, 0, source.len())? })
    }

    /// The file.
    pub(crate) fn location(&self) -> &Location {
        self.mapped.location()
    }

    /// The segment with these regions unpacked, where it has them.
    pub(crate) fn segment(
        &self,
        regions: &[Region],
        key: Option<&Key>,
    ) -> Result<Segment<'_>, SegmentError> {
        let bytes = self.mapped.slice(0, self.mapped.len())?;
        let mut segment = Segment::open(bytes).map_err(|error| self.fault(error))?;
        let options = UnpackOptions { key, ..UnpackOptions::default() };
        for &region in regions {
            if segment.has(region) {
                segment.unpack(region, &options).map_err(|error| self.fault(error))?;
            }
        }
        Ok(segment)
    }

    /// The error of reading the segment.
    pub(crate) fn fault(&self, source: FormatError) -> SegmentError {
        SegmentError::Format { location: self.location().clone(), source }
    }

    /// Refuses what was read if the file was cut short meanwhile.
    pub(crate) fn check(&self) -> Result<(), SegmentError> {
        Ok(self.mapped.check()?)
    }
}
