//! The fields of a row.

use tbl_io::ReadError;

use super::RowSource;
use crate::file::RowPlace;
use crate::roles::{FieldColumn, FieldValues, ImageColumn};
use crate::text;
use crate::values::Value;

impl RowSource {
    /// The bytes of a field, unless it is null or nobody wants it.
    pub(super) fn read_field(
        &self,
        column: &FieldColumn,
        row: RowPlace,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let name = column.name.as_bytes();
        // The size is known once the page is decoded, which is not worth it for other columns.
        if !is_wanted(name, 0) {
            return Ok(None);
        }
        let values = match &column.values {
            FieldValues::Single(values) => *values,
            FieldValues::Nested(node) => {
                let json = self.file.json(node, row)?;
                return Ok(json.filter(|json| is_wanted(name, json.len() as u64)));
            }
        };
        let leaf = self.file.schema().leaf(values.bytes);
        let value = self.with_value(values.bytes, row, |value| {
            let value = value?;
            // Without a copy of bytes that nobody wants.
            if let Value::Bytes(bytes) = value {
                let is_wanted = is_wanted(name, bytes.len() as u64);
                return is_wanted.then(|| text::field(leaf, value));
            }
            let bytes = text::field(leaf, value);
            is_wanted(name, bytes.len() as u64).then_some(bytes)
        })?;
        if value.is_some() || values.path.is_none() {
            return Ok(value);
        }
        self.field_file(name, values, row, is_wanted)
    }

    /// The bytes of a field that is a file of its own.
    fn field_file(
        &self,
        name: &[u8],
        values: ImageColumn,
        row: RowPlace,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let is_null = self.with_value(values.bytes, row, |value| value.is_none())?;
        if !is_null || self.path(values, row)?.is_none() {
            return Ok(None);
        }
        let source = self.own_file(values, row, 0)?;
        if !is_wanted(name, source.len()) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        source.read_range_into(0, source.len(), &mut bytes)?;
        Ok(Some(bytes))
    }
}
