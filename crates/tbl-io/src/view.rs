//! The mapping that a file's views are slices of, made when the first view is asked for.

use std::sync::OnceLock;

use crate::error::ReadError;
use crate::mmap::Mapped;
use crate::source::Source;

/// A whole file, mapped once a view of it is asked for. Only addresses are spent on it: pages come
/// and go with the page cache, though those in use count as the process's resident memory.
#[derive(Debug, Default)]
pub(crate) struct ViewMap(OnceLock<Option<Mapped>>);

impl ViewMap {
    /// `len` bytes of `source`, which is always the same one, from `offset` on. `None` when the
    /// file cannot be mapped: there are more mappings than the handler's table holds, or the file
    /// system has none.
    pub(crate) fn view(
        &self,
        source: &Source,
        offset: u64,
        len: u64,
    ) -> Result<Option<&[u8]>, ReadError> {
        let map = self.0.get_or_init(|| Mapped::new(source, 0, source.len()).ok());
        map.as_ref().map(|map| map.slice(offset, len)).transpose()
    }
}
