//! Structures and lists as JSON.

use std::ops::Range;

use serde_json::Value as Json;

use crate::nested::Entry;
use crate::schema::{Leaf, Meaning, Node, Repetition};
use crate::text;
use crate::values::Value;

/// The entries of a row, leaf by leaf of a column.
pub(crate) struct Row<'a> {
    pub(crate) leaves: &'a [Leaf],
    pub(crate) entries: Vec<Vec<Entry<'a>>>,
    /// The number of the first leaf of the column.
    pub(crate) first_leaf: usize,
}

/// The entries of a part of a row, leaf by leaf of a node.
type Parts = Vec<Range<usize>>;

impl Row<'_> {
    /// The JSON of a column in this row; `None` for null.
    pub(crate) fn to_json(&self, column: &Node) -> Option<Vec<u8>> {
        let parts = self.entries.iter().map(|entries| 0..entries.len()).collect();
        let json = self.field(column, &parts);
        if json.is_null() { None } else { Some(json.to_string().into_bytes()) }
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
    fn field(&self, node: &Node, parts: &Parts) -> Json {
        let is_there =
            self.first(node, parts).is_some_and(|first| first.definition >= node.definition);
        match node.repetition {
            Repetition::Repeated => Json::Array(self.elements(node, parts, Self::content)),
            Repetition::Optional if !is_there => Json::Null,
            Repetition::Required | Repetition::Optional => self.content(node, parts),
        }
    }

    /// The value of a node that is there.
    fn content(&self, node: &Node, parts: &Parts) -> Json {
        if node.is_leaf() {
            return self.leaf(node, parts);
        }
        if let ([elements], true) = (&*node.children, node.is_list)
            && elements.repetition == Repetition::Repeated
        {
            // Most writers have a group around the element, others the element alone.
            return Json::Array(match &*elements.children {
                [element] if !elements.is_list => {
                    self.elements(elements, parts, |row, _, parts| row.field(element, parts))
                }
                _ => self.elements(elements, parts, Self::content),
            });
        }
        let mut object = serde_json::Map::new();
        for child in &node.children {
            let first = child.leaves.start - node.leaves.start;
            let parts = parts.get(first..first + child.leaves.len()).unwrap_or_default();
            object.insert(child.name.clone(), self.field(child, &parts.to_vec()));
        }
        Json::Object(object)
    }

    /// The elements of a repeated node.
    fn elements(
        &self,
        node: &Node,
        parts: &Parts,
        element: impl Fn(&Self, &Node, &Parts) -> Json,
    ) -> Vec<Json> {
        let is_empty =
            self.first(node, parts).is_none_or(|first| first.definition < node.definition);
        if is_empty {
            return Vec::new();
        }
        let leaves = node.leaves.clone().zip(parts);
        let split: Vec<Parts> =
            leaves.map(|(leaf, part)| self.split(leaf, part.clone(), node.level)).collect();
        let count = split.first().map_or(0, Vec::len);
        let element_parts = |number: usize| {
            let part = |parts: &Parts| parts.get(number).cloned().unwrap_or(0..0);
            split.iter().map(part).collect()
        };
        (0..count).map(|number| element(self, node, &element_parts(number))).collect()
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

    fn leaf(&self, node: &Node, parts: &Parts) -> Json {
        let Some(value) = self.first(node, parts).and_then(|entry| entry.value) else {
            return Json::Null;
        };
        of_value(&self.leaves[node.leaves.start], value)
    }
}

/// A single value.
pub(crate) fn of_value(leaf: &Leaf, value: Value<'_>) -> Json {
    match value {
        Value::Boolean(value) => Json::Bool(value),
        Value::Bytes(bytes) if !matches!(leaf.meaning, Meaning::Decimal(_)) => {
            Json::String(String::from_utf8_lossy(bytes).into_owned())
        }
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
