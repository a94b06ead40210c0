//! The features of `datasets`, which it writes into the metadata of its files.

use serde_json::Value;
use tbl_io::RowsDefect;

/// The key of the metadata.
pub(crate) const KEY: &str = "huggingface";

/// The most bytes of the features; ImageNet's, with all names of 21,841 classes, take 1 MB.
const MAX_BYTES: usize = 16 << 20;

/// The types of columns that decide their use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// The columns of images.
    pub(crate) images: Vec<String>,
    pub(crate) classes: Vec<Classes>,
}

/// A column of labels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) column: String,
    pub(crate) names: Vec<String>,
}

impl Features {
    /// Parses the JSON text `{"info": {"features": {"NAME": {"_type": "TYPE", ..}, ..}}}`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, RowsDefect> {
        let damaged = || RowsDefect::Damaged { what: "metadata of the key `huggingface`" };
        if text.len() > MAX_BYTES {
            let what = "bytes of the key `huggingface`";
            let found = text.len() as u64;
            let limit = MAX_BYTES as u64;
            return Err(RowsDefect::TooLarge { what, found, limit });
        }
        let document: Value = serde_json::from_slice(text).map_err(|_| damaged())?;
        let Some(columns) = document.pointer("/info/features").and_then(Value::as_object) else {
            return Ok(Self::default());
        };
        let mut features = Self::default();
        for (column, feature) in columns {
            match feature.get("_type").and_then(Value::as_str) {
                Some("Image" | "Video") => features.images.push(column.clone()),
                Some("ClassLabel") => {
                    let names =
                        feature.get("names").and_then(Value::as_array).into_iter().flatten();
                    let names = names.map(|name| name.as_str().map(str::to_owned));
                    let names = names.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
                    features.classes.push(Classes { column: column.clone(), names });
                }
                _ => {}
            }
        }
        Ok(features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, images: &[&str], classes: &[(&str, &[&str])]) {
        let features = Features::parse(text.as_bytes()).unwrap();
        assert_eq!(features.images, images);
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let classes: Vec<Classes> = classes
            .iter()
            .map(|&(column, names)| Classes { column: column.to_owned(), names: owned(names) })
            .collect();
        assert_eq!(features.classes, classes);
    }

    #[test]
    fn images_and_labels_are_columns_of_these_types() {
        // As `datasets` 5.2 and 2.14 write them.
        let text = r#"{"info": {"features": {"image": {"_type": "Image"}, "label":
            {"names": ["cat", "dog"], "_type": "ClassLabel"}, "text":
            {"dtype": "string", "_type": "Value"}}}}"#;
        check(text, &["image"], &[("label", &["cat", "dog"])]);
        let text = r#"{"info": {"features": {"img": {"decode": true, "id": null, "_type": "Image"},
            "boxes": [{"dtype": "float32", "_type": "Value"}],
            "c": {"num_classes": 1, "names": ["a"], "id": null, "_type": "ClassLabel"}}}}"#;
        check(text, &["img"], &[("c", &["a"])]);
        check("{}", &[], &[]);
        check(r#"{"info": {"features": [1]}}"#, &[], &[]);
    }

    #[test]
    fn metadata_that_cannot_be_read_is_an_error() {
        for text in
            ["", "{", r#"{"info": {"features": {"a": {"_type": "ClassLabel", "names": [1]}}}}"#]
        {
            let error = Features::parse(text.as_bytes()).unwrap_err();
            let what = "metadata of the key `huggingface`";
            assert_eq!(error, RowsDefect::Damaged { what }, "{text}");
        }
    }
}
