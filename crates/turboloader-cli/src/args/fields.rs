//! Arguments that add fields to batches, besides images, labels and indices.

use clap::{Args, ValueEnum};
use tl_pipeline::{
    BoxField, Fields, InstanceMaskField, KeypointField, MaskField, MaskType, Sanitize, ValueFormat,
};
use tl_transform::BoxFormat;

/// The fields of batches besides images, labels and indices.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Fields of batches")]
pub(crate) struct FieldArgs {
    /// Add the samples' names
    #[arg(long)]
    keys: bool,

    /// Add the bytes of sidecar files, by extension: json for 0017.json next to 0017.jpg
    #[arg(long, value_name = "EXTENSION", value_delimiter = ',')]
    fields: Vec<String>,

    /// Add bounding boxes, which are transformed with the image. SOURCE is the extension of a sidecar
    /// file and a JSON pointer into it, with one * for the elements of a list, such as
    /// json:/annotations/*/bbox
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    boxes: Option<FieldSource>,

    /// JSON pointer to the labels of the boxes, such as /annotations/*/category_id (default: no
    /// labels)
    #[arg(long, value_name = "POINTER", requires = "boxes")]
    box_labels: Option<String>,

    /// The meaning of a box's four numbers in the file
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = BoxFormatChoice::Xyxy,
          requires = "boxes")]
    box_format: BoxFormatChoice,

    /// The meaning of a box's four numbers in batches
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = BoxFormatChoice::Xyxy,
          requires = "boxes")]
    box_output: BoxFormatChoice,

    /// Keep boxes that lie entirely outside the crop
    #[arg(long, requires = "boxes")]
    keep_empty_boxes: bool,

    /// Add keypoints, which are transformed with the image. SOURCE leads to the points of objects,
    /// with one * for the elements of a list, such as json:/annotations/*/keypoints, or to those of
    /// the sample
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    keypoints: Option<FieldSource>,

    /// How many keypoints there are, and 2 or 3 numbers for each: 17,3 (default: as in the first
    /// sample that has some)
    #[arg(long, value_name = "POINTS,NUMBERS", value_parser = shape, requires = "keypoints")]
    keypoint_shape: Option<[usize; 2]>,

    /// Pairs of keypoints that change places in mirrored images: 1-2,3-4
    #[arg(long, value_name = "PAIRS", value_delimiter = ',', value_parser = pair,
          requires = "keypoints")]
    flip_pairs: Vec<[usize; 2]>,

    /// Add the masks of objects, which are transformed with the image. SOURCE leads to polygons or
    /// run lengths of COCO, such as json:/annotations/*/segmentation
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    instance_masks: Option<FieldSource>,

    /// Add masks, which are transformed with the image: the sidecar PNG files with this extension,
    /// such as seg.png
    #[arg(long, value_name = "EXTENSION")]
    mask: Option<String>,

    /// The type of a mask's numbers in batches
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = MaskTypeChoice::U8,
          requires = "mask")]
    mask_type: MaskTypeChoice,

    /// The number of pixels outside a mask, in batches and after transforms [default: 255 in
    /// batches, the recipe's fill after transforms]
    #[arg(long, value_name = "NUMBER", requires = "mask")]
    mask_padding: Option<u8>,
}

/// A place in the sidecar files of samples.
#[derive(Clone, Debug)]
struct FieldSource {
    /// The extension of the file.
    file: String,
    /// The JSON pointer into it.
    pointer: String,
}

/// The meaning of a box's four numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoxFormatChoice {
    /// Left, top, right, bottom
    Xyxy,
    /// Left, top, width, height
    Xywh,
    /// Centre x, centre y, width, height
    Cxcywh,
}

impl From<BoxFormatChoice> for BoxFormat {
    fn from(choice: BoxFormatChoice) -> Self {
        match choice {
            BoxFormatChoice::Xyxy => Self::Xyxy,
            BoxFormatChoice::Xywh => Self::Xywh,
            BoxFormatChoice::Cxcywh => Self::Cxcywh,
        }
    }
}

/// The type of a mask's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MaskTypeChoice {
    /// Bytes
    U8,
    /// 16 bits, for files of up to 16 bits
    U16,
    /// 32-bit integers, for files of up to 16 bits
    I32,
    /// 64-bit integers, for files of up to 16 bits
    I64,
}

impl From<MaskTypeChoice> for MaskType {
    fn from(choice: MaskTypeChoice) -> Self {
        match choice {
            MaskTypeChoice::U8 => Self::U8,
            MaskTypeChoice::U16 => Self::U16,
            MaskTypeChoice::I32 => Self::I32,
            MaskTypeChoice::I64 => Self::I64,
        }
    }
}

impl FieldArgs {
    /// The loader's configuration of fields.
    pub(super) fn fields(&self) -> Fields {
        let boxes = self.boxes.as_ref().map(|boxes| BoxField {
            labels: self.box_labels.clone(),
            format: self.box_format.into(),
            output: self.box_output.into(),
            sanitize: (!self.keep_empty_boxes).then(Sanitize::default),
            ..BoxField::new(&boxes.file, &boxes.pointer)
        });
        let keypoints = self.keypoints.as_ref().map(|FieldSource { file, pointer }| {
            let format = ValueFormat::Json(pointer.clone());
            KeypointField {
                shape: self.keypoint_shape,
                flip_pairs: self.flip_pairs.clone(),
                ..KeypointField::new("keypoints", file, format)
            }
        });
        let mask = self.mask.as_ref().map(|file| MaskField {
            dtype: self.mask_type.into(),
            padding: self.mask_padding,
            ..MaskField::new(file)
        });
        let masks = self.instance_masks.as_ref();
        let instance_masks = masks.map(|masks| InstanceMaskField::new(&masks.file, &masks.pointer));
        Fields {
            keys: self.keys,
            bytes: self.fields.clone(),
            boxes,
            keypoints: keypoints.into_iter().collect(),
            instance_masks,
            mask,
            ..Fields::default()
        }
    }
}

fn source(text: &str) -> Result<FieldSource, String> {
    match text.split_once(':') {
        Some((file, pointer)) if !file.is_empty() => {
            Ok(FieldSource { file: file.to_owned(), pointer: pointer.to_owned() })
        }
        _ => {
            let pointer = if text.starts_with('/') { text } else { "/annotations/*/bbox" };
            Err(format!("expected an extension and a JSON pointer: json:{pointer}"))
        }
    }
}

fn shape(text: &str) -> Result<[usize; 2], String> {
    two(text, ',').ok_or_else(|| "expected two numbers, such as 17,3".to_owned())
}

fn pair(text: &str) -> Result<[usize; 2], String> {
    two(text, '-').ok_or_else(|| "expected two numbers, such as 1-2".to_owned())
}

fn two(text: &str, separator: char) -> Option<[usize; 2]> {
    let (first, second) = text.split_once(separator)?;
    Some([first.parse().ok()?, second.parse().ok()?])
}
