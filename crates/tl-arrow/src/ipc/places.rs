//! The places of the values of a column of bytes: in the file as they are, or in buffers that must be
//! decompressed.
//!
//! They are found record batch by record batch, when the first row of one is asked for, and kept: 8
//! bytes for each row where a batch takes less than 4 GiB, without a lock.

use std::ops::Range;
use std::sync::OnceLock;

use tbl_format::SampleFormat;
use tbl_io::ReadError;

use crate::file::RowPlace;
use crate::ipc::file::ArrowFile;
use crate::ipc::message::Buffer;
use crate::ipc::schema::Kind;
use crate::places::{Decoded, MAGIC_BYTES, Place, format_of};
use crate::rows::RowFile;
use crate::values::Value;

/// The places of the values of one leaf.
#[derive(Debug)]
pub(crate) struct Places {
    leaf: usize,
    /// By record batch.
    batches: Vec<OnceLock<BatchPlaces>>,
}

#[derive(Debug)]
pub(super) struct BatchPlaces {
    starts: Starts,
    /// By row, the length of the value, or [`NULL`].
    lens: Box<[u32]>,
}

/// The first bytes of values, by row.
#[derive(Debug)]
enum Starts {
    /// Counted from the metadata of the record batch.
    Near(Box<[u32]>),
    /// In the file.
    Far(Box<[u64]>),
    /// Not in the file, with the format of each value.
    Decoded(Box<[u8]>),
}

/// The length of a value that is not there.
const NULL: u32 = u32::MAX;

impl Places {
    pub(crate) fn new(file: &ArrowFile, leaf: usize) -> Self {
        Self { leaf, batches: file.batches().iter().map(|_| OnceLock::new()).collect() }
    }

    /// The places of a record batch.
    pub(super) fn in_batch(
        &self,
        file: &ArrowFile,
        group: usize,
    ) -> Result<&BatchPlaces, ReadError> {
        if let Some(places) = self.batches[group].get() {
            return Ok(places);
        }
        let found = find(file, self.leaf, group)?;
        Ok(self.batches[group].get_or_init(|| found))
    }

    /// The place of the value of a row.
    pub(crate) fn of(&self, file: &ArrowFile, row: RowPlace) -> Result<Place, ReadError> {
        let places = self.in_batch(file, row.group)?;
        let batch = &file.batches()[row.group];
        let at = row.row as usize;
        let len = places.lens[at];
        if len == NULL {
            return Ok(Place::Null { offset: batch.offset });
        }
        let bytes = u64::from(len);
        if let Starts::Decoded(formats) = &places.starts {
            let format = SampleFormat::from_code(formats[at]);
            let offset = batch.offset;
            let page = row.group;
            return Ok(Place::Decoded(Decoded { page, offset, stored: bytes, bytes, format }));
        }
        let offset = places.start(row, batch.offset);
        let format = match file.map() {
            Some(map) => {
                map.with(offset, bytes.min(MAGIC_BYTES as u64), SampleFormat::from_magic)?
            }
            // A read for the format would take as long as one for the image.
            None => SampleFormat::Unknown,
        };
        Ok(Place::InFile { offset, bytes, format })
    }

    /// The bytes of the file that the value of a row needs, as far as they are known without reading.
    pub(crate) fn range(&self, file: &ArrowFile, row: RowPlace) -> Option<Range<u64>> {
        let places = self.batches.get(row.group)?.get()?;
        let len = places.lens.get(row.row as usize).filter(|&&len| len != NULL)?;
        let is_in_file = !matches!(places.starts, Starts::Decoded(_));
        let start = places.start(row, file.batches()[row.group].offset);
        is_in_file.then(|| start..start + u64::from(*len))
    }
}

impl BatchPlaces {
    pub(super) fn are_in_file(&self) -> bool {
        !matches!(self.starts, Starts::Decoded(_))
    }

    fn start(&self, row: RowPlace, batch: u64) -> u64 {
        let row = row.row as usize;
        match &self.starts {
            Starts::Near(starts) => batch + u64::from(starts[row]),
            Starts::Far(starts) => starts[row],
            Starts::Decoded(_) => batch,
        }
    }
}

/// Finds the places of all values of a record batch.
fn find(file: &ArrowFile, leaf: usize, group: usize) -> Result<BatchPlaces, ReadError> {
    let found = match in_file(file, leaf, group)? {
        Some(places) => places,
        None => decoded(file, leaf, group)?,
    };
    file.check()?;
    Ok(found)
}

/// The places of values that are in the file as they are; `None` if they are not.
fn in_file(file: &ArrowFile, leaf: usize, group: usize) -> Result<Option<BatchPlaces>, ReadError> {
    let Some(arrays) = file.arrays(leaf, group) else { return Ok(None) };
    let Some(values) = arrays.last() else { return Ok(None) };
    let buffers = if let Kind::Bytes { .. } = values.field.kind {
        3
    } else if let Kind::View { .. } = values.field.kind {
        2 + values.batch.view_buffers(values.at) as usize
    } else {
        return Ok(None);
    };
    let mut places = Vec::with_capacity(buffers);
    for number in 0..buffers {
        let number = values.batch.buffer_number(values.at, number);
        let Some(place) = file.place_of(values.batch, number)? else { return Ok(None) };
        places.push(place);
    }
    let rows = 0..u64::from(values.batch.rows);
    let mut missing = Vec::new();
    for array in &arrays {
        missing.extend(array.validity(rows.clone())?);
    }
    let spans = values.spans(rows)?;
    let mut starts = Vec::with_capacity(spans.len());
    let mut lens = Vec::with_capacity(spans.len());
    for (row, span) in (0..).zip(spans) {
        let is_there = missing.iter().all(|bits| bits.is_valid(row));
        if !is_there {
            starts.push(values.batch.offset);
            lens.push(NULL);
            continue;
        }
        let place = places.get(span.buffer).copied();
        let place = place.unwrap_or(Buffer { offset: values.batch.offset, bytes: 0 });
        let is_inside = span.start.checked_add(span.len).is_some_and(|end| end <= place.bytes);
        let len = u32::try_from(span.len).ok().filter(|&len| is_inside && len != NULL);
        let Some(len) = len else { return Err(values.damaged("offsets of a column")) };
        starts.push(place.offset + span.start);
        lens.push(len);
    }
    let near = |start: &u64| u32::try_from(start.checked_sub(values.batch.offset)?).ok();
    let starts = match starts.iter().map(near).collect::<Option<Box<[u32]>>>() {
        Some(near) => Starts::Near(near),
        None => Starts::Far(starts.into_boxed_slice()),
    };
    Ok(Some(BatchPlaces { starts, lens: lens.into_boxed_slice() }))
}

/// The lengths and the formats of values that have to be decoded.
fn decoded(file: &ArrowFile, leaf: usize, group: usize) -> Result<BatchPlaces, ReadError> {
    let batch = &file.batches()[group];
    // Not room for the rows that a batch states, of which the first one may be damaged.
    let mut lens = Vec::new();
    let mut formats = Vec::new();
    for row in 0..batch.rows {
        file.leaf_value(leaf, RowPlace { group, row }, &mut |value| {
            let bytes = if let Some(Value::Bytes(bytes)) = value { Some(bytes) } else { None };
            lens.push(bytes.map_or(NULL, |bytes| u32::try_from(bytes.len()).unwrap_or(NULL)));
            formats.push(bytes.map_or(0, format_of));
        })?;
    }
    Ok(BatchPlaces {
        starts: Starts::Decoded(formats.into_boxed_slice()),
        lens: lens.into_boxed_slice(),
    })
}
