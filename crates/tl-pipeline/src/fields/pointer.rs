//! JSON pointers into every element of a list.

use serde_json::Value;

use crate::error::PipelineError;

/// A JSON pointer with one `*`, which stands for every element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListPointer {
    /// The pointer to the list.
    list: String,
    /// The pointer from an element to its value.
    value: String,
}

/// The part of a pointer whose value is missing.
pub(crate) struct NotThere {
    pub(crate) pointer: String,
}

impl ListPointer {
    pub(crate) fn parse(text: &str) -> Result<Self, PipelineError> {
        let refused = || {
            let expected = "expected a JSON pointer with exactly one `*`";
            PipelineError::Unusable(format!("invalid pointer `{text}`: {expected}"))
        };
        let mut tokens = text.split('/');
        if tokens.next() != Some("") {
            return Err(refused());
        }
        let tokens: Vec<&str> = tokens.collect();
        let mut parts = tokens.split(|token| *token == "*");
        let (Some(list), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refused());
        };
        let joined = |tokens: &[&str]| tokens.iter().flat_map(|token| ["/", token]).collect();
        Ok(Self { list: joined(list), value: joined(value) })
    }

    /// The values in `document` that it points to, one for each element of the list.
    pub(crate) fn values<'v>(
        &'v self,
        document: &'v Value,
    ) -> Result<impl ExactSizeIterator<Item = Result<&'v Value, NotThere>>, NotThere> {
        let list = document.pointer(&self.list).and_then(Value::as_array);
        let list = list.ok_or_else(|| NotThere { pointer: self.list.clone() })?;
        Ok(list.iter().enumerate().map(|(position, element)| {
            element.pointer(&self.value).ok_or_else(|| NotThere { pointer: self.of(position) })
        }))
    }

    /// The pointer to the value of element `position`.
    pub(crate) fn of(&self, position: usize) -> String {
        format!("{}/{position}{}", self.list, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(pointer: &str, document: &Value) -> Result<Vec<Value>, String> {
        let pointer = ListPointer::parse(pointer).unwrap();
        let values = pointer.values(document).map_err(|missing| missing.pointer)?;
        values.map(|value| value.cloned().map_err(|missing| missing.pointer)).collect()
    }

    #[test]
    fn a_star_stands_for_every_element() {
        let document = json!({"a": [{"b": {"c~": 1}}, {"b": {"c~": 2}}], "d": [[3], [4]], "*": []});
        let check = |pointer, expected: &[i32]| {
            let expected: Vec<Value> = expected.iter().map(|&number| json!(number)).collect();
            assert_eq!(values(pointer, &document).unwrap(), expected);
        };
        check("/a/*/b/c~0", &[1, 2]);
        check("/d/*/0", &[3, 4]);
        check("/d/1/*", &[4]);
        assert_eq!(values("/*", &json!([5, 6])).unwrap(), [json!(5), json!(6)]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let document = json!({"a": [{"b": 1}, {}], "c": 7});
        assert_eq!(values("/a/*/b", &document), Err("/a/1/b".into()));
        assert_eq!(values("/c/*", &document), Err("/c".into()));
        assert_eq!(values("/d/e/*/f", &document), Err("/d/e".into()));
    }

    #[test]
    fn other_pointers_are_refused() {
        for pointer in ["", "a/*", "/a", "/a/*/b/*", "/a*/b"] {
            assert!(ListPointer::parse(pointer).is_err(), "{pointer}");
        }
    }
}
