//! Explicit labels: the text of a `.cls` member, the key `label` of a `.json` member.

/// A sidecar field that can hold a label. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LabelField {
    /// `cls`: an integer as text.
    Cls,
    /// `json`: an object whose key `label` holds an integer.
    Json,
}

impl LabelField {
    pub(crate) fn of(extension: &[u8]) -> Option<Self> {
        if extension.eq_ignore_ascii_case(b"cls") {
            Some(Self::Cls)
        } else if extension.eq_ignore_ascii_case(b"json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    /// The longest content that is looked at: an integer with some blanks around it, or the
    /// annotations of one image.
    pub(crate) fn max_bytes(self) -> u64 {
        match self {
            Self::Cls => 64,
            Self::Json => 64 << 10,
        }
    }
}

/// The label in a field's content. Content without one is no error: the field may be meant for
/// something else.
pub(crate) fn label_field(field: LabelField, content: &[u8]) -> Option<i64> {
    match field {
        LabelField::Cls => std::str::from_utf8(content.trim_ascii()).ok()?.parse().ok(),
        LabelField::Json => {
            let annotation: serde_json::Value = serde_json::from_slice(content).ok()?;
            annotation.get("label")?.as_i64()
        }
    }
}

/// The label that a sample's fields hold, each given as its kind and what it said, in stored
/// order: the last field of a kind counts, `cls` before `json`.
pub(crate) fn choose_label(fields: impl Iterator<Item = (LabelField, Option<i64>)>) -> Option<i64> {
    let (mut cls, mut json) = (None, None);
    for (field, label) in fields {
        match field {
            LabelField::Cls => cls = label,
            LabelField::Json => json = label,
        }
    }
    cls.or(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_integers() {
        let cls = |content: &str| label_field(LabelField::Cls, content.as_bytes());
        assert_eq!([cls("7"), cls(" -3\n"), cls("+5")], [Some(7), Some(-3), Some(5)]);
        assert_eq!([cls(""), cls("cat"), cls("1.0"), cls("9223372036854775808")], [None; 4]);
        let json = |content: &str| label_field(LabelField::Json, content.as_bytes());
        assert_eq!(json(r#"{"label": 12, "boxes": [1, {"label": 3}]}"#), Some(12));
        for other in
            ["", "{", "[]", "{}", r#"{"label": "12"}"#, r#"{"label": 1.5}"#, r#"{"label": null}"#]
        {
            assert_eq!(json(other), None, "{other}");
        }
    }

    #[test]
    fn the_last_of_a_kind_counts_and_cls_comes_first() {
        use LabelField::{Cls, Json};
        let choose = |fields: &[(LabelField, Option<i64>)]| choose_label(fields.iter().copied());
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[(Cls, Some(1)), (Json, Some(2)), (Cls, Some(3))]), Some(3));
        assert_eq!(choose(&[(Json, Some(2)), (Cls, Some(1)), (Cls, None)]), Some(2));
    }
}
