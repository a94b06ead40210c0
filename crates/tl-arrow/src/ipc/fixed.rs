//! The lists of one length in a schema of Arrow, which writers of Parquet files keep in their metadata.

use std::collections::HashMap;

use crate::ipc::message::{Frame, Message};
use crate::ipc::schema::{Field, Kind};

/// By column, the dimensions of its lists.
#[derive(Debug, Default)]
pub(crate) struct FixedLists(HashMap<String, Vec<usize>>);

impl FixedLists {
    /// The lists of one length among columns.
    pub(super) fn of_fields(fields: &[Field]) -> Self {
        let list = |field: &Field| Some((field.name.clone(), dimensions(field)?));
        Self(fields.iter().filter_map(list).collect())
    }

    /// The dimensions of the lists of a column; `None` if they have none.
    pub(crate) fn of(&self, column: &str) -> Option<Vec<usize>> {
        self.0.get(column).cloned()
    }
}

/// The lists of one length in `message`, which has a schema; none if it cannot be read, because the
/// columns can be read without it.
pub(crate) fn fixed_lists(message: &[u8]) -> FixedLists {
    let Ok(Some(frame)) = Frame::parse(message, 0) else { return FixedLists::default() };
    let range = usize::try_from(frame.metadata).ok().zip(usize::try_from(frame.end()).ok());
    let metadata = range.and_then(|(start, end)| message.get(start..end));
    let parsed = metadata.map(|metadata| Message::parse(metadata, frame.metadata));
    let Some(Ok(Message::Schema(columns))) = parsed else { return FixedLists::default() };
    FixedLists::of_fields(&columns.fields)
}

fn dimensions(field: &Field) -> Option<Vec<usize>> {
    let Kind::FixedList { len } = field.kind else { return None };
    let len = usize::try_from(len).ok()?;
    let inner = field.children.first().and_then(dimensions).unwrap_or_default();
    Some([vec![len], inner].concat())
}
