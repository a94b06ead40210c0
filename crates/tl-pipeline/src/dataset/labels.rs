//! Labels that do not come with the samples: given ones, those of another data set's classes, and those
//! of a table's column.

use tbl_io::{GivenLabels, Labels};
use tl_handoff::sync::Arc;

use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::table::TableLabels;

/// The message for labels that a table was given.
pub(super) const GIVEN_TO_TABLE: &str =
    "labels are given to samples; those of a table are a column";

impl Dataset {
    /// The same data set with labels that the caller gives, instead of those that its sources have.
    ///
    /// # Errors
    /// As for [`Labels::given`]; [`PipelineError::Unusable`] for tables, whose labels are a column.
    pub fn with_labels(mut self, labels: &GivenLabels) -> Result<Self, PipelineError> {
        if self.tables().next().is_some() {
            return Err(PipelineError::Unusable(GIVEN_TO_TABLE.to_owned()));
        }
        self.labels = Arc::new(Labels::given(&self.shards, labels)?);
        Ok(self)
    }

    /// The same data set with its classes numbered as in `names`, such as the class names of the data
    /// set that a model was trained on ([`Labels::with_class_names`]).
    ///
    /// # Errors
    /// As for [`Labels::with_class_names`], also for tables.
    pub fn with_class_names(mut self, names: &[String]) -> Result<Self, PipelineError> {
        let labels = Labels::clone(&self.labels).with_class_names(&self.shards, names)?;
        self.labels = Arc::new(labels);
        Ok(self)
    }

    /// The same data set with column `column` of its tables as [labels](Self::label), and the names
    /// of its categories, if any, as [class names](Self::class_names). This reads the whole column,
    /// and keeps 8 bytes for every row.
    ///
    /// A loader calls it itself if its order needs the labels of
    /// [`Columns::label`](crate::Columns::label). Batches have labels without it.
    ///
    /// # Errors
    /// [`PipelineError::Columns`] if the column does not exist or cannot be a label,
    /// [`PipelineError::Sample`] for the first row whose label cannot be read.
    pub fn with_labels_of(mut self, column: &str) -> Result<Self, PipelineError> {
        self.name_classes(column)?;
        self.read_labels(column)?;
        Ok(self)
    }

    /// Takes the names of the categories of column `column`.
    pub(crate) fn name_classes(&mut self, column: &str) -> Result<(), PipelineError> {
        self.table_labels = TableLabels::named(self, column)?;
        Ok(())
    }

    /// Takes the labels that column `column` has.
    pub(crate) fn read_labels(&mut self, column: &str) -> Result<(), PipelineError> {
        let mut labels = std::mem::take(&mut self.table_labels);
        labels.read(self, column)?;
        self.table_labels = labels;
        Ok(())
    }

    /// The column whose labels the rows of its tables have.
    pub(crate) fn label_column(&self) -> Option<&str> {
        self.table_labels.column()
    }
}
