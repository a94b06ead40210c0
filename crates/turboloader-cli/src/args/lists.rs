//! Options of lists of samples, and labels from elsewhere.

use std::path::PathBuf;

use clap::ValueEnum;
use tbl_io::{
    Coco, GivenLabels, ListOptions, Location, Manifest, Pairs, ReadError, Stores, Unpaired,
};

const LISTS: &str = "Lists of samples";

/// The options of manifests and annotations, and labels from elsewhere.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ListArgs {
    /// The column of a manifest (csv, tsv, jsonl) that names the images (default: path, file_name,
    /// image or a similar name), or of a Parquet or Arrow file that has them (default: the only one)
    #[arg(long, global = true, value_name = "COLUMN", help_heading = LISTS)]
    image_column: Option<String>,

    /// The column of a manifest or of a Parquet or Arrow file that has the labels: integers, or names
    /// of classes (default: label)
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

    /// Open the images of a pattern with further files of their own, such as masks: the path is the
    /// pattern of the images, as in 'images/*.jpg' --pair 'mask=masks/*.png'. Files belong together if
    /// the stars of their patterns stand for the same; quote patterns, so that the shell leaves them
    #[arg(
        long,
        global = true,
        value_name = "FIELD=PATTERN",
        value_parser = pair,
        help_heading = LISTS
    )]
    pair: Vec<(String, String)>,

    /// With --pair: the images that this text file names, in its order, such as train.txt of Pascal
    /// VOC
    #[arg(long, global = true, value_name = "FILE", requires = "pair", help_heading = LISTS)]
    pair_split: Option<PathBuf>,

    /// With --pair: what happens to images without a file
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ACTION",
        requires = "pair",
        default_value_t,
        help_heading = LISTS
    )]
    unpaired: UnpairedChoice,

    /// Take the labels of ImageNet's validation images from the files in this folder, as they are
    /// downloaded: the development kit, LOC_val_solution.csv or
    /// imagenet_2012_validation_synset_labels.txt
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        conflicts_with_all = ["labels", "class_per_archive"],
        help_heading = LISTS
    )]
    imagenet_labels: Option<PathBuf>,

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

/// The treatment of images without a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UnpairedChoice {
    /// An error
    #[default]
    Error,
    /// They stay without the field
    Keep,
    /// They are left out
    Drop,
}

impl From<UnpairedChoice> for Unpaired {
    fn from(choice: UnpairedChoice) -> Self {
        match choice {
            UnpairedChoice::Error => Self::Refuse,
            UnpairedChoice::Keep => Self::Keep,
            UnpairedChoice::Drop => Self::Drop,
        }
    }
}

/// The name of a field and the pattern of its files.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((field, pattern)) if !field.is_empty() && !pattern.is_empty() => {
            Ok((field.to_owned(), pattern.to_owned()))
        }
        Some(_) | None => Err("expected FIELD=PATTERN, such as mask=masks/*.png"),
    }
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
        let pairs = Pairs {
            fields: self.pair.clone(),
            split: self.pair_split.as_ref().map(Location::new),
            unpaired: self.unpaired.into(),
            ..Pairs::default()
        };
        ListOptions { manifest, coco, pairs }
    }

    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let is_of_manifest = self.image_column.is_some()
            || self.label_column.is_some()
            || !self.file_columns.is_empty()
            || self.root.is_some();
        is_of_manifest || self.dense_categories || !self.pair.is_empty() || self.gives_labels()
    }

    pub(crate) fn gives_labels(&self) -> bool {
        self.labels.is_some() || self.class_per_archive || self.imagenet_labels.is_some()
    }

    /// The labels in the file that is named, or by the names of archives.
    pub(crate) fn labels(&self, stores: &Stores) -> Result<Option<GivenLabels>, ReadError> {
        if self.class_per_archive {
            return Ok(Some(GivenLabels::classes_by_source()));
        }
        if let Some(root) = &self.imagenet_labels {
            return Ok(Some(GivenLabels::imagenet_val(stores, root)?));
        }
        let Some(path) = &self.labels else { return Ok(None) };
        let labels = GivenLabels::read(stores, path)?;
        Ok(Some(if self.allow_unlabelled { labels.or_none() } else { labels }))
    }
}
