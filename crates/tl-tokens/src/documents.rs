//! The documents of a file.

pub(crate) mod items;
pub(crate) mod megatron;

use tbl_io::{Location, ReadError, TokensDefect};

use crate::starts::Starts;
use items::Items;
use megatron::Index;

/// The documents of a file: stretches of its tokens that belong together.
///
/// Those of an index are neither read nor checked before they are asked for, so opening takes as long
/// for a hundred million documents as for one.
#[derive(Debug)]
pub struct Documents {
    places: Places,
}

/// The places of documents.
#[derive(Debug)]
enum Places {
    /// In the `.idx` of Megatron-LM.
    Index(Index),
    /// At the front of a LitData chunk.
    Items(Items),
    /// In memory, for files that have no places: they were found when the file was opened.
    Starts { starts: Starts, location: Location },
}

impl From<Index> for Documents {
    fn from(index: Index) -> Self {
        Self { places: Places::Index(index) }
    }
}

impl From<Items> for Documents {
    fn from(items: Items) -> Self {
        Self { places: Places::Items(items) }
    }
}

impl Documents {
    pub(crate) fn from_starts(starts: Starts, location: Location) -> Self {
        Self { places: Places::Starts { starts, location } }
    }

    /// The documents in memory, if they are.
    pub(crate) fn starts(&self) -> Option<&Starts> {
        match &self.places {
            Places::Starts { starts, .. } => Some(starts),
            Places::Index(_) | Places::Items(_) => None,
        }
    }

    /// The number of documents.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.places {
            Places::Index(index) => index.len(),
            Places::Items(items) => items.len(),
            Places::Starts { starts, .. } => starts.len(),
        }
    }

    /// True without documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first token of document `document`, and the number of its tokens.
    ///
    /// # Errors
    /// [`TokensDefect::Document`] if they do not lie within the tokens,
    /// [`TokensDefect::OutOfRange`], and those of reading.
    pub fn place(&self, document: u64) -> Result<(u64, u64), ReadError> {
        let place = match &self.places {
            _ if document >= self.len() => None,
            Places::Index(index) => return index.place(document),
            Places::Items(items) => return items.place(document),
            Places::Starts { starts, .. } => starts.place(document),
        };
        place.ok_or_else(|| {
            let what = "document";
            let source = TokensDefect::OutOfRange { what, number: document, count: self.len() };
            self.defect(0, source)
        })
    }

    /// Fills `lengths` with those of the documents from `first` on, which exist.
    ///
    /// # Errors
    /// As for [`place`](Self::place), of the first document that has no length of this file.
    pub(crate) fn read_lengths(&self, first: u64, lengths: &mut [u32]) -> Result<(), ReadError> {
        match &self.places {
            Places::Index(index) => index.read_lengths(first, lengths),
            Places::Items(items) => items.read_lengths(first, lengths),
            Places::Starts { starts, .. } => {
                for (out, document) in lengths.iter_mut().zip(first..) {
                    let (_, length) = starts.place(document).unwrap_or_default();
                    *out = u32::try_from(length).unwrap_or(u32::MAX);
                }
                Ok(())
            }
        }
    }

    /// The error of a document, at the place in the file that has its length.
    pub(crate) fn defect(&self, document: u64, source: TokensDefect) -> ReadError {
        let offset = match &self.places {
            Places::Index(index) => index.length_at(document),
            Places::Items(_) => items::offset_at(document),
            Places::Starts { .. } => 0,
        };
        ReadError::Tokens { location: self.location().clone(), offset, source }
    }

    /// The error of something that is larger than a limit.
    pub(crate) fn limit(&self, what: &'static str, limit: u64, need: u64) -> ReadError {
        ReadError::Limit { location: self.location().clone(), what, limit, need }
    }

    fn location(&self) -> &Location {
        match &self.places {
            Places::Index(index) => index.location(),
            Places::Items(items) => items.location(),
            Places::Starts { location, .. } => location,
        }
    }
}
