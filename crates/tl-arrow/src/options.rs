//! Options for files of rows.

use tbl_io::{Location, Manifest};

/// The use of the columns of a file, where the file alone does not decide it.
#[derive(Clone, Debug, Default)]
pub struct RowOptions {
    /// The column of the images. Default: the only one.
    pub image: Option<String>,
    /// The column of the labels. Default: the only `ClassLabel`, or `label`.
    pub label: Option<String>,
    /// The columns that are used, by their names in the file, with the names that they have here.
    /// Default: all.
    pub columns: Option<Vec<(String, String)>>,
    /// The features of `datasets`, as the JSON of the key `huggingface`, with the names of `columns`.
    /// Default: those of the file.
    pub features: Option<String>,
    /// The folder that paths of images without bytes are relative to. Default: that of the file.
    pub folder: Option<Location>,
    /// The folder below which absolute paths must lie, so that `/` allows all of them. Default: absolute
    /// paths are refused.
    pub root: Option<Location>,
}

impl RowOptions {
    /// The options for a file that is opened by its location, next to manifests.
    pub(crate) fn of_manifest(manifest: &Manifest) -> Self {
        Self {
            image: manifest.image.clone(),
            label: manifest.label.clone(),
            folder: manifest.root.clone(),
            root: manifest.root.clone(),
            ..Self::default()
        }
    }
}
