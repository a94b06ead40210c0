//! The formats of this crate, for everything that opens data sets.

use std::sync::Arc;

use tbl_io::{ContainerFormat, FilePart, ReadError, SampleSource, Source, Stores};

use crate::cache::PageCache;
use crate::ipc::is_arrow;
use crate::options::RowOptions;
use crate::source::{RowSource, is_parquet};

/// A format of files of rows.
#[derive(Debug)]
enum Format {
    /// Parquet files, which share the memory for their pages.
    Parquet(Arc<PageCache>),
    Arrow,
}

impl ContainerFormat for Format {
    fn open(
        &self,
        stores: &Stores,
        source: &Source,
    ) -> Result<Option<Box<dyn SampleSource>>, ReadError> {
        let is_this = match self {
            Self::Parquet(_) => is_parquet(source)?,
            Self::Arrow => is_arrow(source)?,
        };
        if !is_this {
            return Ok(None);
        }
        let cache = match self {
            Self::Parquet(cache) => Arc::clone(cache),
            Self::Arrow => Arc::default(),
        };
        let options = RowOptions::of_manifest(&stores.list_options().manifest);
        Ok(Some(Box::new(RowSource::open_cached(stores, source.clone(), &options, cache)?)))
    }

    fn extension(&self) -> &'static str {
        match self {
            Self::Parquet(_) => "parquet",
            Self::Arrow => "arrow",
        }
    }

    fn index(&self, stores: &Stores, source: &Source) -> Result<Option<FilePart>, ReadError> {
        let Self::Parquet(cache) = self else { return Ok(None) };
        if !is_parquet(source)? {
            return Ok(None);
        }
        let options = RowOptions::of_manifest(&stores.list_options().manifest);
        let cache = Arc::clone(cache);
        let opened = RowSource::open_cached(stores, source.clone(), &options, cache)?;
        let samples = opened.sample_count();
        Ok(Some(FilePart { samples, bytes: opened.to_part()? }))
    }

    fn open_part(
        &self,
        stores: &Stores,
        source: &Source,
        part: &[u8],
    ) -> Result<Box<dyn SampleSource>, ReadError> {
        let cache = match self {
            Self::Parquet(cache) => Arc::clone(cache),
            Self::Arrow => Arc::default(),
        };
        Ok(Box::new(RowSource::open_part(stores, source.clone(), cache, part)?))
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
    let parquet = Format::Parquet(Arc::default());
    stores.with_format(Arc::new(parquet)).with_format(Arc::new(Format::Arrow))
}
