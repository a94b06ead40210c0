//! Defects of lists of samples, and their places.

use std::fmt;

use tbl_format::path::PathDefect;

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::location::Location;

/// The place of a defect in a list, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListPlace {
    /// The line in which the row starts, from 1.
    pub line: Option<u64>,
    /// The column.
    pub column: Option<String>,
    /// The offset in bytes.
    pub offset: Option<u64>,
}

impl ListPlace {
    pub(crate) fn line(line: u64) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    pub(crate) fn cell(line: u64, column: &str) -> Self {
        Self { column: Some(column.to_owned()), ..Self::line(line) }
    }

    pub(crate) fn column(column: &str) -> Self {
        Self { column: Some(column.to_owned()), ..Self::default() }
    }

    pub(crate) fn offset(offset: u64) -> Self {
        Self { offset: Some(offset), ..Self::default() }
    }
}

impl fmt::Display for ListPlace {
    /// Each part with a colon, for the front of a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(offset) = self.offset {
            write!(f, "at byte {offset}: ")?;
        }
        match (self.line, &self.column) {
            (Some(line), Some(column)) => {
                write!(f, "line {line}, column `{}`: ", Shown(column.as_bytes()))
            }
            (Some(line), None) => write!(f, "line {line}: "),
            (None, Some(column)) => write!(f, "column `{}`: ", Shown(column.as_bytes())),
            (None, None) => Ok(()),
        }
    }
}

/// A defect of a list of samples: a manifest, a metadata file, annotations, or pairs of files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ListDefect {
    /// The file has no row, and not even names of columns.
    #[error("the file is empty, expected a row with the names of columns")]
    NoHeader,
    /// A quoted cell does not end.
    #[error("the quoted text that starts here does not end")]
    OpenQuote,
    /// A quoted cell is followed by something else than a separator.
    #[error("text follows a closing quote, expected a separator or the end of the line")]
    AfterQuote,
    /// A row is longer or shorter than the row of names.
    #[error("{found} cells, expected {expected}")]
    Ragged { found: usize, expected: usize },
    /// A line of JSON Lines, or a part of a JSON file.
    #[error("{reason}, expected {expected}")]
    Json { reason: String, expected: &'static str },
    /// A name occurs twice.
    #[error("{what} `{}` occurs twice", Shown(name))]
    Twice { what: &'static str, name: Vec<u8> },
    /// The name of a column cannot be that of a field.
    #[error("invalid name of a column: {source}")]
    ColumnName { source: PathDefect },
    /// A column does not exist.
    #[error("no column `{}`, expected one of: {}", Shown(name.as_bytes()), listed(columns))]
    NoColumn { name: String, columns: Vec<String> },
    /// No column has one of the usual names of images.
    #[error("no column names the images; specify one of: {}", listed(columns))]
    NoImageColumn { columns: Vec<String> },
    /// Several columns may name the images.
    #[error("several columns may name the images; specify one of: {}", listed(columns))]
    ImageColumns { columns: Vec<String> },
    /// A cell that has to name a file is empty.
    #[error("no file is named")]
    NoName,
    /// A name leads out of the folder.
    #[error(
        "unsafe path `{}`: {source}; expected a path below {root} (`root` specifies another folder)",
        Shown(name)
    )]
    Path { name: Vec<u8>, root: Location, source: PathDefect },
    /// A name is a URL.
    #[error("`{}` is a URL, expected a path below {root}", Shown(name))]
    Url { name: Vec<u8>, root: Location },
    /// Named files do not exist.
    #[error("{count} named files do not exist, first `{}`", Shown(first))]
    Missing { count: u64, first: Vec<u8> },
    /// Some labels are integers and others are not.
    #[error(
        "the label is `{}`, expected an integer as in line {line}; labels are all integers or all \
         names of classes",
        Shown(found)
    )]
    MixedLabels { found: Vec<u8>, line: u64 },
    /// The integer stands for no label in files.
    #[error("the label is {label}, which means \"no label\" in TBL files")]
    ReservedLabel { label: i64 },
    /// A name stands for several files; the first two.
    #[error(
        "`{}` stands for `{}` and `{}`, expected a name with more folders",
        Shown(name),
        Shown(&files[0]),
        Shown(&files[1])
    )]
    Ambiguous { name: Vec<u8>, files: Box<[Vec<u8>; 2]> },
    /// Two files of one pattern whose stars stand for the same.
    #[error(
        "`{}` and `{}` both have `{}` for the stars, expected one file for each",
        Shown(&files[0]),
        Shown(&files[1]),
        Shown(stars)
    )]
    SameStars { stars: Vec<u8>, files: Box<[Vec<u8>; 2]> },
    /// Files without a partner.
    #[error("{count} of {of} files have no partner in {other}, first `{}`", Shown(first))]
    Unpaired { count: u64, of: u64, other: Location, first: Vec<u8> },
    /// The number of labels is not that of the samples.
    #[error("{found} labels for {expected} samples")]
    LabelCount { found: u64, expected: u64 },
    /// The number of items of a field is not that of the samples.
    #[error("{found} items for {expected} samples")]
    ItemCount { found: u64, expected: u64 },
    /// Samples without a label in a table.
    #[error("{count} of {of} samples have no label here, first `{}`", Shown(first))]
    Unlabelled { count: u64, of: u64, first: Vec<u8> },
    /// Samples of classes that are not among those of another data set.
    #[error(
        "{samples} samples have other classes than the {classes} that are named, first `{}`",
        Shown(class.as_bytes())
    )]
    UnknownClass { samples: u64, class: String, classes: usize },
    /// Labels that have no class names, and therefore no numbers in another data set.
    #[error("labels are numbers without class names, which cannot be those of other classes")]
    NoClasses,
    /// A category to which its source gives no name, among sources that are joined by the names of
    /// categories.
    #[error(
        "an annotation has category {category}, which {}; sources are joined by the names of \
         categories: open a COCO file whose `categories` name it, or a TBL file made of one",
        if *has_names { "the source does not name" } else { "has no name because the source stores none" }
    )]
    UnnamedCategory { category: i64, has_names: bool },
    /// A kind of file that is not read yet.
    #[error("{what} is not read; expected {expected}")]
    Unread { what: String, expected: &'static str },
}

impl ListDefect {
    pub(crate) fn at(self, location: &Location, place: ListPlace) -> ReadError {
        ReadError::List { location: location.clone(), place: Box::new(place), source: self }
    }
}

/// Names that a message lists.
const MAX_LISTED: usize = 32;

fn listed(columns: &[String]) -> String {
    let shown = columns.iter().take(MAX_LISTED).map(|name| Shown(name.as_bytes()).to_string());
    let more = if columns.len() > MAX_LISTED { ", ..." } else { "" };
    shown.collect::<Vec<_>>().join(", ") + more
}

/// Bytes for a message: printable and shortened.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Escaped characters; a message has one line of a terminal's width or two.
        const MAX_CHARS: usize = 80;
        let text = Escaped(self.0.get(..MAX_CHARS).unwrap_or(self.0)).to_string();
        let is_cut = self.0.len() > MAX_CHARS || text.chars().count() > MAX_CHARS;
        text.chars().take(MAX_CHARS).try_for_each(|char| write!(f, "{char}"))?;
        f.write_str(if is_cut { "..." } else { "" })
    }
}
