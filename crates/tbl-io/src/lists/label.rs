//! Labels in a column of text: integers, or names of classes.

use std::collections::{BTreeSet, HashMap};

use tbl_format::extension::NO_LABEL;

use crate::escape::Escaped;
use crate::list_error::ListDefect;
use crate::listed::Texts;

/// The labels that a column has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ColumnLabels {
    /// Integers; [`NO_LABEL`] for empty and missing cells.
    Integers(Vec<i64>),
    /// Places in the sorted list of names.
    Classes { labels: Vec<i64>, names: Vec<String> },
    /// Numbers that are not integers, or lists: no labels of classes.
    Other,
}

/// A row that differs in kind from the others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLabel {
    pub(super) row: usize,
    pub(super) kind: BadKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadKind {
    /// It is not an integer; row `like` has one.
    Mixed {
        like: usize,
    },
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer(i64),
    Number,
    List,
    Word,
}

impl Kind {
    fn of(text: &[u8]) -> Self {
        let Ok(text) = str::from_utf8(text) else { return Self::Word };
        // Tables that have had a gap in a column write its integers with a fraction: 3.0.
        let is_zero = |fraction: &&str| !fraction.is_empty() && fraction.bytes().all(|b| b == b'0');
        let whole = text.split_once('.').filter(|(_, fraction)| is_zero(fraction));
        if let Ok(number) = whole.map_or(text, |(whole, _)| whole).parse() {
            return Self::Integer(number);
        }
        let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
        match text.as_bytes() {
            [b'[' | b'{', ..] => Self::List,
            _ if is_number => Self::Number,
            _ => Self::Word,
        }
    }
}

impl ColumnLabels {
    /// All cells are integers, or all are names of classes; blanks around them do not count.
    pub(super) fn of(texts: &Texts) -> Result<Self, BadLabel> {
        let mut first = [None::<usize>; 4];
        for (row, text) in texts.iter().enumerate() {
            let text = text.unwrap_or_default().trim_ascii();
            if text.is_empty() {
                continue;
            }
            let place = match Kind::of(text) {
                Kind::Integer(NO_LABEL) => return Err(BadLabel { row, kind: BadKind::Reserved }),
                Kind::Integer(_) => 0,
                Kind::Number => 1,
                Kind::List => 2,
                Kind::Word => 3,
            };
            first[place].get_or_insert(row);
        }
        match first {
            [None, None, None, None] => Ok(Self::Integers(Vec::new())),
            [Some(_), None, None, None] => Ok(Self::Integers(integers(texts))),
            [None, None, None, Some(_)] => Ok(classes(texts)),
            [Some(like), _, _, Some(row)] | [None, Some(like), _, Some(row)] => {
                Err(BadLabel { row, kind: BadKind::Mixed { like } })
            }
            [_, _, Some(_), _] | [_, Some(_), _, _] => Ok(Self::Other),
        }
    }
}

impl BadLabel {
    /// The defect; `line` is the line of a row.
    pub(super) fn defect(&self, texts: &Texts, line: impl Fn(usize) -> u64) -> ListDefect {
        let row = u32::try_from(self.row).unwrap_or(u32::MAX);
        let found = texts.get(row).unwrap_or_default().to_vec();
        match self.kind {
            BadKind::Mixed { like } => ListDefect::MixedLabels { found, line: line(like) },
            BadKind::Reserved => ListDefect::ReservedLabel { label: NO_LABEL },
        }
    }
}

fn integers(texts: &Texts) -> Vec<i64> {
    let integer = |text: Option<&[u8]>| match Kind::of(text.unwrap_or_default().trim_ascii()) {
        Kind::Integer(label) => label,
        Kind::Number | Kind::List | Kind::Word => NO_LABEL,
    };
    texts.iter().map(integer).collect()
}

fn classes(texts: &Texts) -> ColumnLabels {
    let names = |text: Option<_>| text.map(<[u8]>::trim_ascii).filter(|text| !text.is_empty());
    let sorted: BTreeSet<&[u8]> = texts.iter().filter_map(names).collect();
    let place: HashMap<&[u8], i64> = sorted.iter().copied().zip(0..).collect();
    let label = |text| names(text).and_then(|name| place.get(name).copied()).unwrap_or(NO_LABEL);
    ColumnLabels::Classes {
        labels: texts.iter().map(label).collect(),
        names: sorted.iter().map(|name| Escaped(name).to_string()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(cells: &[&str]) -> Result<ColumnLabels, BadLabel> {
        let mut texts = Texts::default();
        for cell in cells {
            texts.push(Some(cell.as_bytes()).filter(|text| text != b"-")).unwrap();
        }
        ColumnLabels::of(&texts)
    }

    #[test]
    fn a_column_has_integers_or_classes() {
        let integers = |labels: &[i64]| Ok(ColumnLabels::Integers(labels.to_vec()));
        assert_eq!(
            labels(&["3", " -1 ", "", "-", "007"]),
            integers(&[3, -1, NO_LABEL, NO_LABEL, 7])
        );
        assert_eq!(labels(&["", ""]), integers(&[]));
        assert_eq!(labels(&["0.0", "", "2.00", "-1."]), Ok(ColumnLabels::Other));
        assert_eq!(labels(&["0.0", "", "2.00", "5"]), integers(&[0, NO_LABEL, 2, 5]));
        let names = vec!["cat".to_owned(), "dog".to_owned()];
        let classes = ColumnLabels::Classes { labels: vec![1, 0, NO_LABEL, 1], names };
        assert_eq!(labels(&["dog", "cat", "", "dog "]), Ok(classes));
        assert_eq!(labels(&["1", "2.5"]), Ok(ColumnLabels::Other));
        assert_eq!(labels(&["1e3"]), Ok(ColumnLabels::Other));
        assert_eq!(labels(&["[1, 2]", "[]"]), Ok(ColumnLabels::Other));
    }

    #[test]
    fn words_among_numbers_are_refused() {
        let mixed = |row, like| Err(BadLabel { row, kind: BadKind::Mixed { like } });
        assert_eq!(labels(&["", "1", "2", "cat"]), mixed(3, 1));
        assert_eq!(labels(&["x", "1.5"]), mixed(0, 1));
        let reserved = Err(BadLabel { row: 0, kind: BadKind::Reserved });
        assert_eq!(labels(&["-9223372036854775808"]), reserved);
    }
}
