//! Labels of all rows of tables at once, for orders that depend on them.

use crate::dataset::Dataset;
use crate::error::{ColumnsError, PipelineError, SampleFault, TableError};
use crate::table::layout::{Layout, Source};
use crate::table::{ColumnType, ColumnValues, Columns, Meaning, Table, number};

/// The label column of all rows, read in advance.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableLabels {
    /// By row of the data set, [`MISSING`] for a missing one; empty until they are read.
    labels: Vec<i64>,
    class_names: Vec<String>,
    /// The column whose labels were read.
    column: Option<String>,
}

/// A missing label.
const MISSING: i64 = i64::MIN;

impl TableLabels {
    /// The names of the categories of column `label`, without labels.
    pub(crate) fn named(dataset: &Dataset, label: &str) -> Result<Self, PipelineError> {
        let location = || dataset.shards().first().map(|shard| shard.location().clone());
        let no_table = || ColumnsError::NoTable { location: location().unwrap_or_default() };
        let table = dataset.tables().next().ok_or_else(no_table)?;
        let column = source(table, label)?.column;
        let fault = |source| PipelineError::Table { location: table.location().clone(), source };
        // Those of the other files are the same.
        let class_names = table.class_names(column).map_err(fault)?;
        Ok(Self { class_names, ..Self::default() })
    }

    /// Reads column `label` of every row, holding one block at a time.
    pub(crate) fn read(&mut self, dataset: &Dataset, label: &str) -> Result<(), PipelineError> {
        let rows = dataset.len();
        let no_memory = |_| PipelineError::OutOfMemory { bytes: rows.saturating_mul(8) };
        self.labels.clear();
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        self.labels.try_reserve_exact(count).map_err(no_memory)?;
        for table in dataset.tables() {
            let source = source(table, label)?;
            let start = self.labels.len() as u64;
            read(table, &source, &mut self.labels).map_err(|fault| {
                // Values read from a file that was cut short are wrong, and so is the reported
                // defect.
                let fault = table.check().map_or_else(SampleFault::from, |()| fault);
                let row = (self.labels.len() as u64 - start).min(table.row_count());
                PipelineError::Sample(dataset.sample_error(start + row, fault).into())
            })?;
            table.check()?;
        }
        self.column = Some(label.to_owned());
        Ok(())
    }

    pub(crate) fn label(&self, row: u64) -> Option<i64> {
        let row = usize::try_from(row).ok()?;
        self.labels.get(row).copied().filter(|&label| label != MISSING)
    }

    pub(crate) fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }

    pub(crate) fn class_names(&self) -> &[String] {
        &self.class_names
    }
}

fn source(table: &dyn Table, label: &str) -> Result<Source, PipelineError> {
    let columns =
        Columns { columns: Some(Vec::new()), label: Some(label.to_owned()), ..Columns::default() };
    let Layout { sources, label, .. } = Layout::new(table, &columns, &[])?;
    let place = label.expect("a label was asked for");
    Ok(sources[place].clone())
}

fn read(table: &dyn Table, source: &Source, labels: &mut Vec<i64>) -> Result<(), SampleFault> {
    let Source { column, ref name, numbers, row_bytes } = *source;
    let (kind, meaning) = numbers.unwrap_or((ColumnType::U8, Meaning::Value));
    let mut stored = vec![0; row_bytes];
    let mut block = None;
    let values = table.values(column);
    for row in 0..table.row_count() {
        let fault = |source| SampleFault::Column { row, column: name.clone(), source };
        let values = values.as_ref().map_err(|error| fault(error.clone()))?;
        let mut label = || -> Result<Option<i64>, TableError> {
            match values {
                ColumnValues::Whole(values) => values.write(row, &mut stored)?,
                ColumnValues::Blocks { rows, .. } => {
                    let rows = (*rows).max(1);
                    let number = row / rows;
                    let row = row % rows;
                    let known = block.take().filter(|(known, _)| *known == number);
                    let (_, values) = match known {
                        Some(known) => block.insert(known),
                        None => block.insert((number, table.load(column, number)?)),
                    };
                    values.write(row, &mut stored)?;
                }
            }
            number::label(kind, meaning, &stored)
        };
        labels.push(label().map_err(fault)?.unwrap_or(MISSING));
    }
    Ok(())
}
