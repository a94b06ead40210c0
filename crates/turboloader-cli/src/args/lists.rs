//! Options of lists of samples, and labels from elsewhere.

use std::path::PathBuf;

use tbl_io::{Coco, GivenLabels, ListOptions, Location, Manifest, ReadError, Stores};

const LISTS: &str = "Lists of samples";

/// The options of manifests and annotations, and labels from elsewhere.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ListArgs {
    /// The column of a manifest (csv, tsv, jsonl) that names the images (default: path, file_name,
    /// image or a similar name)
    #[arg(long, global = true, value_name = "COLUMN", help_heading = LISTS)]
    image_column: Option<String>,

    /// The column of a manifest that has the labels: integers, or names of classes (default: label)
    #[arg(long, global = true, value_name = "COLUMN", help_heading = LISTS)]
    label_column: Option<String>,

    /// Columns of a manifest that name further files, such as masks, whose bytes become fields
    #[arg(
        long,
        global = true,
        value_name = "COLUMN,..",
        value_delimiter = ',',
        help_heading = LISTS
    )]
    file_columns: Vec<String>,

    /// The folder or URL that names in a manifest or in annotations are relative to (default: where
    /// the list is; annotations of COCO also find the usual folders)
    #[arg(long, global = true, value_name = "DIR", help_heading = LISTS)]
    root: Option<PathBuf>,

    /// Number the categories of annotations from 0 on
    #[arg(long, global = true, help_heading = LISTS)]
    dense_categories: bool,

    /// Take the labels from this file, by the names of samples: a table with a column label, or
    /// lines of a name and a label
    #[arg(long, global = true, value_name = "FILE", help_heading = LISTS)]
    labels: Option<PathBuf>,

    /// Take the name of each archive, up to its first dot, as the class of its samples: for archives
    /// of one class each, such as cats.tar and dogs.tar
    #[arg(long, global = true, conflicts_with = "labels", help_heading = LISTS)]
    class_per_archive: bool,

    /// With --labels: samples that the file does not name have no label
    #[arg(long, global = true, requires = "labels", help_heading = LISTS)]
    allow_unlabelled: bool,
}

impl ListArgs {
    pub(crate) fn options(&self) -> ListOptions {
        let root = self.root.as_ref().map(Location::new);
        let manifest = Manifest {
            image: self.image_column.clone(),
            label: self.label_column.clone(),
            files: self.file_columns.clone(),
            root: root.clone(),
            ..Manifest::default()
        };
        let coco = Coco { images: root, dense: self.dense_categories, ..Coco::default() };
        ListOptions { manifest, coco }
    }

    pub(crate) fn gives_labels(&self) -> bool {
        self.labels.is_some() || self.class_per_archive
    }

    /// The labels in the file that is named, or by the names of archives.
    pub(crate) fn labels(&self, stores: &Stores) -> Result<Option<GivenLabels>, ReadError> {
        if self.class_per_archive {
            return Ok(Some(GivenLabels::classes_by_source()));
        }
        let Some(path) = &self.labels else { return Ok(None) };
        let labels = GivenLabels::read(stores, path)?;
        Ok(Some(if self.allow_unlabelled { labels.or_none() } else { labels }))
    }
}
