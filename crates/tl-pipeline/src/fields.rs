//! The contents of batches besides images, labels and indices: names, sidecar files, boxes,
//! keypoints and masks.

mod annotate;
mod boxes;
mod files;
mod images;
mod instances;
mod keypoints;
mod names;
mod objects;
mod pointer;
mod readers;
mod values;

use std::fmt;

use tl_transform::BoxFormat;

use crate::error::PipelineError;
use crate::table::ColumnType;
use crate::work::Work;

pub(crate) use annotate::{Annotator, Placed};
pub use images::{ImageField, ImageSource, ImageTransform};
pub use instances::InstanceMaskField;
pub use keypoints::KeypointField;
use pointer::ListPointer;
pub(crate) use readers::{FieldReaders, KeypointLayout};
use values::ValueReader;
pub use values::{ValueField, ValueFormat, ValueKind};

/// The contents of batches besides images, labels and indices. Default none.
///
/// Sidecar files are those that share a sample's name: `0017.json` and `0017.seg.png` of
/// `0017.jpg`. They are named by their extension, without its leading dot: `json`, `seg.png`, in
/// upper or lower case. The sample's own file has a name too, here `jpg`. A numbered sample, such as
/// `cat.0.jpg`, also goes by names without its number: `json` for `cat.0.json`.
///
/// A name that no sample has is an error when the loader is created
/// ([`PipelineError::UnknownField`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    /// Adds the samples' names to batches ([`Batch::key`](crate::Batch::key)).
    pub keys: bool,
    /// Sidecar files whose bytes batches have ([`Batch::bytes`](crate::Batch::bytes)). A sample
    /// need not have them. Of a table these are columns of bytes, such as texts, which are not
    /// missing as a whole.
    pub bytes: Vec<String>,
    /// Files among `bytes` that are texts. A file in another format is the sample's error.
    pub texts: Vec<TextFile>,
    /// Bounding boxes ([`Batch::boxes`](crate::Batch::boxes)), which move with the image.
    pub boxes: Option<BoxField>,
    /// Points, which move with the image: of objects ([`Batch::keypoints`](crate::Batch::keypoints))
    /// or samples. The latter are columns of the batch after those of values.
    pub keypoints: Vec<KeypointField>,
    /// Masks of objects ([`Batch::instance_masks`](crate::Batch::instance_masks)), which move with
    /// the image.
    pub instance_masks: Option<InstanceMaskField>,
    /// A mask ([`Batch::masks`](crate::Batch::masks)), which moves with the image.
    pub mask: Option<MaskField>,
    /// Further images of every sample, each a column of the batch
    /// ([`Batch::column_named`](crate::Batch::column_named)).
    pub images: Vec<ImageField>,
    /// Numbers in sidecar files, each a column of the batch after those of images.
    pub values: Vec<ValueField>,
}

/// A text in a sidecar file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// Its format.
    pub format: TextFormat,
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// UTF-8.
    Utf8,
    /// JSON (RFC 8259) in UTF-8, with or without a byte order mark.
    Json,
}

/// Boxes in a sidecar file of JSON.
///
/// A JSON pointer (RFC 6901) is their place, in which one `*` stands for every element of a list:
/// `/annotations/*/bbox` for objects as COCO has them, `/boxes/*` for a plain list. Coordinates are
/// pixels of the image as it is decoded.
///
/// A sample without the file, or without the list in it, is an error: boxes that are silently
/// missing would teach a detector that the image is empty. An image without objects has an empty
/// list.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxField {
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// The pointer to the boxes: lists of four numbers.
    pub boxes: String,
    /// The pointer to their labels, one whole number for each box; `None` for boxes without labels.
    pub labels: Option<String>,
    /// Numbers that belong to each box, such as its area. Default none.
    pub values: Vec<BoxValue>,
    /// The format of the numbers in the file.
    pub format: BoxFormat,
    /// The format of the numbers in the batch.
    pub output: BoxFormat,
    /// Leaves out what is left of boxes that the crop cut off; `None` keeps every box, also without
    /// an area.
    pub sanitize: Option<Sanitize>,
}

impl BoxField {
    /// Boxes as edges (left, top, right, bottom) in the list at `boxes` of the sidecar file with
    /// extension `file`, without labels; those without a pixel are left out.
    #[must_use]
    pub fn new(file: impl Into<String>, boxes: impl Into<String>) -> Self {
        let file = file.into();
        let boxes = boxes.into();
        let format = BoxFormat::Xyxy;
        let output = BoxFormat::Xyxy;
        let sanitize = Some(Sanitize::default());
        Self { file, boxes, labels: None, values: Vec::new(), format, output, sanitize }
    }

    /// Boxes as COCO writes them, `annotations` of objects with `bbox` and `category_id`, in the
    /// sidecar file with extension `file`.
    #[must_use]
    pub fn coco(file: impl Into<String>) -> Self {
        Self {
            labels: Some("/annotations/*/category_id".into()),
            format: BoxFormat::Xywh,
            ..Self::new(file, "/annotations/*/bbox")
        }
    }
}

/// A number of every box, in the same file ([`Batch::box_values`](crate::Batch::box_values)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxValue {
    /// The pointer to the numbers, one for each box.
    pub pointer: String,
    /// Their type in the batch. A number that it does not have is the sample's error.
    pub number: ColumnType,
}

/// The boxes to drop as too small: torchvision's `SanitizeBoundingBoxes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sanitize {
    /// The least width and height, from 1. Default 1.
    pub min_size: f32,
    /// The least area, from 1. Default 1.
    pub min_area: f32,
}

impl Default for Sanitize {
    fn default() -> Self {
        Self { min_size: 1.0, min_area: 1.0 }
    }
}

/// A mask in a sidecar file: a PNG file of one channel, whose numbers count and not their colours; of
/// up to 8 bits for [`MaskType::U8`], of up to 16 for others, as large as the image as it is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskField {
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// The type of the numbers in the batch; images in their own sizes have masks of
    /// [`MaskType::U8`].
    pub dtype: MaskType,
    /// The number of pixels outside the stored mask: around images that the batch pads, and where
    /// the recipe pads or leaves pixels uncovered. Default `None`: [`MaskField::BATCH_PADDING`] in
    /// batches, and in the recipe 0, or the number of a grey fill, as in torchvision.
    pub padding: Option<u8>,
}

impl MaskField {
    /// The number around images that the batch pads, unless the field has its own: 255, which
    /// torchvision's references leave out of the loss.
    pub const BATCH_PADDING: u8 = u8::MAX;

    /// The mask in the sidecar file with extension `file`, in bytes.
    #[must_use]
    pub fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), dtype: MaskType::U8, padding: None }
    }
}

/// The type of a mask's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaskType {
    /// 8 bits a pixel.
    #[default]
    U8,
    /// 16 bits a pixel.
    U16,
    /// 32-bit integers.
    I32,
    /// 64-bit integers, which torch's losses want.
    I64,
}

impl MaskType {
    /// Bytes of one number.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }

    /// The type of its numbers in the batch.
    #[must_use]
    pub const fn number(self) -> ColumnType {
        match self {
            Self::U8 => ColumnType::U8,
            Self::U16 => ColumnType::U16,
            Self::I32 => ColumnType::I32,
            Self::I64 => ColumnType::I64,
        }
    }
}

impl Fields {
    /// True if sidecar files must be read for them.
    pub(crate) fn reads_files(&self) -> bool {
        self.names().next().is_some()
    }

    /// True if boxes, keypoints or masks move with the images.
    pub(crate) fn has_annotations(&self) -> bool {
        self.boxes.is_some()
            || !self.keypoints.is_empty()
            || self.instance_masks.is_some()
            || self.mask.is_some()
    }

    /// Checks that the fields go with the work; `pads` is whether images are padded.
    pub(crate) fn check(&self, work: &Work, pads: bool) -> Result<(), PipelineError> {
        if matches!(work, Work::Columns(_)) && !self.values.is_empty() {
            return Err(refused("values go with samples; a table has columns".to_owned()));
        }
        self.check_values()?;
        self.check_images(work)?;
        self.keypoints.iter().try_for_each(KeypointField::check)?;
        self.instance_masks.as_ref().map_or(Ok(()), InstanceMaskField::check)?;
        if !self.has_annotations() {
            return Ok(());
        }
        let unusable = |work: &dyn fmt::Display| {
            Err(refused(format!(
                "boxes, keypoints and masks go with one image for each sample, not mixed with \
                others: not with {work}"
            )))
        };
        let recipe = match work {
            Work::Images(recipe) if recipe.views() == 1 && recipe.batch_ops().is_empty() => recipe,
            Work::Images(recipe) => return unusable(recipe),
            Work::Clips(_) => return unusable(&"clips"),
            Work::Bytes | Work::Views => return unusable(&"bytes"),
            Work::Columns(_) => return unusable(&"columns"),
            Work::Tokens(_) => return unusable(&"tokens"),
        };
        self.boxes.as_ref().map_or(Ok(()), BoxField::check)?;
        let lists = recipe.output_size().is_none() && !pads;
        match &self.mask {
            Some(MaskField { dtype, .. }) if lists && *dtype != MaskType::U8 => {
                Err(refused(format!(
                    "recipe `{recipe}` leaves the size to the image; masks of their own sizes are \
                    bytes"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The error of settings that cannot be used together.
fn refused(reason: String) -> PipelineError {
    PipelineError::Unusable(reason)
}

/// The fields of a row outside the slab.
#[derive(Debug, Default)]
pub(crate) struct RowFields {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) bytes: Vec<Option<Vec<u8>>>,
    /// The starts of documents in the row, and the end of the last.
    pub(crate) starts: Vec<i32>,
    pub(crate) boxes: Vec<[f32; 4]>,
    pub(crate) box_labels: Vec<i64>,
    /// The places of boxes in the file's list.
    pub(crate) box_indices: Vec<i64>,
    /// Bytes of the numbers of boxes, for each of [`BoxField::values`].
    pub(crate) box_values: Vec<Vec<u8>>,
    /// The numbers of the objects' points, for each of [`Fields::keypoints`].
    pub(crate) keypoints: Vec<Vec<f32>>,
    /// The masks of objects, one after the other.
    pub(crate) instance_masks: Vec<u8>,
    /// The mask, if images have their own sizes.
    pub(crate) mask: Vec<u8>,
}

impl RowFields {
    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> u64 {
        let stored = self.bytes.iter().flatten().map(Vec::len).sum::<usize>();
        let boxes = size_of_val(&*self.boxes)
            + size_of_val(&*self.box_labels)
            + size_of_val(&*self.box_indices)
            + self.box_values.iter().map(Vec::len).sum::<usize>()
            + self.keypoints.iter().map(|points| size_of_val(&**points)).sum::<usize>();
        let masks = self.instance_masks.len() + self.mask.len() + size_of_val(&*self.starts);
        let bytes = self.key.as_ref().map_or(0, Vec::len) + stored + boxes + masks;
        bytes as u64
    }

    /// Bytes of the buffers that are used again.
    pub(crate) fn kept_bytes(&self) -> usize {
        let boxes = self.boxes.capacity() * size_of::<[f32; 4]>();
        let numbers = self.box_labels.capacity() + self.box_indices.capacity();
        let values = self.box_values.iter().map(Vec::capacity).sum::<usize>();
        let points = self.keypoints.iter().map(Vec::capacity).sum::<usize>() * size_of::<f32>();
        let starts = self.starts.capacity() * size_of::<i32>();
        let masks = self.instance_masks.capacity() + self.mask.capacity() + starts;
        boxes + numbers * size_of::<i64>() + values + points + masks
    }

    /// Makes the buffers as small as what they hold.
    pub(crate) fn fit(&mut self) {
        self.starts.shrink_to_fit();
        self.boxes.shrink_to_fit();
        self.box_labels.shrink_to_fit();
        self.box_indices.shrink_to_fit();
        self.box_values.iter_mut().for_each(Vec::shrink_to_fit);
        self.keypoints.iter_mut().for_each(Vec::shrink_to_fit);
        self.instance_masks.shrink_to_fit();
        self.mask.shrink_to_fit();
    }

    /// Forgets the row before, which had the same memory.
    pub(crate) fn clear(&mut self) {
        self.key = None;
        self.bytes.clear();
        self.starts.clear();
        self.boxes.clear();
        self.box_labels.clear();
        self.box_indices.clear();
        self.box_values.iter_mut().for_each(Vec::clear);
        self.keypoints.iter_mut().for_each(Vec::clear);
        self.instance_masks.clear();
        self.mask.clear();
    }
}
