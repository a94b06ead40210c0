//! The errors of the decoder.

use thiserror::Error;

/// The reason why data has no pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Error {
    /// The data is not what AV1 allows.
    #[error("not valid AV1")]
    Invalid,
    /// A feature that the decoder lacks.
    #[error("a feature that is not supported")]
    Unsupported,
    /// No sequence header came before the first picture.
    #[error("no sequence header before the first picture")]
    NoSequenceHeader,
    /// Decoding would take more memory than allowed; none was taken.
    #[error("decoding takes {need} bytes, {max} are allowed")]
    TooLarge { max: u64, need: u64 },
    /// Data that shows more than one picture, which packets of containers and images do not.
    #[error("several pictures in a packet")]
    SeveralPictures,
    /// A picture that is larger than its sequence header says, and than allowed.
    #[error("a picture that is larger than its sequence header says")]
    PictureTooLarge,
    /// Memory that could not be had.
    #[error("out of memory")]
    OutOfMemory,
    /// An error with a number of rav1d's.
    #[error("error {0}")]
    Other(i32),
}
