//! Metadata of a whole file that the command line adds.

use std::io::Read;
use std::path::Path;

use serde::de::IgnoredAny;
use tbl_format::metadata::MetadataType;
use tbl_io::MetadataBlock;

use crate::failure::Failure;

/// The most JSON that is read: far above a description, far below what a reader refuses.
const MAX_BYTES: u64 = 64 << 20;

/// The file at `path`, which holds one JSON value, as a block.
pub(super) fn read(path: &Path) -> Result<MetadataBlock, Failure> {
    let failed = |source| Failure::Io { path: path.to_owned(), source };
    let file = tbl_io::open_file(path)?;
    let mut data = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut data).map_err(failed)?;
    if data.len() as u64 > MAX_BYTES {
        return Err(Failure::Usage { what: "--metadata takes at most 64 MiB of JSON" });
    }
    serde_json::from_slice::<IgnoredAny>(&data).map_err(|error| failed(error.into()))?;
    Ok(MetadataBlock { kind: MetadataType::Json, data })
}
