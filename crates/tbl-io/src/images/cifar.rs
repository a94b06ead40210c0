//! CIFAR's binary version: records of one label, or a coarse and a fine one, and 32 x 32 pixels. The
//! files have no magic, so that the file of class names next to them decides, and without one their
//! own names and lengths.

use super::png::{Channels, Png};
use super::{ImageFile, Layout, check_label_bytes, defect, sibling};
use crate::error::{ImagesDefect, ReadError};
use crate::limits::ReadLimits;
use crate::note::Note;
use crate::source::Source;
use crate::storage::Stores;

const SIDE: u16 = 32;

/// The most bytes of a file of class names.
const MAX_NAME_BYTES: u64 = 64 << 10;

/// Bytes of records read at a time for their labels.
const PIECE_BYTES: u64 = 1 << 20;

/// A data set: the file of its class names, the bytes of labels in a record, and how many classes there
/// are. The last label of a record counts, which is the fine one.
struct DataSet {
    names: &'static [u8],
    label_bytes: usize,
    class_count: usize,
    /// The names of its files, without `.bin` and a number.
    files: [&'static str; 2],
}

const DATA_SETS: [DataSet; 2] = [
    DataSet {
        names: b"batches.meta.txt",
        label_bytes: 1,
        class_count: 10,
        files: ["data_batch_", "test_batch"],
    },
    DataSet {
        names: b"fine_label_names.txt",
        label_bytes: 2,
        class_count: 100,
        files: ["train", "test"],
    },
];

pub(super) fn open(stores: &Stores, source: &Source) -> Result<Option<ImageFile>, ReadError> {
    if source.is_empty() || source.location().extension().is_none_or(|end| end != "bin") {
        return Ok(None);
    }
    for data_set in &DATA_SETS {
        if let Some(names) = sibling(stores, source, data_set.names)? {
            let class_names = class_names(&names, data_set.class_count)?;
            return records(source, data_set, class_names).map(Some);
        }
    }
    let Some(data_set) = DATA_SETS.iter().find(|data_set| data_set.has(source)) else {
        return Ok(None);
    };
    match records(source, data_set, Vec::new()) {
        Ok(file) => {
            let names = source.location().folder().join(data_set.names);
            Ok(Some(ImageFile { missing: Some(Note::NoClassNames { names }), ..file }))
        }
        // Another file of this name and length.
        Err(ReadError::Images { source: ImagesDefect::Label { .. }, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl DataSet {
    fn record_bytes(&self) -> u64 {
        let pixels = u64::from(SIDE) * u64::from(SIDE) * 3;
        self.label_bytes as u64 + pixels
    }

    /// Whether a file is one of the data set by its name and its length.
    fn has(&self, source: &Source) -> bool {
        let name = source.location().as_os_str().to_string_lossy();
        let name = name.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".bin").unwrap_or(name).trim_end_matches(char::is_numeric);
        self.files.contains(&stem) && source.len().is_multiple_of(self.record_bytes())
    }
}

/// The lines that are not empty.
fn class_names(source: &Source, class_count: usize) -> Result<Vec<String>, ReadError> {
    let location = source.location().clone();
    if source.len() > MAX_NAME_BYTES {
        let what = "bytes of class names";
        let need = source.len();
        return Err(ReadError::Limit { location, what, limit: MAX_NAME_BYTES, need });
    }
    let mut text = Vec::new();
    source.read_range_into(0, source.len(), &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.len() == class_count {
        return Ok(names);
    }
    let found = names.len();
    Err(defect(source, 0, ImagesDefect::ClassCount { found, expected: class_count }))
}

fn records(
    source: &Source,
    data_set: &DataSet,
    class_names: Vec<String>,
) -> Result<ImageFile, ReadError> {
    let png = Png::new(SIDE, SIDE, Channels::Planes);
    let record_bytes = data_set.label_bytes + png.pixel_bytes();
    let stride = record_bytes as u64;
    let have = source.len();
    if !have.is_multiple_of(stride) {
        let need = have.next_multiple_of(stride);
        let length = ImagesDefect::Length { what: "records", need, have };
        return Err(defect(source, have - have % stride, length));
    }
    let image_count = have / stride;
    let limits = ReadLimits::default();
    check_label_bytes(source, limits, image_count)?;
    let mut labels = Vec::new();
    let mut piece = Vec::new();
    let records_per_piece = PIECE_BYTES / stride;
    let mut at = 0;
    while at < image_count {
        let count = records_per_piece.min(image_count - at);
        source.read_range_into(at * stride, count * stride, &mut piece)?;
        let last_label = data_set.label_bytes - 1;
        for (record, bytes) in (at..).zip(piece.chunks(record_bytes)) {
            let label = bytes.get(last_label).copied().unwrap_or_default();
            if usize::from(label) >= data_set.class_count {
                let class_count = data_set.class_count;
                let offset = record * stride + last_label as u64;
                return Err(defect(source, offset, ImagesDefect::Label { label, class_count }));
            }
            labels.push(label);
        }
        at += count;
    }
    let source = source.clone();
    let layout = Layout { image_count, first: data_set.label_bytes as u64, stride, png };
    Ok(ImageFile { source, limits, layout, labels, class_names, missing: None })
}
