//! MNIST's files: a header of big-endian numbers, then all pixels, and another file with the labels.

use super::png::{Channels, Png};
use super::{ImageFile, Layout, check_label_bytes, defect, sibling};
use crate::error::{ImagesDefect, ReadError};
use crate::limits::ReadLimits;
use crate::note::Note;
use crate::source::Source;
use crate::storage::Stores;
use crate::unpack::{gunzipped, gunzipped_front};

/// Two zeros, the code of unsigned bytes, and the number of dimensions.
const IMAGES: [u8; 4] = [0, 0, 8, 3];
const LABELS: [u8; 4] = [0, 0, 8, 1];

/// Magic, images, rows and columns.
const HEADER_BYTES: u64 = 16;
/// Magic and labels.
const LABEL_HEADER_BYTES: u64 = 8;

/// The parts of names by which files of images and of labels belong together.
const NAMES: [(&str, &str); 2] = [("images-idx3", "labels-idx1"), ("images.idx3", "labels.idx1")];

pub(super) fn open(stores: &Stores, source: &Source) -> Result<Option<ImageFile>, ReadError> {
    let limits = ReadLimits::default();
    let source = match magic(source)? {
        IMAGES => source.clone(),
        LABELS => return Err(defect(source, 0, ImagesDefect::Labels)),
        [0x1f, 0x8b, ..] => match gunzipped_front(source)? {
            Some(IMAGES) => gunzipped(source, limits.sample_bytes)?,
            Some(LABELS) => return Err(defect(source, 0, ImagesDefect::Labels)),
            Some(_) | None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let layout = layout(&source, limits)?;
    let mut file = ImageFile {
        source,
        limits,
        layout,
        labels: Vec::new(),
        class_names: Vec::new(),
        missing: None,
    };
    file.find_labels(stores)?;
    Ok(Some(file))
}

/// The first four bytes; zeros for a shorter file.
fn magic(source: &Source) -> Result<[u8; 4], ReadError> {
    let mut magic = [0; 4];
    if source.len() >= magic.len() as u64 {
        source.read_exact_at(0, &mut magic)?;
    }
    Ok(magic)
}

/// The number at `offset`.
fn number(source: &Source, offset: u64) -> Result<u32, ReadError> {
    let mut bytes = [0; 4];
    source.read_exact_at(offset, &mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn check_len(source: &Source, what: &'static str, need: u64) -> Result<(), ReadError> {
    let have = source.len();
    if have == need {
        return Ok(());
    }
    Err(defect(source, have.min(need), ImagesDefect::Length { what, need, have }))
}

fn layout(source: &Source, limits: ReadLimits) -> Result<Layout, ReadError> {
    if source.len() < HEADER_BYTES {
        check_len(source, "header", HEADER_BYTES)?;
    }
    let image_count = u64::from(number(source, 4)?);
    let rows = number(source, 8)?;
    let columns = number(source, 12)?;
    let side = |side| u16::try_from(side).ok().filter(|&side| side > 0);
    let Some((width, height)) = side(columns).zip(side(rows)) else {
        return Err(defect(source, 8, ImagesDefect::Size { width: columns, height: rows }));
    };
    let png = Png::new(width, height, Channels::Gray);
    limits.check_sample_bytes(source.location(), png.file_bytes() as u64)?;
    // Three factors of 32, 16 and 16 bits.
    let stride = png.pixel_bytes() as u64;
    let need = image_count.checked_mul(stride).and_then(|bytes| bytes.checked_add(HEADER_BYTES));
    check_len(source, "images", need.unwrap_or(u64::MAX))?;
    Ok(Layout { image_count, first: HEADER_BYTES, stride, png })
}

impl ImageFile {
    /// Reads the labels from the file that belongs to this one by its name.
    fn find_labels(&mut self, stores: &Stores) -> Result<(), ReadError> {
        let name = self.source.location().as_os_str().to_string_lossy();
        let name = name.rsplit('/').next().unwrap_or_default();
        let partner = NAMES.iter().find(|(images, _)| name.contains(images));
        let Some(name) = partner.map(|(images, labels)| name.replace(images, labels)) else {
            return Ok(());
        };
        let other = match name.strip_suffix(".gz") {
            Some(plain) => plain.to_owned(),
            None => format!("{name}.gz"),
        };
        for name in [&name, &other] {
            if let Some(source) = sibling(stores, &self.source, name.as_bytes())? {
                self.labels = self.read_labels(&source)?;
                return Ok(());
            }
        }
        let labels = self.source.location().folder().join(name.as_bytes());
        self.missing = Some(Note::NoLabelFile { labels });
        Ok(())
    }

    fn read_labels(&self, source: &Source) -> Result<Vec<u8>, ReadError> {
        let image_count = self.layout.image_count;
        check_label_bytes(source, self.limits, image_count)?;
        let need = LABEL_HEADER_BYTES + image_count;
        let unpacked;
        let source = if gunzipped_front(source)?.is_some() {
            unpacked = gunzipped(source, need)?;
            &unpacked
        } else {
            source
        };
        if magic(source)? != LABELS {
            return Err(defect(source, 0, ImagesDefect::NotLabels));
        }
        let label_count = u64::from(number(source, 4)?);
        if label_count != image_count {
            let counts = ImagesDefect::LabelCount { labels: label_count, images: image_count };
            return Err(defect(source, 4, counts));
        }
        check_len(source, "labels", need)?;
        let mut labels = Vec::new();
        source.read_range_into(LABEL_HEADER_BYTES, image_count, &mut labels)?;
        Ok(labels)
    }
}
