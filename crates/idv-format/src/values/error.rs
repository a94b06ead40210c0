//! The errors of storing and joining values.

use alloc::string::String;

/// The reason why values cannot be stored or joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ValuesError {
    /// The values are of another kind than the codec stores.
    #[error("values are {values}, the codec stores {codec}")]
    Kind { codec: String, values: &'static str },
    /// A missing boolean, for which one bit has no room.
    #[error("boolean {item} is missing, and the 1-bit encoding cannot store missing values")]
    MissingBoolean { item: usize },
    /// A boolean that is neither 0 nor 1 nor 2.
    #[error("boolean {item} is {found}, expected 0, 1 or 2")]
    BooleanValue { item: usize, found: u8 },
    /// A vector of another length than its type has.
    #[error("vector {vector} has {found} slots, its type has {expected}")]
    VectorLength { vector: usize, expected: u32, found: u32 },
    /// A vector whose items and their slots do not fit together.
    #[error("vector {vector} of {length} slots has {items} items, or their slots are not in order")]
    VectorItems {
        vector: usize,
        length: u32,
        /// How many items it was given.
        items: usize,
    },
    /// Vectors as items of vectors.
    #[error("vectors cannot be items of vectors")]
    NestedVectors,
    /// More than a block, or an array of values, can hold.
    #[error("{found} {what}, expected at most {limit}")]
    TooMany { what: &'static str, found: u64, limit: u64 },
}
