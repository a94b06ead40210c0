//! The first pass over a CSV file: what types take all cells of a column, and its categories.
//!
//! `arrow-csv` infers other types: `007` and `+5` become numbers there, which would not come back, and
//! texts become dates.

use std::collections::HashMap;

use idv_format::{Codec, Item, Key, NewColumn, NewMetadata, Number, Values, Vector, Vectors};

use super::cells::{KEY_NUMBER, boolean};
use super::header::CsvColumn;
use super::schema::CellType;

/// Whole numbers up to here are exact as `f64`.
const MAX_EXACT: u64 = 1 << 53;

/// The statistics of a column's cells.
#[derive(Debug)]
pub(super) enum Survey {
    /// Its type is known.
    Known(Item),
    /// Texts in the order in which they were first seen.
    Categories(Box<Categories>),
    /// Its cells tell.
    Cells(Cells),
}

impl Survey {
    pub(super) fn new(cell_type: Option<CellType>) -> Self {
        match cell_type {
            Some(CellType::Item(item)) => Self::Known(item),
            Some(CellType::Categories) => Self::Categories(Box::default()),
            None => Self::Cells(Cells::default()),
        }
    }

    /// Whether the cells have to be looked at.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Self::Known(_))
    }

    /// Looks at a cell. `false` when there are too many categories.
    pub(super) fn see(&mut self, cell: &str) -> bool {
        match self {
            Self::Known(_) => {}
            Self::Categories(categories) => return categories.see(cell),
            Self::Cells(cells) => cells.see(cell),
        }
        true
    }

    /// The storage of the column's single values.
    pub(super) fn item(&self) -> Item {
        match self {
            Self::Known(item) => item.clone(),
            Self::Categories(categories) => {
                let count = (categories.texts.len() as u64).max(1);
                Item::Key(Key { number: KEY_NUMBER, count, min: 0 })
            }
            Self::Cells(cells) => cells.item(),
        }
    }

    /// The column to be written.
    pub(super) fn new_column(&self, column: &CsvColumn) -> NewColumn {
        let item = self.item();
        let codec = match column.slots() {
            None => Codec::Item(item),
            Some(slots) => Codec::Vector(Vector { item, dimensions: vec![slots] }),
        };
        let mut new = NewColumn::new(column.name.clone(), codec);
        if let Self::Categories(categories) = self {
            new.metadata.extend(categories.metadata());
        }
        new
    }
}

/// The categories of a column.
#[derive(Debug, Default)]
pub(super) struct Categories {
    texts: Vec<String>,
    keys: HashMap<String, u32>,
}

impl Categories {
    fn see(&mut self, cell: &str) -> bool {
        if cell.is_empty() || self.keys.contains_key(cell) {
            return true;
        }
        // A vector, as which they are stored, has up to 2^31 - 1 slots.
        let key = u32::try_from(self.texts.len() + 1).ok();
        let Some(key) = key.filter(|&key| i32::try_from(key).is_ok()) else { return false };
        self.texts.push(cell.to_owned());
        self.keys.insert(cell.to_owned(), key);
        true
    }

    /// The key of a cell: 0, which is missing, for an empty one.
    pub(super) fn key(&self, cell: &str) -> Option<u32> {
        if cell.is_empty() { Some(0) } else { self.keys.get(cell).copied() }
    }

    fn metadata(&self) -> Option<NewMetadata> {
        let length = u32::try_from(self.texts.len()).ok().filter(|&length| length > 0)?;
        let texts = self.texts.iter().map(|text| Some(text.as_str())).collect();
        let codec = Codec::Vector(Vector { item: Item::Text, dimensions: vec![length] });
        let value = Values::Vector(Vectors::dense(length, 1, Values::Text(texts)));
        Some(NewMetadata { kind: "KeyValues".to_owned(), codec, value })
    }
}

/// The type of cells.
#[derive(Debug)]
pub(super) struct Cells {
    some: bool,
    empty: bool,
    booleans: bool,
    integers: bool,
    decimals: bool,
}

impl Default for Cells {
    fn default() -> Self {
        Self { some: false, empty: false, booleans: true, integers: true, decimals: true }
    }
}

impl Cells {
    fn see(&mut self, cell: &str) {
        if cell.is_empty() {
            self.empty = true;
            return;
        }
        self.some = true;
        self.booleans &= boolean(cell).is_some();
        if !self.decimals && !self.integers {
            return;
        }
        // `007` and `+5` are not numbers: they would not come back.
        let integer = cell.parse::<i64>().ok().filter(|number| number.to_string() == cell);
        self.integers &= integer.is_some();
        self.decimals &= match integer {
            Some(number) => number.unsigned_abs() <= MAX_EXACT,
            None => is_decimal(cell),
        };
    }

    fn item(&self) -> Item {
        match *self {
            Self { some: false, .. } => Item::Text,
            Self { booleans: true, empty: true, .. } => Item::MissingBoolean,
            Self { booleans: true, .. } => Item::Boolean,
            Self { integers: true, empty: false, .. } => Item::Number(Number::Int64),
            Self { decimals: true, .. } => Item::Number(Number::Double),
            _ => Item::Text,
        }
    }
}

/// A number with a point or an exponent, or one that this crate writes differently.
fn is_decimal(cell: &str) -> bool {
    if matches!(cell, "NaN" | "inf" | "-inf") {
        return true;
    }
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let has_leading_zero = digits.starts_with('0') && !digits.starts_with("0.");
    digits.starts_with(|first: char| first.is_ascii_digit())
        && !has_leading_zero
        && cell.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cells: &[&str], expected: &Item) {
        let mut seen = Cells::default();
        cells.iter().for_each(|cell| seen.see(cell));
        assert_eq!(&seen.item(), expected, "{cells:?}");
    }

    #[test]
    fn types_take_all_cells() {
        let integer = Item::Number(Number::Int64);
        let decimal = Item::Number(Number::Double);
        check(&[], &Item::Text);
        check(&["", ""], &Item::Text);
        check(&["true", "False"], &Item::Boolean);
        check(&["true", ""], &Item::MissingBoolean);
        check(&["1", "-9223372036854775808"], &integer);
        check(&["1", ""], &decimal);
        check(&["1", "2.5", "-1e300", "NaN", "-inf"], &decimal);
        check(&["0.5", "-0.25", "0"], &decimal);
        for text in ["007", "+5", "1e999", "-", ".5", "0x10", "infinity", "nan", "1 ", "true"] {
            check(&["1", text], &Item::Text);
        }
        // A number too large for `f64`, next to an empty cell.
        check(&["9007199254740993", ""], &Item::Text);
    }
}
