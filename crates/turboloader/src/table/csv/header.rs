//! Names of a header as columns: `v.0`, `v.1` and so on are the slots of the vector `v`.

use std::collections::HashSet;
use std::ops::Range;

use super::error::{CsvError, shown};

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
///
/// # Errors
/// [`CsvError::Slot`] for a slot of a vector that is apart from the others: `v.0,a,v.1` and
/// `v.1,v.0` are hardly meant to be three columns and two.
pub(super) fn columns<'h>(
    names: impl Iterator<Item = &'h str>,
) -> Result<Vec<CsvColumn>, CsvError> {
    let mut columns: Vec<CsvColumn> = Vec::new();
    for (field, name) in names.enumerate() {
        let mut column =
            CsvColumn { name: name.to_owned(), fields: field..field + 1, is_vector: false };
        if let Some((vector, slot)) = slot_of(name) {
            match columns.last_mut() {
                Some(last)
                    if slot > 0
                        && last.is_vector
                        && last.name == vector
                        && slot == last.fields.len() =>
                {
                    last.fields.end += 1;
                    continue;
                }
                _ if slot == 0 => (column.name, column.is_vector) = (vector.to_owned(), true),
                _ => {}
            }
        }
        columns.push(column);
    }
    let vectors: HashSet<&str> =
        columns.iter().filter(|column| column.is_vector).map(|column| &*column.name).collect();
    let singles = columns.iter().filter(|column| !column.is_vector);
    let mut slots = singles.filter_map(|column| Some((column, slot_of(&column.name)?.0)));
    match slots.find(|(_, vector)| vectors.contains(vector)) {
        None => Ok(columns),
        Some((column, vector)) => {
            Err(CsvError::Slot { name: shown(&column.name), vector: shown(vector) })
        }
    }
}

/// The vector and the number that the name of a slot has.
fn slot_of(name: &str) -> Option<(&str, usize)> {
    let (vector, slot) = name.rsplit_once('.')?;
    let has_leading_zero = slot.len() > 1 && slot.starts_with('0');
    let is_number = !has_leading_zero && slot.bytes().all(|byte| byte.is_ascii_digit());
    Some((vector, slot.parse().ok().filter(|_| is_number)?))
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
        let names = ["a", "v.0", "v.1", "v.2", "w.0", "b.1", "x.y.0", "x.y.1", "z.00"];
        let expected = [
            ("a", 1, false),
            ("v", 3, true),
            ("w", 1, true),
            ("b.1", 1, false),
            ("x.y", 2, true),
            ("z.00", 1, false),
        ];
        let found = columns(names.into_iter()).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|column| (column.name.as_str(), column.fields.len(), column.is_vector))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn slots_apart_from_their_vector_are_refused() {
        let check = |names: &[&str], name: &str| {
            let error = columns(names.iter().copied()).unwrap_err();
            assert_eq!(error, CsvError::Slot { name: name.into(), vector: "v".into() });
        };
        check(&["v.1", "v.0"], "v.1");
        check(&["v.0", "a", "v.1"], "v.1");
        check(&["v.0", "v.2"], "v.2");
        // Programs name columns of one name so: slot 0 is missing.
        assert_eq!(columns(["a", "a.1", "a.2"].into_iter()).unwrap().len(), 3);
    }
}
