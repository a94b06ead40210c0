//! The work on every sample.

use tl_transform::Recipe;

use crate::table::Columns;
use crate::tokens::TokenWork;

/// The work on every sample.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Work {
    /// The stored bytes, read and checked but not decoded.
    Bytes,
    /// The stored bytes where they lie in the mapped files, neither copied nor checked against a
    /// checksum, where the container has them as they are; otherwise as [`Bytes`](Self::Bytes).
    Views,
    /// The decoded image, put through a recipe.
    Images(Recipe),
    /// Columns of the rows of a table.
    Columns(Columns),
    /// Sequences of tokens.
    Tokens(TokenWork),
}
