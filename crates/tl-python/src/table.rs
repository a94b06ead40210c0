//! IDV files and TBF segments, which the feature `tables` adds.
#![expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]

mod error;
mod idv;
mod tbf;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tbl_io::{Location, Source};
use tl_pipeline::TableKind;
use turboloader::{CsvSchema, TableConversion, TableEvent, TableFormat, TimeUnit};

use crate::convert::{Heard, warn_each};
use crate::detached::detached;
use crate::error::Error;
use crate::remote::{DataStores, StoreSettings};

pub(crate) use error::error_of;
pub(crate) use idv::PyIdvFile;
pub(crate) use tbf::PyTbfSegment;
pub(crate) use tbf::write::{PyTbfWriter, find_tbf};

/// Opens a table's file, or its object in a store.
fn open_file(path: &Path, stores: Option<&StoreSettings>) -> Result<Source, Error> {
    let stores = DataStores::new(stores.unwrap_or(&StoreSettings::default()))?.stores();
    match stores.open_file(path)? {
        Some(source) => Ok(source),
        None if Location::new(path).url().is_none() => Ok(Source::open(path)?),
        // The query of the URL may be secret.
        None => Err(Error::setting(&"the URL of a folder, expected that of a file")),
    }
}

/// The findings of a check of a table.
pub(crate) struct TableFindings {
    pub(crate) rows: u64,
    pub(crate) damage: Vec<String>,
    pub(crate) oddities: Vec<String>,
    /// Encrypted regions.
    pub(crate) not_verified: Vec<String>,
}

/// Reads every block or every region.
pub(crate) fn verify(
    py: Python<'_>,
    source: Source,
    kind: TableKind,
) -> PyResult<Bound<'_, PyDict>> {
    let found = detached(py, || -> Result<_, Error> {
        Ok(match kind {
            TableKind::Idv => {
                let file = PyIdvFile::open(source)?;
                let (damage, oddities) = file.damage();
                TableFindings { rows: file.rows(), damage, oddities, not_verified: Vec::new() }
            }
            TableKind::Tbf => PyTbfSegment::verify(&source)?,
        })
    })??;
    let TableFindings { rows, damage, oddities, not_verified } = found;
    let result = PyDict::new(py);
    result.set_item("samples", rows)?;
    result.set_item("is_good", damage.is_empty() && not_verified.is_empty())?;
    result.set_item("bad", PyList::empty(py))?;
    result.set_item("damage", damage)?;
    result.set_item("oddities", oddities)?;
    result.set_item("not_verified", not_verified)?;
    Ok(result)
}

/// Converts a table: an IDV file from or to CSV and Parquet, or into another IDV file, or a TBF
/// segment from or to these. Returns how many rows there are.
#[pyfunction]
#[pyo3(signature = (
    source, destination, *, to=None, columns: "list[str] | None" = None,
    schema: "list[str] | None" = None, time_unit="us", overwrite=false, sync=true,
    progress_callback: "Callable[[int, int], Any] | None" = None
))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn convert_table(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    to: Option<&str>,
    columns: Option<Vec<String>>,
    schema: Option<Vec<String>>,
    time_unit: &str,
    overwrite: bool,
    sync: bool,
    progress_callback: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let to = match to.map(str::to_ascii_lowercase).as_deref() {
        None => None,
        Some("idv") => Some(TableFormat::Idv),
        Some("csv") => Some(TableFormat::Csv),
        Some("parquet") => Some(TableFormat::Parquet),
        Some("tbf") => Some(TableFormat::Tbf),
        Some(to) => {
            let message = format!("to is {to}, expected idv, csv, parquet or tbf for a table");
            return Err(Error::setting(&message).into());
        }
    };
    let time_unit = match time_unit {
        "us" => TimeUnit::Microseconds,
        "ns" => TimeUnit::Nanoseconds,
        _ => return Err(Error::setting(&"the unit of times is us or ns").into()),
    };
    let schema = CsvSchema::parse(&schema.unwrap_or_default())
        .map_err(|error| Error::setting(&format_args!("schema: {error}")))?;
    let columns = columns.unwrap_or_default();
    let conversion =
        TableConversion { to, columns, schema, time_unit, overwrite, sync, ..Default::default() };
    let mut heard = Heard::new(progress_callback);
    let mut notes = Vec::new();
    let summary = detached(py, || {
        let summary = conversion.run(&source, &destination, &mut |event| {
            match event {
                TableEvent::Progress { done, total } => return heard.tell(done, total),
                TableEvent::LeftOut(note) => notes.push(format!("{}: {note}", source.display())),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        summary.map_err(Error::from)
    })?;
    let summary = heard.unless_raised(summary)?;
    warn_each(py, &notes)?;
    Ok(summary.rows)
}
