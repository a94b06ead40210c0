//! JSON Lines: an object per line. Its keys are columns.
//!
//! A string stands for its text and other values for their JSON text; null and keys that a row lacks
//! are missing.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::json_object::Members;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};

use super::table::{Fault, Table};

pub(super) fn parse(text: &[u8], limits: &ReadLimits) -> Result<Table, Fault> {
    let mut table = Table::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let fault = |error: serde_json::Error| json_fault(&error, line);
        let Members(members) = serde_json::from_slice(text).map_err(fault)?;
        let rows = table.rows();
        for (name, value) in members {
            let column = match places.get(&*name) {
                Some(&column) => column,
                None => {
                    let column = table.add_column(name.as_bytes(), line, limits)?;
                    places.insert(name.into_owned(), column);
                    column
                }
            };
            if table.columns.get(column).is_some_and(|texts| texts.len() > rows) {
                let name = table.names.get(column).cloned().unwrap_or_default().into_bytes();
                let defect = ListDefect::Twice { what: "key", name };
                return Err(Fault::at(ListPlace::line(line), defect));
            }
            let text = text_of(value).map_err(fault)?;
            table.push(column, text.as_deref().map(str::as_bytes))?;
        }
        table.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        table.check_cells(rows + 1, limits)?;
        for column in 0..table.columns.len() {
            if table.columns.get(column).is_some_and(|texts| texts.len() <= rows) {
                table.push(column, None)?;
            }
        }
    }
    if table.names.is_empty() && table.rows() == 0 {
        return Err(Fault::at(
            ListPlace::default(),
            ListDefect::Json {
                reason: "the file is empty".to_owned(),
                expected: "an object in each line",
            },
        ));
    }
    Ok(table)
}

/// The text that a value stands for; `None` for null.
pub(super) fn text_of(value: &RawValue) -> Result<Option<Cow<'_, str>>, serde_json::Error> {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(json).map(Cow::Owned).map(Some),
        Some(b'n') => Ok(None),
        _ => Ok(Some(Cow::Borrowed(json))),
    }
}

fn json_fault(error: &serde_json::Error, line: u64) -> Fault {
    let text = error.to_string();
    // The line of the message is that within the row.
    let reason = text.split(" at line ").next().unwrap_or(&text);
    let reason = match reason.strip_suffix(", expected an object") {
        Some(reason) => reason.to_owned(),
        None if error.is_data() => reason.to_owned(),
        None => format!("not JSON ({reason})"),
    };
    Fault::at(ListPlace::line(line), ListDefect::Json { reason, expected: "an object" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(text: &str, name: &str) -> Result<Vec<Option<String>>, Fault> {
        let table = parse(text.as_bytes(), &ReadLimits::default())?;
        let text = |text: Option<&[u8]>| text.map(|text| String::from_utf8_lossy(text).into());
        Ok(table.columns[table.find(name).unwrap()].iter().map(text).collect())
    }

    #[test]
    fn strings_are_texts_and_other_values_are_json() {
        let text = "{\"a\": \"x\\ny\", \"b\": 1}\r\n\n {\"b\": [1, {\"c\": null}], \"a\": null} \n\
                    {\"a\": \"\"}";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(column(text, "a").unwrap(), [some("x\ny"), None, some("")]);
        assert_eq!(column(text, "b").unwrap(), [some("1"), some("[1, {\"c\": null}]"), None]);
        assert_eq!(column("{}\n{\"\\u0061\": true}", "a").unwrap(), [None, some("true")]);
    }

    #[test]
    fn damage_names_the_line() {
        let check = |text: &str, line: u64, reason: &str| {
            let Err(Fault::Defect { place, source }) = column(text, "a") else {
                panic!("{text:?}");
            };
            assert_eq!(place.line, Some(line), "{text:?}");
            assert!(source.to_string().contains(reason), "{text:?}: {source}");
        };
        check("{\"a\": 1}\n{\"a\": 1,}\n", 2, "not JSON (trailing comma)");
        check("{\"a\": 1}\n[1]\n", 2, "expected an object");
        check("\n{\"a\": 1} x\n", 2, "not JSON (trailing characters)");
        check("{\"a\": 1, \"a\": 2}", 1, "key `a` occurs twice");
        check("{\"a/b\": 1}", 1, "it contains a slash");
        assert!(column(" \n", "a").is_err());
    }

    #[test]
    fn columns_that_most_rows_lack_take_no_more_than_the_limits_allow() {
        let limits = ReadLimits { sample_bytes: 400 };
        let text: String = (0..100).map(|number| format!("{{\"{number}\":1}}\n")).collect();
        let fault = parse(text.as_bytes(), &limits).unwrap_err();
        assert!(matches!(fault, Fault::Limit { limit: 1200, need: 1280, .. }), "{fault:?}");
    }

    #[test]
    fn a_late_column_is_refused_before_earlier_rows_get_its_cells() {
        let limits = ReadLimits { sample_bytes: 400 };
        let keys: Vec<String> = (0..30).map(|number| format!("\"{number}\":1")).collect();
        let text = format!("{}{{{}}}\n", "{}\n".repeat(100), keys.join(","));
        let fault = parse(text.as_bytes(), &limits).unwrap_err();
        // The third column of 100 rows.
        assert!(matches!(fault, Fault::Limit { limit: 1200, need: 1500, .. }), "{fault:?}");
    }
}
