//! Options of the writer, and the summary that it returns.

use crate::tbl_version::TblVersion;

/// Options of a TBL file.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The version to write; 2 unless told otherwise.
    pub version: TblVersion,
    /// Compress samples that become smaller by it. Photographs do not, so this is off by default.
    pub lz4: bool,
    /// Wait in [`StreamWriter::finish`](crate::StreamWriter::finish) until the disk has the file.
    /// On by default: without it a power failure soon after can lose a file that was reported as
    /// written.
    pub sync: bool,
    /// Replace a file that already has the name.
    pub overwrite: bool,
    /// The most samples that will come, when known. Their index then has its room at the front
    /// and payloads are written once; otherwise they are written, and copied at the end.
    pub sample_count: Option<u64>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: TblVersion::V2,
            lz4: false,
            sync: true,
            overwrite: false,
            sample_count: None,
        }
    }
}

/// A summary of the file that [`StreamWriter::finish`](crate::StreamWriter::finish) wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Samples in the file.
    pub samples: u64,
    /// The file's size.
    pub bytes: u64,
    /// The samples' own bytes together.
    pub sample_bytes: u64,
    /// The bytes they occupy.
    pub stored_bytes: u64,
    /// Samples stored as LZ4 blocks.
    pub compressed_samples: u64,
    /// Samples stored with a row index.
    pub row_indexes: u64,
    /// The data that the file cannot store.
    pub unstored: Unstored,
}

/// Counts of what the file cannot hold, so that a caller can say what was left out. Row indexes are
/// not counted: they can be made again from the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unstored {
    /// Samples that had a key.
    pub keys: u64,
    /// Samples that got another key, since a TAR archive cannot tell them from others by theirs.
    pub renamed: u64,
    /// Samples that had a label.
    pub labels: u64,
    /// Sidecar fields.
    pub fields: u64,
    /// Samples that readers of a TAR archive or a folder pass over: those with hidden names, and
    /// those that are not images among images.
    pub passed_over: u64,
    /// Class names.
    pub class_names: u64,
    /// Metadata blocks of samples and of the file.
    pub metadata_blocks: u64,
}
