//! The uses of columns, which the writer states in the metadata of its files: features have no place
//! for them.

use serde_json::{Map, Value, json};
use tbl_io::RowsDefect;

/// The key of the metadata.
pub(crate) const KEY: &str = "turboloader";

/// The columns and names of a file of this writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// The column of the samples.
    pub(crate) image: String,
    /// The column of the labels; `None` if no sample has one.
    pub(crate) label: Option<String>,
    /// The names of classes, where the features do not have them.
    pub(crate) class_names: Vec<String>,
    /// The names of the classes of boxes.
    pub(crate) box_class_names: Vec<String>,
}

impl Own {
    /// Parses the metadata. Members that it does not know are those of a later version.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, RowsDefect> {
        let damaged = || RowsDefect::Damaged { what: "metadata of the key `turboloader`" };
        let document: Value = serde_json::from_slice(text).map_err(|_| damaged())?;
        let names = |key: &str| match document.get(key) {
            None => Ok(Vec::new()),
            Some(names) => {
                let names = names.as_array().ok_or_else(damaged)?.iter();
                let names = names.map(|name| name.as_str().map(str::to_owned));
                names.collect::<Option<Vec<_>>>().ok_or_else(damaged)
            }
        };
        let text = |key: &str| match document.get(key) {
            None => Ok(None),
            Some(text) => text.as_str().map(|text| Some(text.to_owned())).ok_or_else(damaged),
        };
        Ok(Self {
            image: text("image")?.ok_or_else(damaged)?,
            label: text("label")?,
            class_names: names("class_names")?,
            box_class_names: names("box_class_names")?,
        })
    }

    pub(crate) fn to_json(&self) -> String {
        let Self { image, label, class_names, box_class_names } = self;
        let mut document = Map::new();
        document.insert("image".to_owned(), json!(image));
        if let Some(label) = label {
            document.insert("label".to_owned(), json!(label));
        }
        let lists = [("class_names", class_names), ("box_class_names", box_class_names)];
        for (key, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            document.insert(key.to_owned(), json!(names));
        }
        Value::Object(document).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn metadata_comes_back() {
        let least = Own { image: "image".to_owned(), ..Own::default() };
        assert_eq!(least.to_json(), r#"{"image":"image"}"#);
        let all = Own {
            label: Some("class".to_owned()),
            class_names: names(&["a \"b\"", ""]),
            box_class_names: names(&["", "c"]),
            ..least.clone()
        };
        for own in [least, all] {
            assert_eq!(Own::parse(own.to_json().as_bytes()), Ok(own));
        }
    }

    #[test]
    fn metadata_that_cannot_be_read_is_an_error() {
        for text in ["", "[]", "{}", r#"{"image": 1}"#, r#"{"image": "a", "class_names": [1]}"#] {
            let what = "metadata of the key `turboloader`";
            let expected = Err(RowsDefect::Damaged { what });
            assert_eq!(Own::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
