//! Types that `--schema` names.

use idv_format::{Item, Key, Number};

use super::cells::KEY_NUMBER;
use super::header::CsvColumn;

/// What is wrong with `--schema`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    /// A part without a type.
    #[error("`{part}` is not NAME=TYPE")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// A type that there is not.
    #[error("column {name:?}: there is no type `{found}`")]
    UnknownType {
        /// The column's name.
        name: String,
        /// What was found.
        found: String,
    },
    /// A column that there is not.
    #[error("there is no column {name:?}")]
    NoColumn {
        /// The column's name.
        name: String,
    },
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellType {
    /// Values of a codec.
    Item(Item),
    /// Categories, named by their texts.
    Categories,
}

/// The types of some columns, by name.
#[derive(Clone, Debug)]
pub(super) struct Schema(Vec<(String, CellType)>);

impl Schema {
    /// Reads `NAME=TYPE` parts.
    pub(super) fn parse(parts: &[String]) -> Result<Self, SchemaError> {
        let pair = |part: &String| {
            let pair = part.rsplit_once('=');
            let (name, found) = pair.ok_or_else(|| SchemaError::NotAPair { part: part.clone() })?;
            let unknown = || {
                let (name, found) = (name.to_owned(), found.to_owned());
                SchemaError::UnknownType { name, found }
            };
            Ok((name.to_owned(), cell_type(found).ok_or_else(unknown)?))
        };
        Ok(Self(parts.iter().map(pair).collect::<Result<_, _>>()?))
    }

    /// The types of columns, `None` for those that are not named.
    pub(super) fn of(&self, columns: &[CsvColumn]) -> Result<Vec<Option<CellType>>, SchemaError> {
        for (name, _) in &self.0 {
            if !columns.iter().any(|column| column.name == *name) {
                return Err(SchemaError::NoColumn { name: name.clone() });
            }
        }
        let named = |column: &CsvColumn| {
            let mut types = self.0.iter().rev();
            types.find(|(name, _)| *name == column.name).map(|(_, cell_type)| cell_type.clone())
        };
        Ok(columns.iter().map(named).collect())
    }
}

fn cell_type(name: &str) -> Option<CellType> {
    if let Some(count) = name.strip_prefix("key:") {
        let count = count.parse::<u64>().ok().filter(|&count| count > 0)?;
        let number = if u32::try_from(count).is_ok() { KEY_NUMBER } else { Number::UInt64 };
        return Some(CellType::Item(Item::Key(Key { number, count, min: 0 })));
    }
    let item = match name {
        "key" => return Some(CellType::Categories),
        // Cells can be empty.
        "boolean" => Item::MissingBoolean,
        "text" => Item::Text,
        "timespan" => Item::TimeSpan,
        "datetime" => Item::DateTime,
        "datetimeoffset" => Item::DateTimeOffset,
        "rowid" => Item::RowId,
        _ => {
            let is_named = |number: &Number| number.name().to_ascii_lowercase() == name;
            Item::Number(Number::ALL.into_iter().find(is_named)?)
        }
    };
    Some(CellType::Item(item))
}
