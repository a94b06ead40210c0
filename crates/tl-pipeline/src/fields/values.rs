//! Numbers of samples, read from their sidecar files into columns of batches.

mod number;
mod read;

use std::fmt;

use super::files::Files;
use super::{Fields, refused};
use crate::dataset::Dataset;
use crate::error::{AnnotationFault, PipelineError};
use crate::table::{ColumnSpec, ColumnType};

pub(super) use number::put;
pub(crate) use read::ValueReader;
pub(super) use read::whole_or_real;

/// Numbers of every sample, read from one of its sidecar files: a column of the batch
/// ([`Batch::column_named`](crate::Batch::column_named)).
///
/// Regression targets, vectors, several labels of one image, latents: whatever has one shape for all
/// samples.
///
/// ```
/// use tl_pipeline::{ColumnType, Fields, ValueField, ValueFormat, ValueKind};
///
/// // `{"score": 0.5}` next to each image.
/// let score = ValueField::new("score", "json", ValueFormat::Json("/score".into()));
/// // The classes 3 and 7 of 80 as ones among zeros, from a text such as `3 7`.
/// let kind = ValueKind::MultiHot { count: 80, names: Vec::new(), number: ColumnType::F32 };
/// let classes = ValueField { kind, ..ValueField::new("classes", "cls", ValueFormat::Text) };
/// let fields = Fields { values: vec![score, classes], ..Fields::default() };
/// # let _ = fields;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ValueField {
    /// The name of the column in batches.
    pub name: String,
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// The format of the file.
    pub format: ValueFormat,
    /// The meaning of its values.
    pub kind: ValueKind,
    /// The number of samples without the file or the value, in all places. Default `None`: such a
    /// sample is an error.
    pub missing: Option<f64>,
}

/// The format of the file that has the values of a [`ValueField`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueFormat {
    /// Text: numbers between white space, commas or semicolons, or names between commas, semicolons
    /// or `|`. A file that begins as an array does is read as [`Npy`](Self::Npy), and a list as JSON
    /// has it as that, such as a column of JSON Lines.
    Text,
    /// The value at this JSON pointer (RFC 6901): a number, a truth value, a text, or lists of them.
    /// The empty pointer is the whole document. `null` counts as missing.
    Json(String),
    /// An array as `numpy.save` writes it.
    Npy,
    /// The array of this name in a file as `numpy.savez` writes it, compressed or not.
    Npz(String),
}

impl ValueFormat {
    /// Checks that a pointer is one.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Json(pointer) if !(pointer.is_empty() || pointer.starts_with('/')) => {
                Err(format!("invalid pointer `{pointer}`: expected `/` first"))
            }
            Self::Json(_) | Self::Text | Self::Npy | Self::Npz(_) => Ok(()),
        }
    }

    fn is_array(&self) -> bool {
        matches!(self, Self::Npy | Self::Npz(_))
    }
}

/// The meaning of the values of a [`ValueField`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// Numbers.
    Numbers {
        /// Their type in the batch. A number that it does not have is the sample's error; only
        /// fractions are rounded. Default `None`: as stored in an array, otherwise `f32`.
        number: Option<ColumnType>,
        /// The dimensions for one sample; none for a single number. Default `None`: those of the
        /// first sample that has the value.
        shape: Option<Vec<usize>>,
    },
    /// A class by its name, as the `i64` place of the name in this list.
    Class(Vec<String>),
    /// Some of several classes: 1 at the places of those that the file lists and 0 elsewhere.
    MultiHot {
        /// The number of classes.
        count: u32,
        /// Their names, if the file lists names; otherwise it lists numbers from 0.
        names: Vec<String>,
        /// The type of the numbers in the batch.
        number: ColumnType,
    },
}

/// As many numbers of one sample as a batch may have.
const MOST_NUMBERS: usize = 1 << 28;

impl ValueField {
    /// Numbers in the sidecar file with extension `file`, in the type and shape of the first sample
    /// that has them.
    #[must_use]
    pub fn new(name: impl Into<String>, file: impl Into<String>, format: ValueFormat) -> Self {
        let kind = ValueKind::Numbers { number: None, shape: None };
        Self { name: name.into(), file: file.into(), format, kind, missing: None }
    }

    fn check(&self) -> Result<(), PipelineError> {
        let fail =
            |reason: &dyn fmt::Display| Err(refused(format!("values `{}`: {reason}", self.name)));
        if let Err(reason) = self.format.check() {
            return fail(&reason);
        }
        let is_array = self.format.is_array();
        let number = match &self.kind {
            ValueKind::Numbers { shape: Some(shape), .. }
                if shape
                    .iter()
                    .try_fold(1, |n: usize, &side| n.checked_mul(side))
                    .is_none_or(|numbers| numbers > MOST_NUMBERS) =>
            {
                return fail(&format_args!("shape {shape:?} has more than {MOST_NUMBERS} numbers"));
            }
            ValueKind::Numbers { number, .. } => *number,
            ValueKind::Class(names) | ValueKind::MultiHot { names, .. }
                if is_array && !names.is_empty() =>
            {
                return fail(&"arrays hold numbers, not names of classes");
            }
            ValueKind::Class(names) if names.is_empty() => return fail(&"no names of classes"),
            ValueKind::MultiHot { count, names, .. }
                if !names.is_empty() && names.len() != *count as usize =>
            {
                return fail(&format_args!("{} names for {count} classes", names.len()));
            }
            ValueKind::Class(_) => Some(ColumnType::I64),
            ValueKind::MultiHot { number, .. } => Some(*number),
        };
        let misfit = number.zip(self.missing).filter(|&(number, value)| {
            !put(number, number::Value::Real(value), &mut [0; 8][..number.bytes()])
        });
        if let Some((number, value)) = misfit {
            return fail(&format_args!("missing is {value}, which {} cannot hold", number.name()));
        }
        Ok(())
    }
}

impl Fields {
    /// Checks the settings of values, and that no two columns have one name.
    pub(super) fn check_values(&self) -> Result<(), PipelineError> {
        self.values.iter().try_for_each(ValueField::check)?;
        let names = self.images.iter().map(|image| &image.name);
        let names = names.chain(self.values.iter().map(|value| &value.name));
        let names = names.chain(self.keypoints.iter().map(|field| &field.name));
        let mut names: Vec<&String> = names.collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(refused(format!("two fields are called `{}`", twice[0]))),
            None => Ok(()),
        }
    }

    /// The result of `find` for the first sample that has one, or the reason why none has.
    pub(super) fn first_found<T>(
        &self,
        dataset: &Dataset,
        find: impl Fn(&mut Files) -> Result<Option<T>, AnnotationFault>,
    ) -> Result<T, String> {
        let mut files = Files::default();
        let mut first = None;
        for index in 0..dataset.len() {
            let read = files.read(self, dataset, index, MOST_BYTES);
            match read.and_then(|_| Ok(find(&mut files)?)) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                // The sample's own error when it is read, unless all samples are so.
                Err(fault) => {
                    first.get_or_insert_with(|| dataset.sample_error(index, fault));
                }
            }
        }
        Err(first.map_or("no sample has them".to_owned(), |error| error.to_string()))
    }
}

impl ValueField {
    pub(super) fn column_in(&self, dataset: &Dataset) -> Result<ColumnSpec, PipelineError> {
        if let Some(spec) = self.configured_spec() {
            return Ok(spec);
        }
        let fields = Fields { values: vec![self.clone()], ..Fields::default() };
        let spec = fields.first_found(dataset, |files| self.spec_of(files, MOST_BYTES));
        spec.map_err(|reason| refused(format!("values `{}` have no shape: {reason}", self.name)))
    }
}

/// Bytes of a file that is read to learn a shape.
pub(super) const MOST_BYTES: u64 = 1 << 30;
