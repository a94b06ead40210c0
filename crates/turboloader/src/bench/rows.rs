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

/// Writes what epoch 0 holds, one JSON object on a line.
pub(super) fn write(loader: &Loader, path: &Path, force: bool) -> Result<(), Failure> {
    let config = loader.config();
    let first = u64::from(config.shard.rank) * config.batch_size as u64;
    write_file(path, force, |out| {
        for batch in loader.epoch(0) {
            let batch = batch.map_err(io::Error::other)?;
            let contents = Contents::of(&batch, config);
            for row in 0..batch.len() {
                let line = Row {
                    batch: batch.number(),
                    row: first + row as u64,
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
    })
}
