//! Samples that are copied from mapped files.

use tbl_io::{ReadError, SampleSourceExt, is_transient};

use super::Dataset;

impl Dataset {
    /// As [`read_into`](Self::read_into), by copying from the mapped file if there is one: half the
    /// time if the page cache has the bytes.
    ///
    /// # Errors
    /// As for [`read_into`](Self::read_into).
    pub(crate) fn copy_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let (source, local) = self.locate(index)?;
        let view = match source.view(local) {
            // A page could not be read, so that the mapping is lost. The file is not.
            Err(error) if is_transient(&error) => None,
            view => view?,
        };
        let Some(view) = view else { return source.read_into(local, bytes) };
        bytes.clear();
        bytes.try_reserve(view.len()).map_err(|_| {
            let limit = bytes.capacity() as u64;
            let need = view.len() as u64;
            let location = source.location().clone();
            let what = "bytes to hold in memory";
            ReadError::Limit { location, what, limit, need }.for_sample(local, None)
        })?;
        bytes.extend_from_slice(view);
        // Pages that were not there were copied as zeros, which a checksum would take for damage.
        match source.view(local) {
            Err(error) if is_transient(&error) => source.read_into(local, bytes),
            view => view.and_then(|_| source.unpack(local, bytes)),
        }
    }
}
