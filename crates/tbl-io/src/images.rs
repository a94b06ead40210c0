//! Files of images of one size that follow each other as plain pixels: MNIST's (`idx3-ubyte`, also
//! compressed by gzip) and CIFAR's binary version.
//!
//! A sample is its pixels as a PNG file of one or three channels, made when it is read, so that every
//! format that samples are converted to can hold it. Nothing is compressed in it.

mod cifar;
mod idx;
mod png;

use crate::error::{ImagesDefect, ReadError};
use crate::identity::Told;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::note::Note;
use crate::sample::{
    BulkIndex, Entry, Facts, SampleSource, SourceKind, StoredBytes, StoredSamples,
};
use crate::source::Source;
use crate::storage::Stores;
use png::Png;
use tbl_format::SampleFormat;

/// An open file of images.
///
/// Samples have no names. Their labels are in the file, or in the label file that MNIST has next to
/// each file of images.
#[derive(Debug)]
pub(crate) struct ImageFile {
    source: Source,
    limits: ReadLimits,
    layout: Layout,
    /// By sample; empty for none.
    labels: Vec<u8>,
    class_names: Vec<String>,
    /// A note on a file next to it that does not exist.
    missing: Option<Note>,
}

/// The places of images.
#[derive(Clone, Copy, Debug)]
struct Layout {
    image_count: u64,
    /// The offset of the first image.
    first: u64,
    /// The bytes from one image to the next.
    stride: u64,
    png: Png,
}

impl ImageFile {
    /// Opens a file if it is one of images: by its magic or, for CIFAR, by the file of class names next
    /// to it.
    ///
    /// # Errors
    /// [`ReadError::Images`] with the offset of a defect, [`ReadError::Compressed`], and those of
    /// opening the files next to it, unless they do not exist.
    pub(crate) fn open(stores: &Stores, source: &Source) -> Result<Option<Self>, ReadError> {
        match idx::open(stores, source)? {
            Some(file) => Ok(Some(file)),
            None => cifar::open(stores, source),
        }
    }

    /// The offset of image `index`.
    fn offset(&self, index: u64) -> Result<u64, ReadError> {
        let Layout { image_count, first, stride, .. } = self.layout;
        if index < image_count {
            // Inside the file, as its length was checked.
            return Ok(first + index * stride);
        }
        let location = self.source.location().clone();
        Err(ReadError::SampleOutOfRange { location, index, sample_count: image_count })
    }

    fn pixel_bytes(&self) -> u64 {
        self.layout.png.pixel_bytes() as u64
    }
}

impl SampleSource for ImageFile {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Images
    }

    fn sample_count(&self) -> u64 {
        self.layout.image_count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let label = usize::try_from(index).ok().and_then(|index| self.labels.get(index)).copied();
        Ok(Entry::new(self.facts(index)?, None, label.map(i64::from)))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let png = self.layout.png;
        Ok(Facts {
            format: SampleFormat::Png,
            width: png.width().into(),
            height: png.height().into(),
            offset: self.offset(index)?,
            stored_bytes: self.pixel_bytes(),
            bytes: png.file_bytes() as u64,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let read = self
            .offset(index)
            .and_then(|offset| self.source.read_range_into(offset, self.pixel_bytes(), bytes))
            .and_then(|()| self.unpack(index, bytes));
        read.map_err(|error| error.for_sample(index, None))
    }

    fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.offset(index)?;
        self.limits.push_id(id);
        Ok(self.source.content_id(id) == Some(Told::ByTimes))
    }

    fn will_need(&self, index: u64) {
        if let Ok(offset) = self.offset(index) {
            self.source.will_need(offset, self.pixel_bytes());
        }
    }

    fn notes(&self) -> Vec<Note> {
        let empty = (self.sample_count() == 0).then_some(Note::NoSamples);
        self.missing.iter().cloned().chain(empty).collect()
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn bulk_index(&self) -> Option<&dyn BulkIndex> {
        Some(self)
    }
}

impl StoredSamples for ImageFile {
    fn source(&self) -> Option<&Source> {
        Some(&self.source)
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let offset = self.offset(index)?;
        Ok(Some(StoredBytes { source: self.source.clone(), offset, len: self.pixel_bytes() }))
    }

    fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let offset = self.offset(index)?;
        let expected = self.pixel_bytes();
        if bytes.len() as u64 != expected {
            let location = self.source.location().clone();
            return Err(ReadError::ChangedWhileOpen { location, offset, expected });
        }
        self.layout.png.wrap(bytes);
        Ok(())
    }
}

impl BulkIndex for ImageFile {
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        Ok(Some(self.labels.iter().copied().map(i64::from).collect()))
    }
}

/// The bytes that the label of an image takes: here, and as the number that callers get.
const LABEL_BYTES: u64 = (size_of::<u8>() + size_of::<i64>()) as u64;

/// Fails for more images than the limits allow labels in memory for.
fn check_label_bytes(
    source: &Source,
    limits: ReadLimits,
    image_count: u64,
) -> Result<(), ReadError> {
    let need = image_count.saturating_mul(LABEL_BYTES);
    if need <= limits.sample_bytes {
        return Ok(());
    }
    let location = source.location().clone();
    Err(ReadError::Limit { location, what: "bytes for labels", limit: limits.sample_bytes, need })
}

/// The error of a defect at `offset` of a file of images or labels.
fn defect(source: &Source, offset: u64, defect: ImagesDefect) -> ReadError {
    ReadError::Images { location: source.location().clone(), offset, source: defect }
}

/// The file called `name` in the folder of `source`; `None` if it does not exist.
fn sibling(stores: &Stores, source: &Source, name: &[u8]) -> Result<Option<Source>, ReadError> {
    stores.open_existing(&source.location().folder().join(name))
}
