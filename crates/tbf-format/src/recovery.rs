//! The recovery of segments after a crash.

use crate::error::FormatError;
use crate::header::FileHeader;
use crate::segment::Segment;

/// The treatment of a file that a crash may have left.
///
/// ```
/// use tbf_format::Recovery;
///
/// // A crash before the first byte was written.
/// assert_eq!(Recovery::of(&[]), Recovery::Discard);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The segment is whole, as far as opening it can tell.
    Keep,
    /// The segment was not written to its end: make it again from the log.
    Discard,
    /// The segment is damaged, but not by a writer that was interrupted.
    Inspect(FormatError),
}

impl Recovery {
    /// The treatment of the file that is all of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let is_unwritten = match bytes.get(..FileHeader::SIZE) {
            Some(header) => header.iter().all(|&byte| byte == 0),
            None => true,
        };
        match Segment::open(bytes) {
            Ok(_) => Self::Keep,
            Err(_) if is_unwritten => Self::Discard,
            Err(FormatError::Partial) => Self::Discard,
            Err(error) => Self::Inspect(error),
        }
    }
}
