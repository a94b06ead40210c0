//! Types that are chosen for columns of a CSV file.

use std::collections::{HashMap, HashSet};

use idv_format::{Item, Key, Number};
use tbl_io::ErrorKind;
use tl_pipeline::Fault;

use super::cells::KEY_NUMBER;
use super::header::CsvColumn;

/// A defect of a [`CsvSchema`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

impl Fault for SchemaError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Setting
    }
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellType {
    /// Values of a codec.
    Item(Item),
    /// Categories, named by their texts.
    Categories,
}

/// The types of some columns of a CSV file, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvSchema {
    given: Vec<(String, CellType)>,
    /// The types of columns that are not given, if the file has the columns.
    usual: Vec<(String, CellType)>,
}

impl CsvSchema {
    /// Reads `NAME=TYPE` parts; `docs/idv.md` lists the types.
    ///
    /// # Errors
    /// [`SchemaError`] for a part that is not of this form and for an unknown type.
    pub fn parse(parts: &[String]) -> Result<Self, SchemaError> {
        let pair = |part: &String| {
            let pair = part.rsplit_once('=');
            let no_pair = || SchemaError(format!("`{part}` is not NAME=TYPE"));
            let (name, found) = pair.ok_or_else(no_pair)?;
            let unknown = || SchemaError(format!("column {name:?}: unknown type `{found}`"));
            Ok((name.to_owned(), cell_type(found).ok_or_else(unknown)?))
        };
        let given = parts.iter().map(pair).collect::<Result<_, _>>()?;
        Ok(Self { given, usual: Vec::new() })
    }

    /// The schema with types of columns that the file may have.
    #[cfg(feature = "parquet")]
    pub(in crate::table) fn with_usual<'n>(
        &self,
        usual: impl Iterator<Item = (&'n str, &'n str)>,
    ) -> Self {
        let typed = |(name, found): (&str, &str)| Some((name.to_owned(), cell_type(found)?));
        Self { given: self.given.clone(), usual: usual.filter_map(typed).collect() }
    }

    /// The types of columns, `None` for those that are not named.
    pub(super) fn of(&self, columns: &[CsvColumn]) -> Result<Vec<Option<CellType>>, SchemaError> {
        let named: HashSet<&str> = columns.iter().map(|column| &*column.name).collect();
        if let Some((name, _)) = self.given.iter().find(|(name, _)| !named.contains(&**name)) {
            return Err(SchemaError(format!("no column {name:?}")));
        }
        // The last of several types of one column counts.
        let all = self.usual.iter().chain(&self.given);
        let types: HashMap<&str, &CellType> =
            all.map(|(name, cell_type)| (&**name, cell_type)).collect();
        Ok(columns.iter().map(|column| types.get(&*column.name).copied().cloned()).collect())
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
