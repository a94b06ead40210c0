//! The part of a Parquet file in a shard index.

use tbl_format::FormatError;
use tbl_format::shard_index::push_number;
use tbl_io::{ReadError, ReadLimits, Source, Stores};

use super::RowSource;
use crate::file::ParquetFile;
use crate::options::RowOptions;
use crate::places::Places;
use crate::roles::Roles;
use crate::rows::RowFile;

impl RowSource {
    /// As [`open`](Self::open), with what is known by the `part` of the file in a shard
    /// index.
    pub(crate) fn open_part(
        stores: &Stores,
        source: Source,
        part: &[u8],
    ) -> Result<Self, ReadError> {
        let file = ParquetFile::open(source, ReadLimits::default())?;
        file.check_rows()?;
        let defect = |source| {
            let location = file.source().location().clone();
            ReadError::Format { location, offset: 0, source }
        };
        let mut part = Places::reader(part);
        let stored = part.number().map_err(defect)?;
        let computed = file.footer_crc32c();
        if stored != u64::from(computed) {
            let stored = u32::try_from(stored).map_err(|_| defect(part.unreadable()))?;
            let what = "footer of the Parquet file";
            return Err(defect(FormatError::Crc32c { what, stored, computed }));
        }
        let leaf = usize::try_from(part.number().map_err(defect)?).unwrap_or(usize::MAX);
        let mut columns = file.footer().schema.columns().iter();
        let column = columns.find(|column| column.leaves.contains(&leaf));
        let column = column.ok_or_else(|| defect(part.unreadable()))?;
        let mut options = RowOptions::of_manifest(&stores.list_options().manifest);
        // Without looking at values for the column of images.
        options.image.get_or_insert_with(|| column.name.clone());
        let roles = Roles::find(&file, &options)?;
        let is_indexed = roles.image.bytes == leaf;
        if is_indexed {
            file.places(leaf).read_part(&file, &mut part).map_err(defect)?;
            part.finish().map_err(defect)?;
        }
        Self::of_file(Box::new(file), stores, &options, roles, is_indexed)
    }

    /// The part of the file in a shard index: the checksum of its footer, the column of images, and the places of its values. Reads
    /// all pages of the column.
    pub(crate) fn to_part(&self) -> Result<Vec<u8>, ReadError> {
        let mut part = Vec::new();
        let leaf = self.roles.image.bytes;
        if let Some(file) = self.file.parquet() {
            push_number(&mut part, file.footer_crc32c().into());
            push_number(&mut part, leaf as u64);
            file.places(leaf).push_to(file, &mut part)?;
        }
        Ok(part)
    }
}
