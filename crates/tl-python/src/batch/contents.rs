//! The contents of batches: which fields they have, and by which names.

use tl_pipeline::{ColumnSpec, KeypointField, Loader, LoaderConfig, MaskType, Work};

use crate::batch::cameras::{CameraField, cameras};
use crate::batch::stored::StoredField;
use crate::batch::tokens::{CU_SEQLENS, shown_columns};
use crate::element::Element;
use crate::error::Error;
use crate::settings::Settings;
use crate::tensor::Form;

/// The contents of one loader's batches.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(super) form: Form,
    pub(super) samples: Samples,
    /// Whether samples of bytes are views of their files.
    pub(super) views: bool,
    pub(super) label: bool,
    pub(super) keys: bool,
    /// The fields of bytes: sidecar files, or such columns of a table.
    pub(super) columns: Vec<StoredField>,
    /// Other names for fields, by their own names.
    pub(super) renamed: Vec<(String, String)>,
    /// The columns of numbers.
    pub(super) specs: Vec<ColumnSpec>,
    pub(super) boxes: bool,
    pub(super) box_labels: bool,
    /// The names of the numbers of boxes, and their types.
    pub(super) box_values: Vec<(String, Element)>,
    /// The fields of keypoints: those of samples are columns of numbers.
    pub(super) keypoints: Vec<KeypointField>,
    pub(super) instance_masks: bool,
    pub(super) mask: Option<MaskType>,
    pub(super) num_classes: Option<usize>,
    /// The cameras of rows, which replace images.
    pub(super) cameras: Vec<CameraField>,
}

/// The kind of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    Images,
    Bytes,
    /// Rows of a table.
    Rows,
    /// Sequences of tokens.
    Tokens,
}

impl Contents {
    /// The contents of this configuration's batches.
    ///
    /// # Errors
    /// Two fields with one name; the pipeline refuses that of tables.
    pub(crate) fn new(
        config: &LoaderConfig,
        form: Form,
        settings: &Settings<'_>,
    ) -> Result<Self, Error> {
        let fields = &config.fields;
        let (samples, recipe) = match &config.work {
            Work::Images(recipe) => (Samples::Images, Some(recipe)),
            Work::Clips(clips) => (Samples::Images, Some(&clips.recipe)),
            Work::Columns(_) => (Samples::Rows, None),
            Work::Tokens(_) => (Samples::Tokens, None),
            Work::Bytes | Work::Views | _ => (Samples::Bytes, None),
        };
        let label = match &config.work {
            Work::Columns(columns) => columns.label.is_some(),
            Work::Tokens(_) => false,
            Work::Bytes | Work::Views | Work::Images(_) | _ => true,
        };
        let contents = Self {
            form,
            samples,
            views: config.work == Work::Views,
            label,
            keys: fields.keys,
            columns: StoredField::all(config, settings),
            renamed: settings.renamed.clone(),
            specs: Vec::new(),
            boxes: fields.boxes.is_some(),
            box_labels: fields.boxes.as_ref().is_some_and(|boxes| boxes.labels.is_some()),
            box_values: settings.box_values(config),
            keypoints: fields.keypoints.clone(),
            instance_masks: fields.instance_masks.is_some(),
            mask: fields.mask.as_ref().map(|mask| mask.dtype),
            num_classes: recipe.and_then(|recipe| recipe.num_classes()).map(|count| count as usize),
            cameras: Vec::new(),
        };
        let names = contents.names();
        let values = fields.images.iter().map(|image| &*image.name);
        let values = values.chain(fields.values.iter().map(|value| &*value.name));
        let keypoints = fields.keypoints.iter().filter(|field| !field.is_of_objects());
        let values = values.chain(keypoints.map(|field| &*field.name));
        let names: Vec<&str> = names.into_iter().chain(values).collect();
        let twice = (1..names.len()).find(|&end| names[..end].contains(&names[end]));
        if let Some(place) = twice.filter(|_| samples != Samples::Rows) {
            let message = format!("a batch would have two fields called `{}`", names[place]);
            return Err(Error::setting(&message));
        }
        Ok(contents)
    }

    /// With the columns of numbers and the cameras that the loader's batches have.
    pub(crate) fn with_columns(self, loader: &Loader) -> Self {
        let cameras = cameras(loader);
        // Rows with cameras have no classes.
        let label = self.label && cameras.is_empty();
        Self { specs: shown_columns(loader), cameras, label, ..self }
    }

    /// The name that a field goes by outside.
    pub(super) fn shown<'a>(&'a self, own: &'a str) -> &'a str {
        let renamed = self.renamed.iter().find(|(name, _)| name == own);
        renamed.map_or(own, |(_, shown)| shown)
    }

    /// A field's own name.
    pub(super) fn own<'a>(&'a self, shown: &'a str) -> Option<&'a str> {
        if let Some((own, _)) = self.renamed.iter().find(|(_, name)| name == shown) {
            return Some(own);
        }
        (!self.renamed.iter().any(|(own, _)| own == shown)).then_some(shown)
    }

    /// The names of the fields, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let own = [
            ("image", self.samples == Samples::Images && self.cameras.is_empty()),
            ("bytes", self.samples == Samples::Bytes),
            ("label", self.label),
            ("soft_label", self.num_classes.is_some()),
            ("index", true),
            ("valid", true),
            ("size", self.samples == Samples::Images),
            ("key", self.keys && self.samples != Samples::Rows),
            ("mask", self.mask.is_some()),
            ("boxes", self.boxes),
            ("box_labels", self.box_labels),
            ("box_index", self.boxes),
            ("masks", self.instance_masks),
        ];
        let own = own.into_iter().filter(|(_, has)| *has).map(|(name, _)| self.shown(name));
        let own = self.cameras.iter().map(|camera| camera.name.as_str()).chain(own);
        let own = own.chain(self.box_values.iter().map(|(name, _)| name.as_str()));
        let keypoints = self.keypoints.iter().filter(|field| field.is_of_objects());
        let own = own.chain(keypoints.map(|field| &*field.name));
        let columns = self.columns.iter().map(|column| column.name.as_str());
        let numbers = self.specs.iter().map(|spec| spec.name.as_str());
        if !matches!(self.samples, Samples::Rows | Samples::Tokens) {
            return own.chain(numbers).chain(columns).collect();
        }
        let stored: Vec<&str> = numbers.chain(columns).collect();
        let stored: Vec<&str> = match self.has_documents() {
            true => stored.into_iter().chain([CU_SEQLENS]).collect(),
            false => stored,
        };
        // A table's own column is what its name stands for.
        stored.iter().copied().chain(own.filter(|name| !stored.contains(name))).collect()
    }

    /// True if rows are documents, which begin at the places in `cu_seqlens`.
    pub(super) fn has_documents(&self) -> bool {
        self.samples == Samples::Tokens && self.column("positions").is_some()
    }

    /// The column of numbers of this name.
    pub(super) fn column(&self, name: &str) -> Option<(usize, &ColumnSpec)> {
        self.specs.iter().enumerate().find(|(_, spec)| spec.name == name)
    }
}
