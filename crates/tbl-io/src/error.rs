//! What can go wrong while reading.

use std::path::PathBuf;

/// Why a data set, or one sample of it, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A sample number past the end.
    #[error("{}: sample {index} does not exist, the file has {sample_count}", path.display())]
    SampleOutOfRange {
        /// The file or folder.
        path: PathBuf,
        /// The number asked for.
        index: u64,
        /// How many there are.
        sample_count: u64,
    },
}
