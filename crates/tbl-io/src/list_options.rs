//! Options of lists of samples.

use crate::limits::ReadLimits;
use crate::lists::Pairs;
use crate::location::Location;

/// The options for lists of samples that are opened by their location.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// For manifests.
    pub manifest: Manifest,
    /// For annotations of COCO.
    pub coco: Coco,
    /// Further files of images. If it has fields, each location that is opened is a pattern of images,
    /// which takes the place of [`Pairs::image`].
    pub pairs: Pairs,
}

impl ListOptions {
    /// Whether locations are patterns of images that have further files.
    pub fn has_pairs(&self) -> bool {
        !self.pairs.fields.is_empty()
    }
}

/// The meaning of a manifest's columns. The default finds images and labels by usual names. `image` and
/// `label` name the columns of Parquet and Arrow files too.
///
/// Columns besides these are fields of the samples, named as the columns are. A field has the bytes
/// of its cell: in JSON Lines the text of a string, and the JSON of another value.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    /// The column with the samples' files. Default: `path`, `image`, `file_name` or a similar name,
    /// if one column has it, or the only column.
    pub image: Option<String>,
    /// The column with the labels: integers, or names of classes, which are numbered in sorted
    /// order. Numbers that are not integers and lists stay fields. Default: `label`, if it exists.
    pub label: Option<String>,
    /// Columns that name further files, whose bytes are fields, such as masks. A cell may be empty.
    pub files: Vec<String>,
    /// The folder that paths are relative to. Default: that of the manifest. Absolute paths must lie
    /// below it, so that `/` allows all of them; `..` is refused.
    pub root: Option<Location>,
    /// Bounds for the manifest and the files.
    pub limits: ReadLimits,
}

/// The options of annotations as COCO writes them.
#[derive(Clone, Debug, Default)]
pub struct Coco {
    /// The folder that names of images are relative to. Default: of local files, the first of these
    /// that has the first image: the folder of the annotations, the folder `NAME` next to it or in
    /// `images` for annotations called `KIND_NAME.json`, and `images` in it or next to it.
    pub images: Option<Location>,
    /// Whether categories are numbered from 0 on, in the order of their numbers in the file. Those
    /// of COCO are 80 numbers from 1 to 90.
    pub dense: bool,
    /// Bounds for the images.
    pub limits: ReadLimits,
}
