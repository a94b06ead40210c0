//! Defects of a CSV file.

use super::rows::Position;

/// A defect of a CSV file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CsvError {
    #[error("{at}: the quote that opens this cell is never closed")]
    Unclosed { at: Position },
    #[error(
        "{at}: text after the closing quote of a cell, expected a comma or the end of the line \
         (write a quote within a cell as two)"
    )]
    AfterQuote { at: Position },
    #[error(
        "{at}: quote within a cell that does not start with one (put the cell in quotes, and write \
         a quote within it as two)"
    )]
    StrayQuote { at: Position },
    #[error("{at}: empty line, expected {expected} cells as in the header")]
    BlankLine { at: Position, expected: usize },
    #[error("{at}: row of {found} cells, expected {expected} as in the header")]
    Width { at: Position, found: usize, expected: usize },
    #[error("{at}: row of more than {limit} cells")]
    Columns { at: Position, limit: usize },
    #[error("{at}: row of more than {limit} bytes, reached in cell {cell}")]
    RowBytes { at: Position, cell: usize, limit: usize },
    #[error("{at}: cell {cell} is not UTF-8")]
    NotUtf8 { at: Position, cell: usize },
    #[error("the header is missing")]
    NoHeader,
    #[error(
        "columns {first} and {second} are both named {name:?} (rename one, or choose other \
         columns)"
    )]
    SameName { name: String, first: usize, second: usize },
    #[error(
        "column {name:?} is apart from the vector {vector:?}: slots must follow each other in \
         order, from .0 on (reorder or rename the columns)"
    )]
    Slot { name: String, vector: String },
}

/// Characters of a name or a cell in a message.
const SHOWN_CHARS: usize = 40;

/// The beginning of a name or a cell, for a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}
