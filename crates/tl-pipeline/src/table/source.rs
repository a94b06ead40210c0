//! A table as a source of samples, which are its rows.

use std::any::Any;

use tbl_format::SampleFormat;
use tbl_io::{BlockMemory, Entry, Location, ReadError, SampleBlocks, SampleSource, SourceKind};

use crate::table::{Content, Table};

/// A table among the sources of a [`Dataset`](crate::Dataset), whose samples are its rows. They have
/// no bytes, and so no other work is done on them than [`Work::Columns`](crate::Work::Columns).
///
/// ```no_run
/// use tl_pipeline::{Dataset, IdvTable, TableSource};
///
/// let table = IdvTable::open("train.idv")?;
/// let dataset = Dataset::from_sources(vec![Box::new(TableSource::new(table))])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableSource(Box<dyn Table>);

impl TableSource {
    /// The rows of `table` as samples.
    pub fn new(table: impl Table + 'static) -> Self {
        Self(Box::new(table))
    }

    pub(crate) fn boxed(table: Box<dyn Table>) -> Self {
        Self(table)
    }

    /// The table of this source.
    #[must_use]
    pub fn table(&self) -> &dyn Table {
        &*self.0
    }

    /// The table of a source, if it has one.
    #[must_use]
    pub fn of(source: &dyn SampleSource) -> Option<&dyn Table> {
        (source as &dyn Any).downcast_ref::<Self>().map(Self::table)
    }
}

impl SampleSource for TableSource {
    fn location(&self) -> &Location {
        self.0.location()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Table
    }

    fn sample_count(&self) -> u64 {
        self.0.row_count()
    }

    /// A row has neither name nor label, and the bytes of its numbers.
    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let sample_count = self.0.row_count();
        if index >= sample_count {
            let location = self.location().clone();
            return Err(ReadError::SampleOutOfRange { location, index, sample_count });
        }
        let bytes = self.0.columns().iter().map(|column| match &column.content {
            Content::Numbers { number, shape, .. } => {
                let numbers =
                    shape.iter().fold(1usize, |numbers, &size| numbers.saturating_mul(size));
                numbers.saturating_mul(number.bytes()) as u64
            }
            Content::Bytes { .. } | Content::Unreadable { .. } => 0,
        });
        let bytes = bytes.fold(0, u64::saturating_add);
        Ok(Entry {
            key: None,
            label: None,
            format: SampleFormat::Unknown,
            width: 0,
            height: 0,
            offset: 0,
            stored_bytes: bytes,
            bytes,
        })
    }

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        self.0.block_memory()
    }

    /// Rows are not bytes; a request for bytes is refused before it gets here.
    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        bytes.clear();
        self.entry(index).map(drop)
    }

    fn blocks(&self) -> Option<&dyn SampleBlocks> {
        (!self.0.block_ends().is_empty()).then_some(self)
    }
}

impl SampleBlocks for TableSource {
    fn ends(&self) -> Result<Vec<u64>, ReadError> {
        Ok(self.0.block_ends())
    }

    /// None here: the memory for blocks counts its own bytes.
    fn unpacked_bytes(&self) -> Result<u64, ReadError> {
        Ok(0)
    }

    fn unpack_count(&self) -> u64 {
        0
    }

    fn compressions(&self) -> Vec<&'static str> {
        Vec::new()
    }
}
