//! Tables: IDV files and TBF segments, which commands read in addition to data sets of samples.
//!
//! A table is recognised by its first bytes, or by its name where those are damaged. Everything
//! here is
//! there with the feature `tables`: commands of tables alone, and what others do with a table.

pub(crate) mod cat;
pub(crate) mod compact;
pub(crate) mod convert;
pub(crate) mod digest;
pub(crate) mod edges;
mod failure;
pub(crate) mod find;
mod idv;
pub(crate) mod info;
mod key;
mod lines;
pub(crate) mod ls;
pub(crate) mod merge;
mod node;
mod rows;
mod segment;
mod value;
pub(crate) mod verify;

use std::path::Path;

use tbl_io::Source;
use tl_pipeline::TableKind;

use crate::args::GlobalArgs;
use crate::data_set;
use crate::failure::Failure;

pub(crate) use failure::TableFailure;
pub(crate) use idv::{BadRows, IdvTable};
pub(crate) use key::read_key;
pub(crate) use lines::{Heading, Sheet, row_heading};
pub(crate) use node::{NodeColumn, Nodes};
pub(crate) use rows::{RowFacts, RowTable};
pub(crate) use segment::{SegmentFile, dtype_name, oddity_text};
pub(crate) use value::{Cell, Row, Single, idv_heading};

/// A file that is a table.
#[derive(Debug)]
pub(crate) enum Table {
    /// An IDV file.
    Idv(IdvTable),
    /// A TBF segment, mapped and not yet looked at.
    Segment(SegmentFile),
    /// A Parquet file without images, or arrays.
    Rows(RowTable),
}

impl Table {
    /// Opens a table; `None` for a path that is something else, and for several.
    pub(crate) fn open<P: AsRef<Path>>(
        global: &GlobalArgs,
        paths: &[P],
    ) -> Result<Option<Self>, Failure> {
        let [path] = paths else { return Ok(None) };
        let path = path.as_ref();
        let Some(source) = data_set::single_file(global, path)? else { return Ok(None) };
        Self::of(global, path, source)
    }

    /// The table that an open file is; `None` for other files. A file in a store is opened once for all
    /// questions.
    pub(crate) fn of(
        global: &GlobalArgs,
        path: &Path,
        source: Source,
    ) -> Result<Option<Self>, Failure> {
        let Some(kind) = TableKind::of(&source)? else {
            return Ok(RowTable::open(global, path, &source)?.map(Self::Rows));
        };
        Ok(Some(match kind {
            TableKind::Idv => Self::Idv(IdvTable::open(path, source)?),
            TableKind::Tbf => Self::Segment(SegmentFile::open(path, &source)?),
        }))
    }
}
