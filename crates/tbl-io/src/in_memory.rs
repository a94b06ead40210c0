//! Samples that a program holds in memory.

use std::fmt;
use std::sync::Arc;

use tbl_format::SampleFormat;
use tbl_format::path::check_extension;

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::location::Location;
use crate::sample::{Entry, Facts, Field, SampleSource, SourceKind};

/// Samples in memory, with fields. They have no names; [`GivenLabels`](crate::GivenLabels) gives them
/// labels.
///
/// ```
/// use std::sync::Arc;
///
/// use tbl_io::{InMemory, Items, SampleSource};
///
/// let pixels = Arc::new(vec![7_u8; 2 * 4 * 3]);
/// let samples = InMemory::pixels(Items::rows(Vec::new(), pixels, 12)?, 2, 2)?;
/// assert_eq!(samples.sample_count(), 2);
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Debug)]
pub struct InMemory {
    location: Location,
    samples: Items,
    /// Width and height of pixels; `None` for files of images.
    size: Option<(u32, u32)>,
    fields: Vec<ItemField>,
}

#[derive(Debug)]
struct ItemField {
    name: Vec<u8>,
    items: Items,
}

/// Bytes that are held elsewhere, such as by another language.
pub type HeldBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The bytes of each sample, or of a field of each.
pub struct Items(Form);

enum Form {
    /// Bytes for each; `None` for a missing field.
    Each(Vec<Option<HeldBytes>>),
    /// Equal parts of one block, each with the same bytes in front.
    Rows { front: Vec<u8>, block: HeldBytes, row_bytes: usize },
}

const BYTES_PER_PIXEL: u64 = 3;

fn location() -> Location {
    Location::new("memory")
}

impl Items {
    /// Bytes for each sample; `None` where a field is missing.
    #[must_use]
    pub fn each(items: Vec<Option<HeldBytes>>) -> Self {
        Self(Form::Each(items))
    }

    /// Parts of `row_bytes` bytes of one block, each with `front` before it, such as a header.
    ///
    /// # Errors
    /// [`ReadError::List`] for a block that does not consist of such parts.
    pub fn rows(front: Vec<u8>, block: HeldBytes, row_bytes: usize) -> Result<Self, ReadError> {
        let bytes = (*block).as_ref().len();
        if row_bytes == 0 || !bytes.is_multiple_of(row_bytes) {
            let what = format!("a block of {bytes} bytes for rows of {row_bytes}");
            let defect = ListDefect::Unread { what, expected: "whole rows" };
            return Err(defect.at(&location(), ListPlace::default()));
        }
        Ok(Self(Form::Rows { front, block, row_bytes }))
    }

    fn count(&self) -> u64 {
        match &self.0 {
            Form::Each(items) => items.len() as u64,
            Form::Rows { block, row_bytes, .. } => {
                ((**block).as_ref().len() / (*row_bytes).max(1)) as u64
            }
        }
    }

    /// The two parts of an item.
    fn get(&self, index: u64) -> Option<[&[u8]; 2]> {
        let index = usize::try_from(index).ok()?;
        match &self.0 {
            Form::Each(items) => Some([&[], (**items.get(index)?.as_ref()?).as_ref()]),
            Form::Rows { front, block, row_bytes } => {
                let start = index.checked_mul(*row_bytes)?;
                Some([front, (**block).as_ref().get(start..)?.get(..*row_bytes)?])
            }
        }
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl InMemory {
    /// Samples that are files of images, or other bytes.
    #[must_use]
    pub fn files(samples: Items) -> Self {
        Self { location: location(), samples, size: None, fields: Vec::new() }
    }

    /// Samples that are rows of red, green and blue pixels.
    ///
    /// # Errors
    /// [`ReadError::List`] for samples of another size than that of such an image.
    pub fn pixels(samples: Items, width: u32, height: u32) -> Result<Self, ReadError> {
        let expected = u64::from(width) * u64::from(height) * BYTES_PER_PIXEL;
        let made = Self { size: Some((width, height)), ..Self::files(samples) };
        for index in 0..made.sample_count() {
            let bytes = made.samples.get(index).map_or(0, |parts| len(&parts));
            if bytes != expected {
                let what = format!("{bytes} bytes of pixels");
                let defect = ListDefect::Unread { what, expected: "3 bytes for each pixel" };
                let error = defect.at(&made.location, ListPlace::default());
                return Err(error.for_sample(index, None));
            }
        }
        Ok(made)
    }

    /// The same samples with a further field.
    ///
    /// # Errors
    /// [`ReadError::List`] for a field with more or fewer items than samples, or an invalid name.
    pub fn with_field(mut self, name: &str, items: Items) -> Result<Self, ReadError> {
        let place = || ListPlace::column(name);
        if let Err(source) = check_extension(name.as_bytes()) {
            return Err(ListDefect::ColumnName { source }.at(&self.location, place()));
        }
        let found = items.count();
        let expected = self.sample_count();
        if found != expected {
            let defect = ListDefect::ItemCount { found, expected };
            return Err(defect.at(&self.location, place()));
        }
        self.fields.push(ItemField { name: name.as_bytes().to_vec(), items });
        Ok(self)
    }

    fn item(&self, index: u64) -> Result<[&[u8]; 2], ReadError> {
        self.samples.get(index).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.location.clone(),
            index,
            sample_count: self.sample_count(),
        })
    }
}

fn len(parts: &[&[u8]; 2]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

impl SampleSource for InMemory {
    fn location(&self) -> &Location {
        &self.location
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Memory
    }

    fn sample_count(&self) -> u64 {
        self.samples.count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        Ok(Entry::new(self.facts(index)?, None, None))
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let parts = self.item(index)?;
        let bytes = len(&parts);
        let (width, height) = self.size.unwrap_or((0, 0));
        // No name tells the format; a copy gets one by it.
        let format = match (self.size, parts) {
            (Some(_), _) => SampleFormat::RawU8,
            (None, [[], bytes] | [bytes, _]) => SampleFormat::from_magic(bytes),
        };
        Ok(Facts { format, width, height, offset: 0, stored_bytes: bytes, bytes })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let parts = self.item(index)?;
        let limits = ReadLimits::default();
        let checked = limits.check_sample_bytes(&self.location, len(&parts));
        checked.map_err(|error| error.for_sample(index, None))?;
        bytes.clear();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        Ok(())
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        self.item(index)?;
        for ItemField { name, items } in &self.fields {
            let parts = items.get(index).filter(|parts| is_wanted(name, len(parts)));
            let extension = || name.clone();
            fields
                .extend(parts.map(|parts| Field { extension: extension(), bytes: parts.concat() }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleSourceExt;

    fn held(bytes: &[u8]) -> HeldBytes {
        Arc::new(bytes.to_vec())
    }

    #[test]
    fn samples_and_fields_are_the_bytes_that_were_given() {
        let each = Items::each(vec![Some(held(b"one")), Some(held(b""))]);
        let rows = Items::rows(b"#".to_vec(), held(b"abcd"), 2).unwrap();
        let some = Items::each(vec![None, Some(held(b"x"))]);
        let samples = InMemory::files(each).with_field("r", rows).unwrap();
        let samples = samples.with_field("s", some).unwrap();
        let mut bytes = vec![9; 9];
        samples.read_into(0, &mut bytes).unwrap();
        assert_eq!((samples.sample_count(), &bytes[..]), (2, &b"one"[..]));
        assert_eq!(samples.facts(0).unwrap().format, SampleFormat::Unknown);
        let jpegs = Items::rows(b"\xff\xd8\xff".to_vec(), held(b"abcd"), 2).unwrap();
        assert_eq!(InMemory::files(jpegs).facts(1).unwrap().format, SampleFormat::Jpeg);
        let fields = |index| {
            let mut fields = Vec::new();
            samples.read_fields(index, &mut fields).unwrap();
            fields.into_iter().map(|field| (field.extension, field.bytes)).collect::<Vec<_>>()
        };
        let pair = |name: &[u8], bytes: &[u8]| (name.to_vec(), bytes.to_vec());
        assert_eq!(fields(0), [pair(b"r", b"#ab")]);
        assert_eq!(fields(1), [pair(b"r", b"#cd"), pair(b"s", b"x")]);
        assert!(matches!(samples.entry(2), Err(ReadError::SampleOutOfRange { index: 2, .. })));
    }

    #[test]
    fn pixels_and_fields_of_other_sizes_are_refused() {
        let rows = |bytes: usize, row| Items::rows(Vec::new(), held(&vec![0; bytes]), row);
        assert!(rows(10, 3).is_err() && rows(10, 0).is_err());
        assert!(InMemory::pixels(rows(24, 12).unwrap(), 2, 2).is_ok());
        let error = InMemory::pixels(rows(24, 12).unwrap(), 2, 3).unwrap_err().to_string();
        assert!(error.starts_with("memory: sample 0: 12 bytes of pixels"), "{error}");
        let files = || InMemory::files(rows(24, 12).unwrap());
        let error = files().with_field("x", rows(3, 1).unwrap()).unwrap_err().to_string();
        assert_eq!(error, "memory: column `x`: 3 items for 2 samples");
        assert!(files().with_field("a/b", rows(2, 1).unwrap()).is_err());
    }
}
