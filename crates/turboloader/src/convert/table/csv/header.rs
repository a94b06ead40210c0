//! Names of a header as columns: `v.0`, `v.1` and so on are the slots of the vector `v`.

use std::ops::Range;

/// A column and where its fields are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvColumn {
    pub(super) name: String,
    /// One, unless it is a vector.
    pub(super) fields: Range<usize>,
    pub(super) is_vector: bool,
}

impl CsvColumn {
    /// How many slots its vectors have; `None` when it has single values.
    pub(super) fn slots(&self) -> Option<u32> {
        self.is_vector.then(|| u32::try_from(self.fields.len()).unwrap_or(u32::MAX))
    }
}

/// The columns of a header. Slots count from 0, one after the other.
pub(super) fn columns<'h>(names: impl Iterator<Item = &'h str>) -> Vec<CsvColumn> {
    let mut columns: Vec<CsvColumn> = Vec::new();
    for (field, name) in names.enumerate() {
        let slot = name.rsplit_once('.');
        if let Some((vector, slot)) = slot {
            if slot == "0" {
                let name = vector.to_owned();
                columns.push(CsvColumn { name, fields: field..field + 1, is_vector: true });
                continue;
            }
            if let Some(last) = columns.last_mut()
                && last.is_vector
                && last.name == vector
                && slot == last.fields.len().to_string()
            {
                last.fields.end += 1;
                continue;
            }
        }
        let name = name.to_owned();
        columns.push(CsvColumn { name, fields: field..field + 1, is_vector: false });
    }
    columns
}

/// The name of a slot.
pub(super) fn slot_name(vector: &str, slot: u32) -> String {
    format!("{vector}.{slot}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_in_a_row_are_a_vector() {
        let names = ["a", "v.0", "v.1", "v.2", "w.0", "b.1", "v.3", "x.y.0", "x.y.1", "z.00"];
        let expected = [
            ("a", 1, false),
            ("v", 3, true),
            ("w", 1, true),
            ("b.1", 1, false),
            ("v.3", 1, false),
            ("x.y", 2, true),
            ("z.00", 1, false),
        ];
        let found = columns(names.into_iter());
        let found: Vec<_> = found
            .iter()
            .map(|column| (column.name.as_str(), column.fields.len(), column.is_vector))
            .collect();
        assert_eq!(found, expected);
    }
}
