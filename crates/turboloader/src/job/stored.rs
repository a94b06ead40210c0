//! The file of a record: the result of a task on a shard, and the identities of its files by which a
//! later run decides whether the result still holds.

use std::io::Write;

use serde::{Deserialize, Serialize};
use tbl_io::{Location, Pin, Placement, ReadError, Source, Stores, WriteError};

use super::Shard;
use super::record::{Record, Status};

/// A longer file is not one of ours.
const MAX_BYTES: u64 = 256 << 20;

/// The content of a record's file. The identities are not part of the [`Record`], because two runs of a
/// job have files of different identities and the same report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredRecord {
    /// The version of this crate, since another one may write or find something else.
    writer: String,
    /// The shard, without credentials.
    source: String,
    /// The file that the task writes, without credentials.
    output: Option<String>,
    source_identity: Option<String>,
    output_identity: Option<String>,
    /// None while the work is under way: the output may be of any run.
    result: Option<Record>,
}

impl StoredRecord {
    /// The record of work that begins.
    pub(super) fn begun(stores: &Stores, shard: &Shard) -> Self {
        Self {
            writer: env!("CARGO_PKG_VERSION").to_owned(),
            source: stores.printable(&shard.source).to_string(),
            output: shard.output.as_ref().map(|output| stores.printable(output).to_string()),
            source_identity: None,
            output_identity: None,
            result: None,
        }
    }

    /// Adds the identity of the shard's file.
    pub(super) fn identify(&mut self, source: &Source) -> Result<(), ReadError> {
        self.source_identity = identity(source)?;
        Ok(())
    }

    /// Adds the result, and the identity of the output.
    pub(super) fn complete(
        &mut self,
        stores: &Stores,
        shard: &Shard,
        result: &Record,
    ) -> Result<(), ReadError> {
        if let Some(output) = &shard.output
            && result.output.is_some()
            && let Some(file) = stores.open_existing(output)?
        {
            self.output_identity = identity(&file)?;
        }
        self.result = Some(result.clone());
        Ok(())
    }

    /// Whether both are of the same shard and the same output, so that a task may replace the output.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.source == other.source && self.output == other.output
    }

    /// The result, if it is that of the work that `asked` begins: of the same version of the source,
    /// with the same settings, and with the output that it wrote. A source without a version is always
    /// another one.
    pub(super) fn answer(
        self,
        stores: &Stores,
        shard: &Shard,
        asked: &Self,
        settings: &Record,
    ) -> Result<Option<Record>, ReadError> {
        let is_same = self.is_of(asked)
            && self.writer == asked.writer
            && self.source_identity.is_some()
            && self.source_identity == asked.source_identity;
        let Some(result) = self.result.filter(|result| is_same && result.answers(settings)) else {
            return Ok(None);
        };
        let (Some(output), Some(len)) = (&shard.output, result.output_bytes) else {
            let is_done = shard.output.is_none() || result.status == Status::Damaged;
            return Ok(is_done.then_some(result));
        };
        let Some(file) = stores.open_existing(output)? else { return Ok(None) };
        let is_there = file.len() == len && identity(&file)? == self.output_identity;
        Ok(is_there.then_some(result))
    }

    /// Reads a record; `None` if there is none that can be read.
    pub(super) fn read(stores: &Stores, location: &Location) -> Result<Option<Self>, ReadError> {
        let Some(source) = stores.open_existing(location)? else { return Ok(None) };
        if source.len() > MAX_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        source.read_range_into(0, source.len(), &mut bytes)?;
        Ok(serde_json::from_slice(&bytes).ok())
    }

    pub(super) fn write(&self, stores: &Stores, location: &Location) -> Result<(), WriteError> {
        let placement = Placement { overwrite: true, sync: true };
        let mut draft = stores.create(location, placement)?;
        let path = draft.target().to_owned();
        let fault = |source| WriteError::Io { path: path.clone(), source };
        // Keys are texts and numbers, and nothing else fails.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        draft.write_all(text.as_bytes()).map_err(fault)?;
        draft.commit().map_err(fault)
    }
}

/// Text that differs once a file has changed: for a local file its inode, length and times, for an
/// object its length and version. `None` for an object without a version, or with one that the server
/// does not promise to change with each byte.
fn identity(file: &Source) -> Result<Option<String>, ReadError> {
    if file.location().path().is_none() {
        let Pin::Version(version) = file.version()? else { return Ok(None) };
        return Ok(Some(format!("{}-{version}", file.len())));
    }
    let mut id = Vec::new();
    // Not awaited: the clock tick after which no change can have the same times.
    file.identify(&mut id);
    let mut text = String::with_capacity(2 * id.len());
    for byte in &id {
        text.push_str(&format!("{byte:02x}"));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}
