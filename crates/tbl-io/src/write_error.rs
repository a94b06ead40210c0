//! Errors of writing.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tbl_format::FormatError;
use tbl_format::path::PathDefect;

use crate::escape::Escaped;
use crate::writer::EncodeError;

/// An error that prevents writing a data set. The final name is then as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum WriteError {
    /// The operating system refused: no space, no permission, or the file exists already.
    #[error("{}: {source}", Escaped(path.as_os_str().as_bytes()))]
    Io {
        /// The file that was to be written.
        path: PathBuf,
        source: std::io::Error,
    },
    /// A name that is not written into a TAR archive.
    #[error(
        "{}: cannot store a member called {}: {defect}",
        Escaped(path.as_os_str().as_bytes()),
        Escaped(name)
    )]
    MemberName {
        /// The archive that was to be written.
        path: PathBuf,
        name: Vec<u8>,
        defect: NameDefect,
    },
    /// The name of a repaired file is that of another format. A repair keeps the format.
    #[error(
        "{}: a repair keeps the format, expected a name that ends with .{fitting}; tl convert \
         changes the format of the repaired file",
        Escaped(path.as_os_str().as_bytes())
    )]
    OtherFormat {
        /// The file that was to be written.
        path: PathBuf,
        /// The extension of the format.
        fitting: &'static str,
    },
    /// A sample that the format cannot hold.
    #[error("{}: sample {index}: {source}", Escaped(path.as_os_str().as_bytes()))]
    Sample {
        /// The file that was to be written.
        path: PathBuf,
        /// The number the sample would have had.
        index: u64,
        source: EncodeError,
    },
    /// More samples than were announced, or than the format can count.
    #[error("{}: more than {limit} samples", Escaped(path.as_os_str().as_bytes()))]
    TooManySamples {
        /// The file that was to be written.
        path: PathBuf,
        limit: u64,
    },
    /// A class of boxes whose name has no place in the list of names, which starts at 0.
    #[error(
        "{}: category {number} has a name, which the file has room for from 0 to 65535: number \
         categories from 0 on (Coco::dense, `--dense-categories`, dense=True)",
        Escaped(path.as_os_str().as_bytes())
    )]
    UnlistedCategory {
        /// The file that was to be written.
        path: PathBuf,
        number: i64,
    },
    /// The file as a whole is beyond what the format can hold.
    #[error("{}: {source}", Escaped(path.as_os_str().as_bytes()))]
    Format {
        /// The file that was to be written.
        path: PathBuf,
        source: FormatError,
    },
    /// A metadata block cannot be added.
    #[error(
        "{}: metadata of {}: {source}",
        Escaped(path.as_os_str().as_bytes()),
        sample.map_or_else(|| "the file".to_owned(), |sample| format!("sample {sample}"))
    )]
    Metadata {
        /// The file that was to be written.
        path: PathBuf,
        /// The sample; `None` for the whole file.
        sample: Option<u64>,
        source: MetadataDefect,
    },
    /// The writer was used after an I/O error.
    #[error("{}: cannot continue after a failed write", Escaped(path.as_os_str().as_bytes()))]
    AfterFailure {
        /// The file that was to be written.
        path: PathBuf,
    },
}

/// The reason why a metadata block cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataDefect {
    /// A custom block that readers would take for one of ours.
    #[error("a custom block must not start with TBLX, which marks blocks that the writer makes")]
    Reserved,
    /// A sample that has not been written.
    #[error("expected a sample below {sample_count}, the number of samples written so far")]
    NoSample {
        /// The samples written so far.
        sample_count: u64,
    },
    /// More blocks than readers accept for this number of samples.
    #[error(
        "the file has more than the {limit} blocks (fields included) that readers accept for this number of samples"
    )]
    TooMany {
        /// The most that readers accept.
        limit: u64,
    },
    /// The data is larger than the format can say.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// The reason why a name is not written into a TAR archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameDefect {
    /// It is empty, or could lead out of the folder that the archive is extracted to.
    #[error(transparent)]
    Path(#[from] PathDefect),
    /// A final slash, which makes readers take the member for a folder.
    #[error("it ends in a slash, which marks a folder")]
    Folder,
    /// Beyond what readers accept in an extended header (1 MiB).
    #[error("it is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
}

/// Longest member name that is written. Readers limit an extended header to 1 MiB.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 19;
