//! The rows of an epoch as a file, to be compared with those of other runs and other ranks.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use serde::Serialize;
use tl_pipeline::{Loader, Outcome};

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
/// behind rows that were left out, as far as the audit lists those.
pub(super) fn write(loader: &Loader, path: &Path, force: bool) -> Result<(), Failure> {
    let config = loader.config();
    let (rank, world) = (u64::from(config.shard.rank), u64::from(config.shard.world));
    let (rows, positions) = (config.batch_size as u64, loader.order(0).len());
    let skipped = loader.audit().into_iter().filter(|bad| bad.outcome == Outcome::Skipped);
    let skipped: HashSet<u64> =
        skipped.filter(|bad| bad.epoch == 0).map(|bad| bad.position).collect();
    let mut failed = None;
    let written = write_file(path, force, |out| {
        for batch in loader.epoch(0) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    failed = Some(error);
                    return Err(io::ErrorKind::Other.into());
                }
            };
            let first = (batch.number() * world + rank) * rows;
            // Rows of padding are those at the start of the order.
            let is_there = |row: &u64| !skipped.contains(&((first + row) % positions));
            let places: Vec<u64> = (0..rows).filter(is_there).collect();
            let contents = Contents::of(&batch, config);
            for row in 0..batch.len() {
                let line = Row {
                    batch: batch.number(),
                    row: rank * rows + places.get(row).copied().unwrap_or(row as u64),
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
