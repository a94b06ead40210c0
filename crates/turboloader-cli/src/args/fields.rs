//! Arguments that say what batches hold besides images, labels and indices.

use clap::{Args, ValueEnum};
use tl_pipeline::{BoxField, Fields, MaskField, MaskType, Sanitize};
use tl_transform::BoxFormat;

/// What batches hold besides images, labels and indices.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Fields of batches")]
pub(crate) struct FieldArgs {
    /// Add the samples' names
    #[arg(long)]
    keys: bool,

    /// Add sidecar files, by extension: json for 0017.json beside 0017.jpg
    #[arg(long, value_name = "EXTENSION", value_delimiter = ',')]
    columns: Vec<String>,

    /// Add bounding boxes, which move with the image: where they are in a sidecar file of JSON, as a
    /// JSON pointer with one * for the elements of a list, such as /annotations/*/bbox
    #[arg(long, value_name = "POINTER")]
    boxes: Option<String>,

    /// The sidecar file that boxes are in
    #[arg(long, value_name = "EXTENSION", default_value = "json", requires = "boxes")]
    box_column: String,

    /// Where the labels of boxes are, such as /annotations/*/category_id (default: boxes have none)
    #[arg(long, value_name = "POINTER", requires = "boxes")]
    box_labels: Option<String>,

    /// What the four numbers of a box are in the file
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = BoxFormatChoice::Xyxy,
          requires = "boxes")]
    box_format: BoxFormatChoice,

    /// What they are in batches
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = BoxFormatChoice::Xyxy,
          requires = "boxes")]
    box_output: BoxFormatChoice,

    /// Keep boxes that the crop left without a pixel
    #[arg(long, requires = "boxes")]
    keep_empty_boxes: bool,

    /// Add masks, which move with the image: the sidecar PNG files with this extension, such as
    /// seg.png
    #[arg(long, value_name = "EXTENSION")]
    mask: Option<String>,

    /// The type of a mask's numbers in batches
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = MaskTypeChoice::U8,
          requires = "mask")]
    mask_type: MaskTypeChoice,

    /// What stands around masks that are padded
    #[arg(long, value_name = "NUMBER", default_value_t = u8::MAX, requires = "mask")]
    mask_padding: u8,
}

/// What the four numbers of a box are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoxFormatChoice {
    /// Left, top, right, bottom
    Xyxy,
    /// Left, top, width, height
    Xywh,
    /// Middle across, middle down, width, height
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
    /// 64-bit integers
    I64,
}

impl From<MaskTypeChoice> for MaskType {
    fn from(choice: MaskTypeChoice) -> Self {
        match choice {
            MaskTypeChoice::U8 => Self::U8,
            MaskTypeChoice::I64 => Self::I64,
        }
    }
}

impl FieldArgs {
    /// What a loader is told.
    pub(super) fn fields(&self) -> Fields {
        let boxes = self.boxes.as_ref().map(|boxes| BoxField {
            labels: self.box_labels.clone(),
            format: self.box_format.into(),
            output: self.box_output.into(),
            sanitize: (!self.keep_empty_boxes).then(Sanitize::default),
            ..BoxField::new(&self.box_column, boxes)
        });
        let mask = self.mask.as_ref().map(|column| MaskField {
            dtype: self.mask_type.into(),
            padding: self.mask_padding,
            ..MaskField::new(column)
        });
        Fields { keys: self.keys, columns: self.columns.clone(), boxes, mask }
    }
}
