//! Sequences: how the tokens of a file become samples.

use std::num::NonZeroU32;

use crate::windows::Windows;

/// Documents of a window where each has its own rows.
const ALONE: NonZeroU32 = NonZeroU32::new(1 << 17).expect("not zero");

/// The sequences that the tokens of a file are cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sequences {
    /// The stream of all tokens, cut every so many tokens.
    Windows(Windows),
    /// One document per row.
    Documents(DocumentRows),
    /// Several documents per row, as many as fit.
    Packed(PackedRows),
}

/// One document per row, with padding after it. Row `i` has document `i`, unless long documents are
/// [split](Long::Split).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DocumentRows {
    /// The number of tokens in a row.
    pub length: NonZeroU32,
    /// True if rows have the next token of each, too.
    pub targets: bool,
    /// The treatment of longer documents.
    pub long: Long,
    /// The fill of rows.
    pub fill: Fill,
}

/// Several documents per row. The rows are found when the file is opened, as a function of the
/// documents' lengths and of these settings alone, and are the same in every epoch.
///
/// Documents are taken in windows of neighbours, and those of one window share rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackedRows {
    /// The number of tokens in a row.
    pub length: NonZeroU32,
    /// True if rows have the next token of each, too.
    pub targets: bool,
    /// The number of documents whose rows are found together.
    pub window: NonZeroU32,
    /// The choice of the row for each document.
    pub strategy: Packing,
    /// The treatment of longer documents; [`Packing::Split`] cuts them anyway.
    pub long: Long,
    /// The fill of rows.
    pub fill: Fill,
}

/// The values of a row where it has no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    /// The token after the last document.
    pub pad: i64,
    /// The target where there is none: after the last document, and of the last token of each.
    pub ignore: i64,
}

impl Default for Fill {
    /// Tokens of 0, and targets of -100, which the losses of PyTorch leave out.
    fn default() -> Self {
        Self { pad: 0, ignore: -100 }
    }
}

impl DocumentRows {
    /// The same as packed rows that have one document each.
    pub(crate) const fn alone(&self) -> PackedRows {
        let Self { length, targets, long, fill } = *self;
        PackedRows { targets, window: ALONE, long, fill, ..PackedRows::new(length) }
    }
}

impl PackedRows {
    /// Rows of `length` tokens and their targets by best fit, in windows of 100,000 documents.
    #[must_use]
    pub const fn new(length: NonZeroU32) -> Self {
        let window = NonZeroU32::new(100_000).expect("not zero");
        let fill = Fill { pad: 0, ignore: -100 };
        let strategy = Packing::BestFit;
        Self { length, targets: true, window, strategy, long: Long::Truncate, fill }
    }
}

/// The choice of the row for each document of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// Documents in their order, each into the first row with room for it.
    FirstFit,
    /// The longest documents first, each into the fullest row with room for it.
    #[default]
    BestFit,
    /// Documents in their order one after the other, cut where a row is full. Windows are not used.
    Split,
}

/// The treatment of documents that are longer than a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Long {
    /// Their first tokens are used, and the others left out.
    #[default]
    Truncate,
    /// They are cut into pieces as long as a row, and a shorter one.
    Split,
    /// They are an error: of the row, or where documents are packed, of opening the file.
    Error,
}

impl Sequences {
    /// The number of tokens in a row, without a further one for the last target.
    #[must_use]
    pub const fn length(&self) -> u32 {
        match self {
            Self::Windows(windows) => windows.length.get(),
            Self::Documents(rows) => rows.length.get(),
            Self::Packed(rows) => rows.length.get(),
        }
    }

    /// True if rows have the next token of each.
    #[must_use]
    pub const fn targets(&self) -> bool {
        match self {
            Self::Windows(windows) => windows.targets,
            Self::Documents(rows) => rows.targets,
            Self::Packed(rows) => rows.targets,
        }
    }

    /// The number of offsets that an epoch can have; 1 for documents.
    #[must_use]
    pub fn offsets(&self) -> u32 {
        match self {
            Self::Windows(windows) => windows.offsets(),
            Self::Documents(_) | Self::Packed(_) => 1,
        }
    }

    /// The fill of rows of documents.
    #[must_use]
    pub const fn fill(&self) -> Option<Fill> {
        match self {
            Self::Windows(_) => None,
            Self::Documents(rows) => Some(rows.fill),
            Self::Packed(rows) => Some(rows.fill),
        }
    }

    /// True if documents and not the stream decide where sequences begin.
    #[must_use]
    pub const fn has_documents(&self) -> bool {
        match self {
            Self::Windows(_) => false,
            Self::Documents(_) | Self::Packed(_) => true,
        }
    }
}

impl From<Windows> for Sequences {
    fn from(windows: Windows) -> Self {
        Self::Windows(windows)
    }
}
