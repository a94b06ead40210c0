//! Tokens in the records of a container.

use std::fmt;

use tbl_io::{BlockMemory, Location, ReadError};

use crate::layout::TokenFormat;
use crate::number::TokenType;

/// A container whose records have tokens, such as a shard of MDS. Each record is
/// a document, and the tokens of one are not next to those of the other.
///
/// [`TokenFile::from_records`](crate::TokenFile::from_records) makes one sequence of them.
pub trait TokenRecords: fmt::Debug + Send + Sync {
    /// The file.
    fn location(&self) -> &Location;

    /// Its format.
    fn format(&self) -> TokenFormat;

    /// The type of the tokens.
    fn number(&self) -> TokenType;

    /// Calls `add` with the number of tokens of each record, in order.
    ///
    /// # Errors
    /// Those of reading and of `add`.
    fn lengths(&self, add: &mut dyn FnMut(u32) -> Result<(), ReadError>) -> Result<(), ReadError>;

    /// Appends `count` tokens of record `record` from token `first` on, little-endian. The record
    /// exists and has them, according to [`lengths`](Self::lengths).
    ///
    /// # Errors
    /// Those of reading, also if the record has other tokens by now.
    fn read(&self, record: u64, first: u64, count: u64, out: &mut Vec<u8>)
    -> Result<(), ReadError>;

    /// The memory for what reading a record unpacks, if others need it too.
    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        None
    }

    /// The byte of the file that errors name for record `record`.
    fn offset(&self, record: u64) -> u64;
}
