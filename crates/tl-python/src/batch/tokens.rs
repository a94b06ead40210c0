//! Tokens and targets: two views of one column.

use tl_pipeline::{ColumnSpec, Loader};

use crate::batch::PyBatch;
use crate::tensor::Tensor;

/// The field with the starts of documents in each row.
pub(super) const CU_SEQLENS: &str = "cu_seqlens";

/// The columns of numbers as Python sees them: tokens without the last target, which is one of the
/// targets.
pub(super) fn shown_columns(loader: &Loader) -> Vec<ColumnSpec> {
    let mut columns = loader.column_specs().to_vec();
    if loader.targets_overlap()
        && let [tokens] = &mut columns[..]
    {
        tokens.shape.iter_mut().for_each(|length| *length -= 1);
        let mut targets = tokens.clone();
        targets.name = "targets".to_owned();
        columns.push(targets);
    }
    columns
}

impl PyBatch {
    /// The tokens, or from `place` 1 on the token after each.
    pub(super) fn token_tensor(&self, place: usize, spec: &ColumnSpec) -> Option<Tensor> {
        let all = self.memory.columns.first()?;
        let rows = self.batch.len();
        let start = place * spec.number.bytes();
        let stride = all.len().checked_div(rows)?;
        let shape = [rows].into_iter().chain(spec.shape.iter().copied()).collect();
        let memory = all.part(start, all.len() - start);
        Some(Tensor::strided(&memory, shape, spec.number, stride))
    }
}
