//! The readers of fields whose type or shape is that of the data set's first sample.

use tl_handoff::sync::Arc;

use super::keypoints::KeypointReader;
use super::{Fields, ValueReader};
use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::table::ColumnSpec;

/// The readers of values and keypoints, which every worker copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldReaders {
    pub(super) values: Vec<ValueReader>,
    pub(super) keypoints: Vec<KeypointReader>,
}

/// The keypoints of a batch's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeypointLayout {
    /// The number of points, and the numbers of a point.
    pub(crate) shape: [usize; 2],
    /// The column that has them; `None` if each object has some, so that rows have them.
    pub(crate) column: Option<usize>,
}

impl FieldReaders {
    /// The readers of `fields`, whose columns follow those of `columns`.
    ///
    /// # Errors
    /// [`PipelineError::Unusable`] if no sample has a field, with the first error.
    pub(crate) fn new(
        fields: &Fields,
        dataset: &Dataset,
        columns: &mut Vec<ColumnSpec>,
    ) -> Result<Self, PipelineError> {
        let mut values = Vec::with_capacity(fields.values.len());
        for value in &fields.values {
            let spec = value.column_in(dataset)?;
            values.push(ValueReader::new(value, spec.clone(), columns.len()));
            columns.push(spec);
        }
        let keypoints = fields.keypoints.iter();
        let keypoints = keypoints.map(|field| KeypointReader::new(field, dataset, columns));
        Ok(Self { values, keypoints: keypoints.collect::<Result<_, _>>()? })
    }

    /// The readers of values in columns: those of keypoints of samples are the last.
    pub(super) fn columns(&mut self) -> impl Iterator<Item = &mut ValueReader> {
        let keypoints = self.keypoints.iter_mut().filter_map(KeypointReader::values);
        self.values.iter_mut().chain(keypoints)
    }

    /// The layouts of keypoints, in the order of the fields.
    pub(crate) fn keypoint_layouts(&self) -> Arc<[KeypointLayout]> {
        self.keypoints.iter().map(KeypointReader::layout).collect()
    }
}
