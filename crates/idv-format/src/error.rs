//! The errors of the bytes of an IDV file.

use alloc::string::String;

use crate::header::Version;
use crate::toc::Compression;

/// The reason why bytes are not a valid IDV file.
///
/// An `offset` counts from the first byte of the file in header, table of contents, metadata and
/// lookup tables, and from the first byte of the uncompressed block inside a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum FormatError {
    /// The bytes end before the structure does.
    #[error("{what} at {offset} needs {need} bytes, found {have}")]
    Truncated { what: &'static str, offset: u64, need: u64, have: u64 },
    /// A signature is missing.
    #[error("{what} at {offset} is {found:016x}, expected {expected:016x}")]
    Signature {
        what: &'static str,
        offset: u64,
        /// The eight bytes there, as a little-endian number.
        found: u64,
        expected: u64,
    },
    /// The file asks for a newer reader than its own version.
    #[error("compatible version {compatible} is above the file's version {version}")]
    CompatibleVersion {
        version: Version,
        /// The version a reader needs to know.
        compatible: Version,
    },
    /// A version that was never released.
    #[error("version {version} is older than {oldest}")]
    OldVersion {
        version: Version,
        /// The oldest one there may be.
        oldest: Version,
    },
    /// A reader needs to know a version that this one does not.
    #[error("reading requires version {compatible}, this reader knows {oldest} to {newest}")]
    UnknownVersion {
        /// The version a reader needs to know.
        compatible: Version,
        /// The oldest one that can be read.
        oldest: Version,
        /// The newest one that can be read.
        newest: Version,
    },
    /// A number is negative that cannot be.
    #[error("{what} at {offset} is {found}, expected 0 or more")]
    Negative { what: &'static str, offset: u64, found: i64 },
    /// A number lies outside what the file leaves room for.
    #[error("{what} at {offset} is {found}, expected {low} to {high}")]
    OutOfRange { what: &'static str, offset: u64, found: i64, low: u64, high: u64 },
    /// A LEB128 number with more bytes or bits than its type has.
    #[error("{what} at {offset} is not a LEB128 number of {bits} bits")]
    Leb128 { what: &'static str, offset: u64, bits: u32 },
    /// A string that is not UTF-8.
    #[error("{what} at {offset} is not UTF-8 from byte {valid_up_to} on")]
    Utf8 {
        what: &'static str,
        offset: u64,
        /// How many of its bytes are UTF-8.
        valid_up_to: u64,
    },
    /// A string is empty that names something.
    #[error("{what} at {offset} is empty")]
    Empty { what: &'static str, offset: u64 },
    /// A column has rows but no rows in a block.
    #[error("rows per block at {offset} are 0 in a file of {rows} rows")]
    RowsPerBlock { offset: u64, rows: u64 },
    /// A codec's parameters take another size than is stated for them.
    #[error("codec {codec} at {offset} has {declared} bytes of parameters and uses {used}")]
    CodecParameters { codec: String, offset: u64, declared: u64, used: u64 },
    /// A key over values that are not unsigned integers, or a vector of vectors.
    #[error("codec {outer} at {offset} cannot have items of {inner}")]
    CodecItem { outer: &'static str, offset: u64, inner: String },
    /// A key type without values, or with more than its numbers can tell apart.
    #[error("key count at {offset} is {count}, expected 1 to {max}")]
    KeyCount {
        offset: u64,
        count: i128,
        /// The largest value of its type.
        max: u64,
    },
    /// An old key type that is neither contiguous nor unbounded.
    #[error("old key at {offset} has contiguity {contiguous} and count {count}")]
    OldKey {
        offset: u64,
        /// The flag: 1 for contiguous, 0 for not, nothing else.
        contiguous: u8,
        count: i32,
    },
    /// A vector type with more slots than can be counted.
    #[error("vector dimensions at {offset} multiply to more than {limit}")]
    VectorSize { offset: u64, limit: u64 },
    /// Two entries of a column's metadata are of one kind.
    #[error("metadata kind {kind} at {offset} is a duplicate")]
    DuplicateKind { kind: String, offset: u64 },
    /// A count or size disagrees with another one.
    #[error("{what} at {offset} is {found}, expected {expected}")]
    Count {
        what: &'static str,
        offset: u64,
        /// The count that follows from the rest.
        expected: u64,
        found: i64,
    },
    /// Bytes are left in a block after its last value.
    #[error("{bytes} bytes are left at {offset} after the last value")]
    Leftover { offset: u64, bytes: u64 },
    /// The end of a text lies before its start, or a missing text has a width.
    #[error("text {item} ends at {end}, the one before it at {previous}")]
    TextBoundary {
        /// The text's number in the block.
        item: u64,
        end: u32,
        previous: u32,
    },
    /// A boolean with the pattern that means nothing.
    #[error("boolean {item} has the pattern 3")]
    BooleanPattern {
        /// The value's number in the block.
        item: u64,
    },
    /// The explicit items of a vector are not in order, or beyond its length.
    #[error("index {index} of vector {vector} follows {previous} in a length of {length}")]
    VectorIndex {
        /// The vector's number in the block.
        vector: u64,
        index: i64,
        /// The index before it, -1 for the first.
        previous: i64,
        length: u64,
    },
    /// A sparse vector with as many explicit items as it is long, or more.
    #[error("vector {vector} of length {length} has {count} explicit items")]
    VectorCount {
        /// The vector's number in the block.
        vector: u64,
        length: u64,
        count: i64,
    },
    /// Compressed bytes that cannot be inflated.
    #[error("{compression} data of {stored} bytes is damaged after {inflated} bytes")]
    Damaged {
        compression: Compression,
        stored: u64,
        /// How many bytes came out of them before.
        inflated: u64,
    },
    /// Compressed bytes that end before the data does.
    #[error("{compression} data of {stored} bytes does not end after {inflated} bytes")]
    Unended {
        compression: Compression,
        stored: u64,
        /// How many bytes came out of them.
        inflated: u64,
    },
    /// Bytes are left after the end of the compressed data.
    #[error("{compression} data of {stored} bytes has {bytes} bytes after its end")]
    Trailing { compression: Compression, stored: u64, bytes: u64 },
    /// A block has another size than its lookup table or its number of rows says.
    #[error("block has {found} bytes, expected {expected}")]
    BlockSize {
        /// The size found; of compressed blocks at least this.
        found: u64,
        expected: u64,
    },
    /// Something is larger than the caller or this reader takes.
    #[error("{what} take {need}, the limit is {limit}")]
    Limit { what: &'static str, need: u64, limit: u64 },
}
