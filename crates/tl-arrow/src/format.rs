//! The formats of this crate, for everything that opens data sets.

use std::sync::Arc;

use tbl_io::{ContainerFormat, ReadError, SampleSource, Source, Stores};

use crate::source::RowSource;

/// Parquet files.
#[derive(Debug)]
struct Parquet;

impl ContainerFormat for Parquet {
    fn open(
        &self,
        stores: &Stores,
        source: &Source,
    ) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
        if !RowSource::is(source)? {
            return Ok(None);
        }
        Ok(Some(Box::new(RowSource::open(stores, source.clone())?)))
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }
}

/// The same stores, in which Parquet files open as data sets.
///
/// ```
/// let stores = tl_arrow::add_to(tbl_io::Stores::new());
/// let error = tbl_io::open_in(&stores, "missing.parquet").unwrap_err();
/// assert!(error.to_string().starts_with("missing.parquet: "));
/// ```
#[must_use]
pub fn add_to(stores: Stores) -> Stores {
    stores.with_format(Arc::new(Parquet))
}
