//! The labels of all rows, from one pass over their column.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tbl_io::{Escaped, ReadError, RowsDefect};

use crate::roles::LabelColumn;
use crate::rows::RowFile;
use crate::schema::{Meaning, Physical};
use crate::text;
use crate::thrift::Flaw;
use crate::values::Value;

/// The labels of rows.
#[derive(Debug, Default)]
pub(crate) struct RowLabels {
    /// By row, -1 for null; empty without labels.
    pub(crate) labels: Vec<i64>,
    pub(crate) class_names: Vec<String>,
    /// True if the file has a list of its class names.
    pub(crate) is_declared: bool,
}

/// The label of a row without one.
const NULL: i64 = -1;

/// The most classes that texts give: more are not classes but texts.
const MAX_CLASSES: usize = 1 << 20;

impl RowLabels {
    /// Reads the column: 8 bytes for each row. Texts are classes in sorted order.
    pub(crate) fn read(file: &dyn RowFile, column: &LabelColumn) -> Result<Self, ReadError> {
        let mut labels = Vec::new();
        let mut classes = BTreeMap::new();
        let leaf = file.schema().leaf(column.leaf);
        let is_unsigned = leaf.meaning == Meaning::Unsigned && leaf.physical == Physical::Int32;
        file.each_value(column.leaf, &mut |value, offset| {
            let error = |defect| Err(file.error(Flaw::new(offset, defect)));
            labels.push(match value {
                None => NULL,
                Some(Value::Integer(label)) if is_unsigned => text::low_half(label),
                Some(Value::Integer(label)) => label,
                Some(Value::Boolean(label)) => label.into(),
                Some(Value::Bytes(text)) => {
                    let next = classes.len();
                    if next >= MAX_CLASSES && !classes.contains_key(text) {
                        let what = "number of classes";
                        let found = next as u64 + 1;
                        let limit = MAX_CLASSES as u64;
                        return error(RowsDefect::TooLarge { what, found, limit });
                    }
                    class(&mut classes, text)
                }
                Some(Value::Float(_) | Value::Double(_)) => {
                    return error(RowsDefect::Damaged { what: "labels" });
                }
            });
            Ok(ControlFlow::Continue(()))
        })?;
        if classes.is_empty() {
            let is_declared = !column.names.is_empty();
            return Ok(Self { labels, class_names: column.names.clone(), is_declared });
        }
        let mut places = vec![NULL; classes.len()];
        for (place, &first) in (0..).zip(classes.values()) {
            places[first] = place;
        }
        let place = |label: &i64| usize::try_from(*label).ok().and_then(|label| places.get(label));
        let labels = labels.iter().map(|label| place(label).copied().unwrap_or(NULL)).collect();
        let class_names = classes.keys().map(|name| Escaped(name).to_string()).collect();
        Ok(Self { labels, class_names, is_declared: false })
    }
}

/// The number of a class, by the order in which classes are found.
fn class(classes: &mut BTreeMap<Vec<u8>, usize>, text: &[u8]) -> i64 {
    let next = classes.len();
    let number = match classes.get(text) {
        Some(&number) => number,
        None => *classes.entry(text.to_vec()).or_insert(next),
    };
    i64::try_from(number).unwrap_or(i64::MAX)
}
