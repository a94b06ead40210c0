//! Comma-separated values (RFC 4180) with a first row of names.
//!
//! Lines end with LF, CR LF or CR. A cell in quotes may contain separators, line ends and doubled
//! quotes; a quote inside an unquoted cell is an ordinary character. Empty lines are not rows. Blanks
//! around the names of columns do not count.
//!
//! The `csv` crate accepts a quote that does not end and text after a closing quote, which are errors
//! here. Tables of the crate `turboloader` have a stricter reader of streams, which refuses the quotes
//! within cells that writers of manifests leave as they are.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};

use super::table::{Fault, Table};

/// The cells of a text, one after the other.
struct Cells<'a> {
    rest: &'a [u8],
    separator: u8,
    /// The line of `rest`, from 1.
    line: u64,
}

/// A cell, and whether it is the last one of its row.
struct Cell<'a> {
    text: Cow<'a, [u8]>,
    is_last: bool,
}

pub(super) fn parse(text: &[u8], separator: u8, limits: &ReadLimits) -> Result<Table, Fault> {
    let mut cells = Cells { rest: text, separator, line: 1 };
    let mut table = Table::default();
    cells.skip_empty_lines();
    let header = cells.line;
    let mut names = HashSet::new();
    loop {
        let Some(cell) = cells.next()? else {
            if table.names.is_empty() {
                return Err(Fault::at(ListPlace::default(), ListDefect::NoHeader));
            }
            break;
        };
        let name = cell.text.trim_ascii();
        if !names.insert(name.to_vec()) {
            let defect = ListDefect::Twice { what: "column", name: name.to_vec() };
            return Err(Fault::at(ListPlace::line(header), defect));
        }
        table.add_column(name, header, limits)?;
        if cell.is_last {
            break;
        }
    }
    loop {
        cells.skip_empty_lines();
        let line = cells.line;
        let mut found = 0;
        let mut is_last = false;
        while !is_last && let Some(cell) = cells.next()? {
            table.push(found, Some(&cell.text))?;
            found += 1;
            is_last = cell.is_last;
        }
        if found == 0 {
            return Ok(table);
        }
        let expected = table.names.len();
        if found != expected {
            return Err(Fault::at(ListPlace::line(line), ListDefect::Ragged { found, expected }));
        }
        table.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        table.check_cells(table.rows(), limits)?;
    }
}

impl<'a> Cells<'a> {
    fn skip_empty_lines(&mut self) {
        while self.rest.first().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.end_line();
        }
    }

    /// Passes over the end of a line at the front.
    fn end_line(&mut self) {
        let bytes = if self.rest.starts_with(b"\r\n") { 2 } else { 1 };
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.line += 1;
    }

    fn next(&mut self) -> Result<Option<Cell<'a>>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let text = match self.rest.strip_prefix(b"\"") {
            Some(quoted) => self.quoted(quoted)?,
            None => {
                let is_end = |&byte: &u8| byte == self.separator || matches!(byte, b'\n' | b'\r');
                let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                Cow::Borrowed(text)
            }
        };
        match self.rest.first() {
            Some(&byte) if byte == self.separator => {
                self.rest = self.rest.get(1..).unwrap_or_default();
                // A separator at the end of the text is followed by an empty cell.
                if self.rest.is_empty() {
                    self.rest = b"\n";
                }
                Ok(Some(Cell { text, is_last: false }))
            }
            Some(b'\n' | b'\r') => {
                self.end_line();
                Ok(Some(Cell { text, is_last: true }))
            }
            Some(_) => Err(Fault::at(ListPlace::line(self.line), ListDefect::AfterQuote)),
            None => Ok(Some(Cell { text, is_last: true })),
        }
    }

    /// The text of a cell that follows an opening quote.
    fn quoted(&mut self, quoted: &'a [u8]) -> Result<Cow<'a, [u8]>, Fault> {
        let start = self.line;
        let mut text = Cow::Borrowed(&quoted[..0]);
        let mut rest = quoted;
        loop {
            let Some(end) = rest.iter().position(|&byte| byte == b'"') else {
                return Err(Fault::at(ListPlace::line(start), ListDefect::OpenQuote));
            };
            let (part, after) = rest.split_at(end);
            self.line += lines_in(part);
            if text.is_empty() {
                text = Cow::Borrowed(part);
            } else {
                text.to_mut().extend_from_slice(part);
            }
            match after {
                [_, b'"', after @ ..] => {
                    text.to_mut().push(b'"');
                    rest = after;
                }
                [_, after @ ..] => {
                    self.rest = after;
                    return Ok(text);
                }
                [] => return Err(Fault::at(ListPlace::line(start), ListDefect::OpenQuote)),
            }
        }
    }
}

/// The line ends in a text.
fn lines_in(text: &[u8]) -> u64 {
    let ends = |(at, &byte): (usize, &u8)| {
        byte == b'\n' || (byte == b'\r' && text.get(at + 1) != Some(&b'\n'))
    };
    text.iter().enumerate().filter(|&(at, byte)| ends((at, byte))).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Result<Vec<Vec<String>>, Fault> {
        let table = parse(text, b',', &ReadLimits::default())?;
        let row = |row: u32| {
            let cell = |texts: &crate::listed::Texts| {
                String::from_utf8_lossy(texts.get(row).unwrap()).into_owned()
            };
            table.columns.iter().map(cell).collect()
        };
        let names = vec![table.names.clone()];
        Ok(names.into_iter().chain((0..).take(table.rows()).map(row)).collect())
    }

    #[test]
    fn cells_end_as_rfc_4180_says() {
        let check = |text: &str, expected: &[&[&str]]| {
            assert_eq!(rows(text.as_bytes()).unwrap(), expected, "{text:?}");
        };
        check("a,b\n1,2\n", &[&["a", "b"], &["1", "2"]]);
        check("a,b\r\n1,2", &[&["a", "b"], &["1", "2"]]);
        check("a,b\r1,2\r", &[&["a", "b"], &["1", "2"]]);
        check("a\n\n\r\n1\n\n", &[&["a"], &["1"]]);
        check("\n\na\n1", &[&["a"], &["1"]]);
        check("a,b\n,\n\"\",x", &[&["a", "b"], &["", ""], &["", "x"]]);
        check("a,b\nx,", &[&["a", "b"], &["x", ""]]);
        check("a\n\"x,\"\"y\"\"\r\nz\"\n", &[&["a"], &["x,\"y\"\r\nz"]]);
        check("a\n\"\"\"\"\n", &[&["a"], &["\""]]);
        check("a\n\"\"\"x\"\n", &[&["a"], &["\"x"]]);
        check("a,b\nx\"y,z\" \n", &[&["a", "b"], &["x\"y", "z\" "]]);
        check("a\n", &[&["a"]]);
        check("é\n日本\n", &[&["é"], &["日本"]]);
        check(" a\t, \" b \"\n 1, 2\n", &[&["a", "\" b \""], &[" 1", " 2"]]);
        check("\" a \",b \n1,2\n", &[&["a", "b"], &["1", "2"]]);
    }

    #[test]
    fn damage_names_the_line() {
        let check = |text: &str, line: u64, defect: ListDefect| {
            let expected = Fault::at(ListPlace::line(line), defect);
            assert_eq!(rows(text.as_bytes()).unwrap_err(), expected, "{text:?}");
        };
        check("a,b\n1\n", 2, ListDefect::Ragged { found: 1, expected: 2 });
        check("a,b\n\n1,2\n1,2,3\n", 4, ListDefect::Ragged { found: 3, expected: 2 });
        check("a\n\"x\ny\"\n\"z", 4, ListDefect::OpenQuote);
        check("a\n\"x\ny\"z\n", 3, ListDefect::AfterQuote);
        check("a,a\n", 1, ListDefect::Twice { what: "column", name: b"a".to_vec() });
        check("a, a\n", 1, ListDefect::Twice { what: "column", name: b"a".to_vec() });
        for text in ["", "\n\n"] {
            let expected = Fault::at(ListPlace::default(), ListDefect::NoHeader);
            assert_eq!(rows(text.as_bytes()).unwrap_err(), expected);
        }
        for text in [&b"a/b\n"[..], b"\xff\n", b"a\0b\n"] {
            let fault = rows(text).unwrap_err();
            let is_name = |fault| {
                matches!(fault, Fault::Defect { source: ListDefect::ColumnName { .. }, .. })
            };
            assert!(is_name(fault), "{text:?}");
        }
    }

    #[test]
    fn memory_for_cells_is_bounded_by_the_limits() {
        let limits = ReadLimits { sample_bytes: 40 };
        let row = "a,b\n";
        assert!(parse(row.repeat(13).as_bytes(), b',', &limits).is_ok());
        let fault = parse(row.repeat(14).as_bytes(), b',', &limits).unwrap_err();
        assert!(matches!(fault, Fault::Limit { limit: 120, need: 130, .. }), "{fault:?}");
        let wide: Vec<String> = (0..=10_000).map(|number| number.to_string()).collect();
        let fault = rows(wide.join(",").as_bytes()).unwrap_err();
        assert!(matches!(fault, Fault::Limit { limit: 10_000, .. }), "{fault:?}");
    }
}
