//! Windows: a stream of tokens cut into sequences of one length.

use std::num::NonZeroU32;

use crate::file::TokenFile;
use crate::rows::Piece;

/// Sequences of one length, cut from the tokens of a file one after the other.
///
/// The tokens of one file that do not fill a window are in none; windows do not cross files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// The number of tokens in a sequence.
    pub length: NonZeroU32,
    /// True if each window has one more token, so that the next token of each is known.
    pub targets: bool,
    /// The distance from the start of one window to that of the next. Default: the length.
    pub stride: Option<NonZeroU32>,
    /// The place of the first window.
    pub offset: EpochOffset,
}

/// The place of the first window in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EpochOffset {
    /// The first token, in every epoch.
    #[default]
    None,
    /// One of the tokens before the stride, drawn for each epoch, so that windows start elsewhere
    /// every time. A file has one window less where its tokens do not suffice at every offset.
    Random,
}

impl Windows {
    /// Windows of `length` tokens and their targets, from the first token on.
    #[must_use]
    pub const fn new(length: NonZeroU32) -> Self {
        Self { length, targets: true, stride: None, offset: EpochOffset::None }
    }

    /// Tokens of one window, with the further one for targets.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        u64::from(self.length.get()) + u64::from(self.targets)
    }

    /// The distance between windows.
    #[must_use]
    pub fn stride(&self) -> u32 {
        self.stride.unwrap_or(self.length).get()
    }

    /// The number of offsets that an epoch can have.
    #[must_use]
    pub fn offsets(&self) -> u32 {
        match self.offset {
            EpochOffset::None => 1,
            EpochOffset::Random => self.stride(),
        }
    }

    /// The number of windows in `file`: equal for every offset.
    #[must_use]
    pub fn count(&self, file: &TokenFile) -> u64 {
        let need = self.tokens() + u64::from(self.offsets() - 1);
        match file.len().checked_sub(need) {
            Some(rest) => rest / u64::from(self.stride()) + 1,
            None => 0,
        }
    }

    /// The tokens of window `index`, which exists, in an epoch with this offset.
    pub(crate) fn piece(&self, index: u64, offset: u32) -> Piece {
        let first = index * u64::from(self.stride()) + u64::from(offset);
        Piece { first, count: self.tokens(), continues: false }
    }
}
