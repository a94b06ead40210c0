//! Lines of a listing: one JSON object each, tab-separated values, or a table for a terminal.

use crate::failure::Failure;
use crate::output::{HEADING_STYLE, ListStyle, Stdout, stdout_style};

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    /// The column's heading.
    pub(crate) name: String,
    /// Characters on a terminal; longer text loses its end, but in the last column.
    pub(crate) width: usize,
    /// Whether values stand at the right, as numbers do.
    pub(crate) is_right: bool,
}

/// The heading of the numbers of rows.
pub(crate) fn row_heading() -> Heading {
    Heading { name: "row".to_owned(), width: 9, is_right: true }
}

/// A listing that is not JSON. Columns have fixed widths, so that it can stream.
#[derive(Debug)]
pub(crate) struct Sheet {
    headings: Vec<Heading>,
    is_table: bool,
}

/// The end of what was cut.
const CUT: &str = "...";

impl Sheet {
    /// Begins a listing, with a line of headings unless it is JSON.
    pub(crate) fn begin(
        style: ListStyle,
        headings: Vec<Heading>,
        stdout: &mut Stdout,
    ) -> Result<Self, Failure> {
        let sheet = Self { headings, is_table: style == ListStyle::Table };
        let names: Vec<String> =
            sheet.headings.iter().map(|heading| heading.name.clone()).collect();
        match style {
            ListStyle::Json => {}
            ListStyle::Tsv => stdout.line(&sheet.text(&names))?,
            ListStyle::Table => {
                let heading = stdout_style(HEADING_STYLE);
                stdout.line(&format_args!("{heading}{}{heading:#}", sheet.text(&names)))?;
            }
        }
        Ok(sheet)
    }

    /// A line with these cells.
    pub(crate) fn text(&self, cells: &[String]) -> String {
        if !self.is_table {
            return cells.join("\t");
        }
        let mut line = String::new();
        for (at, (cell, heading)) in cells.iter().zip(&self.headings).enumerate() {
            let width = heading.width;
            let is_last = at + 1 == self.headings.len();
            let is_whole = is_last || heading.is_right || cell.chars().count() <= width;
            let cut: String = if !is_whole {
                cell.chars().take(width.saturating_sub(CUT.len())).chain(CUT.chars()).collect()
            } else {
                cell.clone()
            };
            if at > 0 {
                line.push_str("  ");
            }
            line.push_str(&if heading.is_right {
                format!("{cut:>width$}")
            } else if is_last {
                cut
            } else {
                format!("{cut:<width$}")
            });
        }
        line
    }
}
