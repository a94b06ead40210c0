//! The rows of an epoch as a file, to be compared with those of other runs and other ranks.

use std::io;
use std::path::Path;

use serde::Serialize;
use tl_pipeline::Loader;

use super::digest::Contents;
use crate::failure::Failure;
use crate::output::write_file;
use crate::text::Hex;

/// A line of the file.
#[derive(Serialize)]
struct Row {
    batch: u64,
    /// In the global batch.
    row: u64,
    sample: u64,
    label: i64,
    valid: bool,
    sha256: Hex,
}

/// Writes what epoch 0 holds, one JSON object on a line. A row has the number of its place, also
/// after rows that were left out.
pub(super) fn write(loader: &Loader, path: &Path, force: bool) -> Result<(), Failure> {
    let config = loader.config();
    let rank = config.shard.rank as usize;
    let mut failed = None;
    let written = write_file(path, force, |out| {
        for batch in loader.epoch(0) {
            let mut failed = |error| {
                failed = Some(error);
                io::Error::from(io::ErrorKind::Other)
            };
            let batch = batch.map_err(&mut failed)?;
            let places = (0..).filter(|row| !batch.left_out().contains(row));
            let contents = Contents::of(&batch, config).map_err(failed)?;
            for (row, place) in (0..batch.len()).zip(places) {
                let line = Row {
                    batch: batch.number(),
                    row: (rank * config.batch_size + place) as u64,
                    sample: batch.indices()[row],
                    label: batch.labels()[row],
                    valid: batch.valid()[row],
                    sha256: contents.row(row),
                };
                serde_json::to_writer(&mut *out, &line)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    });
    // What is wrong with a sample is not the file's fault.
    failed.map_or(written, |error| Err(error.into()))
}
