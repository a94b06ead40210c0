//! The columns of a file: one for each field that any sample has.
//!
//! Numbers and images need another column than bytes, so one pass over the fields comes before the
//! first row. It reads the first value of each field, and those of fields that were numbers so far.

use std::collections::HashMap;

use tbl_format::SampleFormat;
use tbl_io::{Field, Selection};

/// The most fields that become columns; those of further names are left out, and counted.
const MAX_FIELDS: usize = 1 << 12;

/// The most bytes of the text of a number.
const MAX_NUMBER: u64 = 400;

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fields: Vec<PlannedField>,
    pub(super) has_labels: bool,
}

/// A field that becomes a column.
#[derive(Debug)]
pub(super) struct PlannedField {
    pub(super) name: String,
    pub(super) kind: FieldKind,
}

/// The values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// The text of every value is that of an `i64`.
    Integer,
    /// The text of every value is that of an `f64`.
    Double,
    /// The first value is an image.
    Image,
    /// Texts or other bytes.
    Bytes,
}

impl Plan {
    /// The columns for the samples of `selection`. Damage is left to the conversion, which reports it.
    pub(super) fn of(selection: &Selection<'_>) -> Self {
        // Names without labels need a column too, and so do samples that readers would find labels for.
        let mut has_labels = !selection.class_names().is_empty()
            || selection.has_folders_for_no_labels().unwrap_or(false);
        let mut found: Vec<(String, Candidates)> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut fields: Vec<Field> = Vec::new();
        for number in 0..selection.sample_count() {
            has_labels |= matches!(selection.try_label(number), Ok(Some(_)));
            fields.clear();
            let mut is_wanted = |extension: &[u8], bytes: u64| {
                let place = match places.get(extension) {
                    Some(&place) => place,
                    None if found.len() < MAX_FIELDS => {
                        let Ok(name) = str::from_utf8(extension) else { return false };
                        found.push((name.to_owned(), Candidates::ALL));
                        places.insert(extension.to_vec(), found.len() - 1);
                        found.len() - 1
                    }
                    None => return false,
                };
                let Some((_, candidates)) = found.get_mut(place) else { return false };
                if !candidates.is_first && bytes > MAX_NUMBER {
                    (candidates.integer, candidates.double) = (false, false);
                }
                candidates.is_open()
            };
            if selection.read_fields_where(number, &mut is_wanted, &mut fields).is_err() {
                continue;
            }
            for Field { extension, bytes } in &fields {
                let place = places.get(extension);
                if let Some((_, candidates)) = place.and_then(|&place| found.get_mut(place)) {
                    candidates.add(bytes);
                }
            }
        }
        let field =
            |(name, candidates): (_, Candidates)| PlannedField { name, kind: candidates.kind() };
        Self { fields: found.into_iter().map(field).collect(), has_labels }
    }

    /// The first of these names that no field has, or a longer one.
    pub(super) fn free_name(&self, names: [&str; 2]) -> String {
        let is_free = |name: &&str| !self.fields.iter().any(|field| field.name == **name);
        if let Some(name) = names.iter().copied().find(is_free) {
            return name.to_owned();
        }
        let mut name = names[0].to_owned();
        while !is_free(&&*name) {
            name.push('_');
        }
        name
    }
}

/// The kinds that a field can still be.
#[derive(Clone, Copy, Debug)]
struct Candidates {
    is_first: bool,
    image: bool,
    integer: bool,
    double: bool,
}

impl Candidates {
    const ALL: Self = Self { is_first: true, image: false, integer: true, double: true };

    /// Whether more values have to be looked at.
    fn is_open(self) -> bool {
        self.is_first || self.integer || self.double
    }

    fn add(&mut self, value: &[u8]) {
        self.image |= self.is_first && SampleFormat::from_magic(value).is_image();
        self.is_first = false;
        self.integer &= FieldKind::Integer.number(value).is_some();
        self.double &= FieldKind::Double.number(value).is_some();
    }

    fn kind(self) -> FieldKind {
        match self {
            Self { image: true, .. } => FieldKind::Image,
            Self { is_first: true, .. } => FieldKind::Bytes,
            Self { integer: true, .. } => FieldKind::Integer,
            Self { double: true, .. } => FieldKind::Double,
            Self { .. } => FieldKind::Bytes,
        }
    }
}

impl FieldKind {
    /// The number whose only text these bytes are; `None` for other bytes, and for kinds that are not
    /// numbers.
    pub(super) fn number(self, text: &[u8]) -> Option<[u8; 8]> {
        let text = str::from_utf8(text).ok()?;
        match self {
            Self::Integer => {
                let number: i64 = text.parse().ok()?;
                (number.to_string() == text).then_some(number.to_le_bytes())
            }
            Self::Double => {
                let number: f64 = text.parse().ok()?;
                (number.to_string() == text).then_some(number.to_le_bytes())
            }
            Self::Image | Self::Bytes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tbl_io::Escaped;

    use super::*;

    fn check<V: AsRef<[u8]>>(values: &[V], expected: FieldKind) {
        let mut candidates = Candidates::ALL;
        values.iter().for_each(|value| candidates.add(value.as_ref()));
        let shown: Vec<_> =
            values.iter().map(|value| Escaped(value.as_ref()).to_string()).collect();
        assert_eq!(candidates.kind(), expected, "{shown:?}");
    }

    #[test]
    fn numbers_are_texts_that_come_back() {
        check::<&str>(&[], FieldKind::Bytes);
        check(&["1", "-7", "9223372036854775807"], FieldKind::Integer);
        check(&["1", "0.5", "1"], FieldKind::Double);
        check(&["NaN", "inf", "-0"], FieldKind::Double);
        for other in ["", "01", "+1", " 1", "1.0", "1e3", "9007199254740993.5", "a"] {
            check(&["1", other], FieldKind::Bytes);
            check(&["0.5", other], FieldKind::Bytes);
            check(&[other, "1"], FieldKind::Bytes);
        }
        // No double has this integer.
        check(&["9007199254740993", "0.5"], FieldKind::Bytes);
    }

    #[test]
    fn the_first_value_tells_an_image() {
        check(&[&b"\xff\xd8\xff\xe0"[..], b"text"], FieldKind::Image);
        check(&[&b"text"[..], b"\xff\xd8\xff\xe0"], FieldKind::Bytes);
    }
}
