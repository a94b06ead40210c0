//! The formats of this crate, for everything that opens data sets.

use std::sync::Arc;

use tbl_io::{ContainerFormat, FilePart, ReadError, SampleSource, Source, Stores, open_indexed};

use crate::ipc::is_arrow;
use crate::source::{RowSource, is_parquet};

/// A format of files of rows.
#[derive(Debug)]
enum Format {
    Parquet,
    Arrow,
}

impl ContainerFormat for Format {
    fn open(
        &self,
        stores: &Stores,
        source: &Source,
    ) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
        let is_this = match self {
            Self::Parquet => is_parquet(source)?,
            Self::Arrow => is_arrow(source)?,
        };
        if !is_this {
            return Ok(None);
        }
        // An index next to the file. In a store, looking for one would cost a request for each file.
        if matches!(self, Self::Parquet)
            && source.is_file()
            && let Some(indexed) = open_indexed(stores, source.location())?
        {
            return Ok(Some(indexed));
        }
        Ok(Some(Box::new(RowSource::open(stores, source.clone())?)))
    }

    fn extension(&self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    fn index(&self, stores: &Stores, source: &Source) -> Result<Option<FilePart>, ReadError> {
        let Self::Parquet = self else { return Ok(None) };
        if !is_parquet(source)? {
            return Ok(None);
        }
        let opened = RowSource::open(stores, source.clone())?;
        let samples = opened.sample_count();
        Ok(Some(FilePart { samples, bytes: opened.to_part()? }))
    }

    fn open_part(
        &self,
        stores: &Stores,
        source: &Source,
        part: &[u8],
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        Ok(Box::new(RowSource::open_part(stores, source.clone(), part)?))
    }
}

/// The same stores, in which Parquet and Arrow files open as data sets.
///
/// ```
/// let stores = tl_arrow::add_to(tbl_io::Stores::new());
/// let error = tbl_io::open_in(&stores, "missing.parquet").unwrap_err();
/// assert!(error.to_string().starts_with("missing.parquet: "));
/// ```
#[must_use]
pub fn add_to(stores: Stores) -> Stores {
    stores.with_format(Arc::new(Format::Parquet)).with_format(Arc::new(Format::Arrow))
}
