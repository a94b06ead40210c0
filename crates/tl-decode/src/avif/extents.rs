//! The places of an item's data in a file, which is joined only when it is decoded.

use std::borrow::Cow;

use super::boxes::Bytes;
use crate::error::DecodeError;

/// The data of an item or of a track's picture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data<'a> {
    /// One piece of the file.
    Whole(&'a [u8]),
    /// Several pieces.
    Pieces(Extents<'a>),
}

/// The extents of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents<'a> {
    source: Bytes<'a>,
    /// The extents as `iloc` has them.
    entries: Bytes<'a>,
    form: ExtentForm,
    count: u16,
    /// The bytes of all pieces.
    length: u64,
}

/// The sizes of the numbers of an extent in bytes, and what is added to its offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtentForm {
    pub(super) index: u8,
    pub(super) offset: u8,
    pub(super) length: u8,
    pub(super) base: u64,
}

impl<'a> Data<'a> {
    /// Checks the places of `count` extents at the start of `entries`. Nothing is copied.
    pub(super) fn find(
        source: Bytes<'a>,
        entries: Bytes<'a>,
        form: ExtentForm,
        count: u16,
    ) -> Result<Self, DecodeError> {
        let mut extents = Extents { source, entries, form, count, length: 0 };
        let mut filled = 0;
        let mut only: &'a [u8] = &[];
        for piece in extents.pieces() {
            let piece = piece?;
            extents.length = extents.length.saturating_add(piece.len() as u64);
            if !piece.is_empty() {
                filled += 1;
                only = piece;
            }
        }
        Ok(if filled > 1 { Self::Pieces(extents) } else { Self::Whole(only) })
    }

    /// The bytes of all pieces.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Pieces(extents) => extents.length,
        }
    }

    /// The bytes that [`Data::join`] copies, with one for each piece.
    pub(super) fn copied(&self) -> u64 {
        match self {
            Self::Whole(_) => 0,
            Self::Pieces(extents) => extents.length.saturating_add(extents.count.into()),
        }
    }

    /// The bytes in one piece. The caller has charged [`Data::copied`].
    pub(super) fn join(&self) -> Result<Cow<'a, [u8]>, DecodeError> {
        match self {
            Self::Whole(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Pieces(extents) => {
                let mut whole = Vec::new();
                for piece in extents.pieces() {
                    whole.extend_from_slice(piece?);
                }
                Ok(Cow::Owned(whole))
            }
        }
    }
}

impl<'a> Extents<'a> {
    fn pieces(&self) -> impl Iterator<Item = Result<&'a [u8], DecodeError>> + use<'a> {
        let Self { source, mut entries, form, count, .. } = *self;
        (0..count).map(move |_| {
            let _index = entries.sized(form.index)?;
            let offset = entries.sized(form.offset)?.saturating_add(form.base);
            let length = entries.sized(form.length)?;
            let mut rest = source.after(offset)?;
            let length = if length == 0 { rest.data.len() as u64 } else { length };
            Ok(rest.part(length)?.data)
        })
    }
}
