//! JSON pointers into every element of a list.

use serde_json::Value;

use crate::error::PipelineError;

/// A JSON pointer with one `*`, which stands for every element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListPointer {
    /// The pointer to the list.
    list: String,
    /// The pointer from an element to its value.
    value: String,
}

impl ListPointer {
    pub(super) fn parse(text: &str) -> Result<Self, PipelineError> {
        let refused = |expected: &str| {
            let expected = format!("expected a JSON pointer {expected}");
            PipelineError::Unusable(format!("invalid pointer `{text}`: {expected}"))
        };
        let mut tokens = text.split('/');
        if tokens.next() != Some("") {
            return Err(refused("that begins with `/`"));
        }
        let tokens: Vec<&str> = tokens.collect();
        let mut parts = tokens.split(|token| *token == "*");
        let (Some(list), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refused("with exactly one `*`"));
        };
        let joined = |tokens: &[&str]| tokens.iter().flat_map(|token| ["/", token]).collect();
        Ok(Self { list: joined(list), value: joined(value) })
    }

    /// The values in `document` that it points to, one for each element of the list, as far as that
    /// has one; `None` without a list.
    pub(super) fn values<'v>(
        &self,
        document: &'v Value,
    ) -> Option<impl Iterator<Item = Option<&'v Value>>> {
        let list = document.pointer(&self.list)?.as_array()?;
        Some(list.iter().map(|element| element.pointer(&self.value)))
    }

    /// The pointer to the list.
    pub(super) fn list(&self) -> &str {
        &self.list
    }

    /// The pointer to the value of element `position`.
    pub(super) fn of(&self, position: usize) -> String {
        format!("{}/{position}{}", self.list, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values(pointer: &str, document: &Value) -> Option<Vec<Option<Value>>> {
        let pointer = ListPointer::parse(pointer).unwrap();
        let values = pointer.values(document)?;
        Some(values.map(|value| value.cloned()).collect())
    }

    #[test]
    fn a_star_stands_for_every_element() {
        let document = json!({"a": [{"b": {"c~": 1}}, {"b": {"c~": 2}}], "d": [[3], [4]], "*": []});
        let check = |pointer, expected: &[i32]| {
            let expected = expected.iter().map(|&number| Some(json!(number))).collect();
            assert_eq!(values(pointer, &document), Some(expected));
        };
        check("/a/*/b/c~0", &[1, 2]);
        check("/d/*/0", &[3, 4]);
        check("/d/1/*", &[4]);
        assert_eq!(values("/*", &json!([5])), Some(vec![Some(json!(5))]));
    }

    #[test]
    fn missing_values_have_a_pointer() {
        let document = json!({"a": [{"b": 1}, {}], "c": 7});
        assert_eq!(values("/a/*/b", &document), Some(vec![Some(json!(1)), None]));
        assert_eq!(values("/c/*", &document), None);
        assert_eq!(values("/d/e/*/f", &document), None);
        let pointer = ListPointer::parse("/d/e/*/f").unwrap();
        assert_eq!((pointer.list(), pointer.of(1)), ("/d/e", "/d/e/1/f".to_owned()));
    }

    #[test]
    fn other_pointers_are_refused() {
        for pointer in ["", "a/*", "/a", "/a/*/b/*", "/a*/b"] {
            assert!(ListPointer::parse(pointer).is_err(), "{pointer}");
        }
        let error = ListPointer::parse("json:/a/*").unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid pointer `json:/a/*`: expected a JSON pointer that begins with `/`"
        );
    }
}
