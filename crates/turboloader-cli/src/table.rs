//! Tables: IDV files and TBF segments, which commands understand beside data sets of samples.
//!
//! A table is told by its first bytes, or by its name where those are damaged.

mod failure;
mod idv;
mod key;
mod lines;
mod node;
mod segment;
mod value;

use std::path::Path;

use tbl_io::Source;
use tl_pipeline::TableKind;

use crate::failure::Failure;

pub(crate) use failure::TableFailure;
pub(crate) use idv::{BadRows, IdvTable};
pub(crate) use key::read_key;
pub(crate) use lines::{Heading, Sheet, row_heading};
pub(crate) use node::{NodeColumn, Nodes};
pub(crate) use segment::{SegmentFile, dtype_name, oddity_text};
pub(crate) use value::{Cell, Row, Single, idv_heading};

/// A file that is a table.
#[derive(Debug)]
pub(crate) enum Table {
    /// An IDV file.
    Idv(IdvTable),
    /// A TBF segment, mapped and not yet looked at.
    Segment(SegmentFile),
}

impl Table {
    /// Opens a table; `None` for a path that is something else.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Failure> {
        let Some((kind, source)) = sniff(path)? else { return Ok(None) };
        Ok(Some(match kind {
            TableKind::Idv => Self::Idv(IdvTable::open(path, source)?),
            TableKind::Tbf => Self::Segment(SegmentFile::open(path, &source)?),
        }))
    }
}

/// Whether a path is a table, and which. Where it is not, the reader of data sets says what is
/// wrong with it.
fn sniff(path: &Path) -> Result<Option<(TableKind, Source)>, Failure> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    let Some(source) = turboloader::stores().open_file(path)? else { return Ok(None) };
    let kind = TableKind::of(&source)?;
    Ok(kind.map(|kind| (kind, source)))
}

/// What to say where samples were wanted and opening `paths` failed: if one is a table, that.
pub(crate) fn or_no_samples<P: AsRef<Path>>(paths: &[P], failure: impl Into<Failure>) -> Failure {
    let refused = paths.iter().find_map(|path| refuse(path.as_ref()).err());
    refused.unwrap_or_else(|| failure.into())
}

/// Refuses a table where only a data set of samples will do.
pub(crate) fn refuse(path: &Path) -> Result<(), Failure> {
    // Whoever opens the data set says what else is wrong.
    let Ok(Some((kind, _))) = sniff(path) else { return Ok(()) };
    let kind = kind.name().to_uppercase();
    Err(TableFailure::NoSamples { path: path.to_owned(), kind }.into())
}
