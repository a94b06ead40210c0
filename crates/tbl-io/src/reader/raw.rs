//! A file of equally sized raw images as one array of `N * H * W * 3` bytes, without copying.

use tbl_format::SampleFormat;

use super::TblFile;
use super::entry::IndexEntry;
use crate::error::{RawDefect, ReadError};
use crate::location::Location;
use crate::mmap::Mapped;
use crate::sample::SampleSource;
use crate::tbl_version::TblVersion;

/// The mapped images of a `RAW_U8` file: `sample_count * height * width * 3` bytes, RGB, rows top
/// down, no padding.
#[derive(Debug)]
pub struct RawView {
    location: Location,
    pixels: Mapped,
    sample_count: u64,
    width: u16,
    height: u16,
}

impl RawView {
    /// How many images there are.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    /// Width of every image, in pixels.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// Height of every image, in pixels.
    pub fn height(&self) -> u16 {
        self.height
    }

    /// Bytes of one image.
    pub fn sample_bytes(&self) -> u64 {
        sample_bytes(self.width, self.height)
    }

    /// Calls `read` with the pixels of `count` images from image `first` on.
    ///
    /// The payload checksums are not looked at: the view exists to touch no more than it must.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`]; [`ReadError::ChangedWhileOpen`] when the file has become
    /// shorter, in which case the bytes that `read` saw are not to be used.
    pub fn with<R>(
        &self,
        first: u64,
        count: u64,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        if first > self.sample_count || count > self.sample_count - first {
            return Err(ReadError::SampleOutOfRange {
                location: self.location.clone(),
                index: first.saturating_add(count).saturating_sub(1),
                sample_count: self.sample_count,
            });
        }
        // Inside the mapping, so nothing overflows.
        let offset = self.pixels.offset() + first * self.sample_bytes();
        self.pixels.with(offset, count * self.sample_bytes(), read)
    }
}

pub(super) fn view(file: &TblFile) -> Result<RawView, ReadError> {
    let not_raw =
        |index, source| Err(ReadError::NotRaw { location: file.location().clone(), index, source });
    if file.version() == TblVersion::V1 {
        return not_raw(0, RawDefect::Version1);
    }
    if file.sample_count() == 0 {
        return not_raw(0, RawDefect::Empty);
    }
    let first = file.payload_entry(0)?;
    let width = first.width;
    let height = first.height;
    let mut expected_offset = first.offset;
    for index in 0..file.sample_count() {
        let entry = file.payload_entry(index)?;
        if let Some(defect) = defect(&entry, &first, expected_offset) {
            return not_raw(index, defect);
        }
        expected_offset = entry.offset + u64::from(entry.stored_bytes);
    }
    let pixels = Mapped::new(&file.source, first.offset, expected_offset - first.offset)?;
    let location = file.location().clone();
    Ok(RawView { location, pixels, sample_count: file.sample_count(), width, height })
}

fn defect(entry: &IndexEntry, first: &IndexEntry, expected_offset: u64) -> Option<RawDefect> {
    let compressed = entry.is_compressed();
    if entry.format != SampleFormat::RawU8 || compressed {
        return Some(RawDefect::Encoded { format: entry.format, compressed });
    }
    let IndexEntry { width, height, .. } = *entry;
    if (width, height) != (first.width, first.height) || width == 0 || height == 0 {
        let expected_width = first.width;
        let expected_height = first.height;
        return Some(RawDefect::Dimensions { width, height, expected_width, expected_height });
    }
    let bytes = u64::from(entry.stored_bytes);
    let expected = sample_bytes(width, height);
    if bytes != expected {
        return Some(RawDefect::Size { bytes, expected });
    }
    let offset = entry.offset;
    let expected = expected_offset;
    (offset != expected).then_some(RawDefect::Gap { offset, expected })
}

fn sample_bytes(width: u16, height: u16) -> u64 {
    3 * u64::from(width) * u64::from(height)
}
