//! Structures and lists as JSON.

use std::cell::Cell;
use std::ops::Range;

use serde_json::Value as Json;
use tbl_io::ReadError;

use crate::nested::Entry;
use crate::rows::RowFile;
use crate::schema::{Leaf, Meaning, Node, Repetition};
use crate::text;
use crate::values::Value;

/// Bytes of an element of a list: its value in a growing vector, and its text.
const ELEMENT: u64 = 64;

/// Bytes of a structure with any members: the first node of its map.
const OBJECT: u64 = 640;

/// Bytes of a member: its name and its value in the nodes of a map, half of which are free.
const MEMBER: u64 = 192;

/// The memory that the JSON of a row takes, which is at most that of a sample: a few bytes of a file can
/// state any number of elements, and the same text for all of them.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    file: &'a dyn RowFile,
    spent: Cell<u64>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(file: &'a dyn RowFile) -> Self {
        Self { file, spent: Cell::new(0) }
    }

    fn take(&self, bytes: u64) -> Result<(), ReadError> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        self.file.check_size("bytes of structures and lists as JSON", spent)
    }

    /// Takes the memory of the entries of a leaf, and of their parts.
    pub(crate) fn entries(&self, count: usize) -> Result<(), ReadError> {
        let bytes = size_of::<Entry<'_>>() + 2 * size_of::<Range<usize>>();
        self.take((count as u64).saturating_mul(bytes as u64))
    }

    pub(crate) fn element(&self) -> Result<(), ReadError> {
        self.take(ELEMENT)
    }

    pub(crate) fn object(&self) -> Result<(), ReadError> {
        self.take(OBJECT)
    }

    pub(crate) fn member(&self, name: &str) -> Result<(), ReadError> {
        self.take(MEMBER + text_bytes(name.as_bytes()))
    }

    /// A single value, whose text is paid for before it is copied.
    pub(crate) fn value(&self, leaf: &Leaf, value: Value<'_>) -> Result<Json, ReadError> {
        if let Value::Bytes(bytes) = value {
            self.take(text_bytes(bytes))?;
        }
        Ok(of_value(leaf, value))
    }
}

/// Bytes of a text and of its JSON, which may have six for a byte that is not printable ASCII.
fn text_bytes(text: &[u8]) -> u64 {
    let escaped = text.iter().filter(|byte| !matches!(byte, b' '..=b'~')).count() as u64;
    2 * text.len() as u64 + 6 * escaped
}

/// The entries of a row, leaf by leaf of a column.
pub(crate) struct Row<'a> {
    pub(crate) leaves: &'a [Leaf],
    pub(crate) entries: Vec<Vec<Entry<'a>>>,
    /// The number of the first leaf of the column.
    pub(crate) first_leaf: usize,
    pub(crate) budget: Budget<'a>,
}

/// The entries of a part of a row, leaf by leaf of a node.
type Parts = Vec<Range<usize>>;

impl Row<'_> {
    /// The JSON of a column in this row; `None` for null.
    pub(crate) fn to_json(&self, column: &Node) -> Result<Option<Vec<u8>>, ReadError> {
        let parts = self.entries.iter().map(|entries| 0..entries.len()).collect();
        let json = self.field(column, &parts)?;
        Ok((!json.is_null()).then(|| json.to_string().into_bytes()))
    }

    fn entry(&self, leaf: usize, at: usize) -> Option<&Entry<'_>> {
        self.entries.get(leaf - self.first_leaf)?.get(at)
    }

    /// The first entry of the first leaf, whose levels say what is there.
    fn first(&self, node: &Node, parts: &Parts) -> Option<&Entry<'_>> {
        let part = parts.first()?;
        if part.is_empty() { None } else { self.entry(node.leaves.start, part.start) }
    }

    /// The value of a node in its parent.
    fn field(&self, node: &Node, parts: &Parts) -> Result<Json, ReadError> {
        let is_there =
            self.first(node, parts).is_some_and(|first| first.definition >= node.definition);
        match node.repetition {
            Repetition::Repeated => self.elements(node, parts, Self::content),
            Repetition::Optional if !is_there => Ok(Json::Null),
            Repetition::Required | Repetition::Optional => self.content(node, parts),
        }
    }

    /// The value of a node that is there.
    fn content(&self, node: &Node, parts: &Parts) -> Result<Json, ReadError> {
        if node.is_leaf() {
            return self.leaf(node, parts);
        }
        if let ([elements], true) = (&*node.children, node.is_list)
            && elements.repetition == Repetition::Repeated
        {
            // Most writers have a group around the element, others the element alone.
            return match &*elements.children {
                [element] if !elements.is_list => {
                    self.elements(elements, parts, |row, _, parts| row.field(element, parts))
                }
                _ => self.elements(elements, parts, Self::content),
            };
        }
        self.budget.object()?;
        let mut object = serde_json::Map::new();
        for child in &node.children {
            let first = child.leaves.start - node.leaves.start;
            let parts = parts.get(first..first + child.leaves.len()).unwrap_or_default();
            self.budget.member(&child.name)?;
            object.insert(child.name.clone(), self.field(child, &parts.to_vec())?);
        }
        Ok(Json::Object(object))
    }

    /// The elements of a repeated node.
    fn elements(
        &self,
        node: &Node,
        parts: &Parts,
        element: impl Fn(&Self, &Node, &Parts) -> Result<Json, ReadError>,
    ) -> Result<Json, ReadError> {
        let is_empty =
            self.first(node, parts).is_none_or(|first| first.definition < node.definition);
        if is_empty {
            return Ok(Json::Array(Vec::new()));
        }
        let leaves = node.leaves.clone().zip(parts);
        let split: Vec<Parts> =
            leaves.map(|(leaf, part)| self.split(leaf, part.clone(), node.level)).collect();
        let count = split.first().map_or(0, Vec::len);
        let element_parts = |number: usize| {
            let part = |parts: &Parts| parts.get(number).cloned().unwrap_or(0..0);
            split.iter().map(part).collect()
        };
        let element = |number| {
            self.budget.element()?;
            element(self, node, &element_parts(number))
        };
        (0..count).map(element).collect::<Result<_, _>>().map(Json::Array)
    }

    /// The parts of a leaf that are elements of the list at `level`.
    fn split(&self, leaf: usize, part: Range<usize>, level: u8) -> Parts {
        let mut parts: Parts = Vec::new();
        for at in part {
            let begins = self.entry(leaf, at).is_none_or(|entry| entry.repetition <= level);
            match parts.last_mut() {
                Some(last) if !begins => last.end = at + 1,
                _ => parts.push(at..at + 1),
            }
        }
        parts
    }

    fn leaf(&self, node: &Node, parts: &Parts) -> Result<Json, ReadError> {
        let Some(value) = self.first(node, parts).and_then(|entry| entry.value) else {
            return Ok(Json::Null);
        };
        self.budget.value(&self.leaves[node.leaves.start], value)
    }
}

fn of_value(leaf: &Leaf, value: Value<'_>) -> Json {
    match value {
        Value::Boolean(value) => Json::Bool(value),
        Value::Bytes(bytes) if leaf.meaning == Meaning::Half => {
            text::half(bytes).map_or(Json::Null, |half| of_value(leaf, Value::Float(half)))
        }
        Value::Bytes(bytes) if !matches!(leaf.meaning, Meaning::Decimal(_)) => {
            Json::String(String::from_utf8_lossy(bytes).into_owned())
        }
        // No decimal, and as text any JSON.
        Value::Bytes(bytes) if bytes.len() > size_of::<i128>() => Json::Null,
        // The shortest digits of the narrow type. JSON has neither infinities nor NaN.
        Value::Float(value) => double(value.to_string().parse().unwrap_or(f64::NAN)),
        Value::Double(value) => double(value),
        Value::Integer(_) | Value::Bytes(_) => {
            serde_json::from_slice(&text::field(leaf, value)).unwrap_or(Json::Null)
        }
    }
}

fn double(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, RecordBatch,
        StructArray,
    };
    use arrow_ipc::writer::FileWriter;
    use arrow_schema::{DataType, Field};
    use parquet::data_type::{BoolType, ByteArray, ByteArrayType};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use serde_json::json;
    use tbl_io::{ReadLimits, Source};

    use super::*;
    use crate::file::ParquetFile;
    use crate::ipc::ArrowFile;

    const TEXT: usize = 10_000;
    const ELEMENTS: usize = 40;
    const MEMBERS: usize = 30;

    /// A Parquet file with a row, in which both columns are lists.
    fn parquet() -> Vec<u8> {
        let members: String = (0..MEMBERS).map(|at| format!("required boolean m{at};")).collect();
        let schema = format!(
            "message schema {{
                required group texts (LIST) {{ repeated group list {{ required binary element (UTF8); }} }}
                required group objects (LIST) {{ repeated group list {{
                    required group element {{ {members} }} }} }}
            }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let definition = [1; ELEMENTS];
        let repetition: Vec<i16> = (0..ELEMENTS).map(|at| i16::from(at > 0)).collect();
        let levels = (Some(&definition[..]), Some(&*repetition));
        let mut column = group.next_column().unwrap().unwrap();
        let texts = vec![ByteArray::from(vec![b'a'; TEXT]); ELEMENTS];
        column.typed::<ByteArrayType>().write_batch(&texts, levels.0, levels.1).unwrap();
        column.close().unwrap();
        for _ in 0..MEMBERS {
            let mut column = group.next_column().unwrap().unwrap();
            let values = [true; ELEMENTS];
            column.typed::<BoolType>().write_batch(&values, levels.0, levels.1).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    /// An Arrow file with the same row.
    fn arrow() -> Vec<u8> {
        let list = |values: ArrayRef| -> ArrayRef {
            let field = Arc::new(Field::new("item", values.data_type().clone(), true));
            let len = ELEMENTS.try_into().unwrap();
            Arc::new(FixedSizeListArray::new(field, len, values, None))
        };
        let text = "a".repeat(TEXT);
        let texts: DictionaryArray<Int8Type> = [&*text; ELEMENTS].into_iter().collect();
        let member = |at| {
            let values: ArrayRef = Arc::new(BooleanArray::from(vec![true; ELEMENTS]));
            (Arc::new(Field::new(format!("m{at}"), DataType::Boolean, false)), values)
        };
        let objects = StructArray::from((0..MEMBERS).map(member).collect::<Vec<_>>());
        let columns = [("texts", list(Arc::new(texts))), ("objects", list(Arc::new(objects)))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn check(bytes: &[u8], open: impl Fn(Source, ReadLimits) -> Box<dyn RowFile>) {
        let objects: serde_json::Map<_, _> =
            (0..MEMBERS).map(|at| (format!("m{at}"), json!(true))).collect();
        for (column, expected) in
            [(0, json!(vec!["a".repeat(TEXT); ELEMENTS])), (1, json!(vec![objects; ELEMENTS]))]
        {
            let read = |sample_bytes| {
                let source = Source::from_bytes("a", bytes.to_vec());
                let mut limits = ReadLimits::default();
                limits.sample_bytes = sample_bytes;
                let file = open(source, limits);
                file.json(&file.schema().columns()[column], file.place(0).unwrap())
            };
            let found = read(1 << 20).unwrap().unwrap();
            assert_eq!(serde_json::from_slice::<Json>(&found).unwrap(), expected);
            // More than the file has, and than the entries take.
            let limit = 100_000;
            assert!((bytes.len() as u64) < limit);
            let error = read(limit).unwrap_err();
            let ReadError::Limit { what, limit: found, need, .. } = error else {
                panic!("{error}")
            };
            assert_eq!((what, found), ("bytes of structures and lists as JSON", limit));
            // Nothing is taken after the first that is too much.
            assert!(need <= limit + 2 * TEXT as u64, "{need}");
        }
    }

    #[test]
    fn parquet_files_cannot_ask_for_more_json_than_a_sample_may_have() {
        check(&parquet(), |source, limits| Box::new(ParquetFile::open(source, limits).unwrap()));
    }

    #[test]
    fn arrow_files_cannot_ask_for_more_json_than_a_sample_may_have() {
        check(&arrow(), |source, limits| Box::new(ArrowFile::open(source, limits).unwrap()));
    }

    #[test]
    fn bytes_that_json_escapes_count_more() {
        assert_eq!(text_bytes(b"a~ "), 6);
        assert_eq!(text_bytes(b"\0a"), 10);
        assert_eq!(text_bytes(b"\xff"), 8);
    }
}
