//! What can go wrong while reading.

use std::fmt;

use tbl_format::path::PathDefect;
use tbl_format::{FormatError, SampleFormat};

use crate::escape::Escaped;
use crate::label::LabelDefect;
use crate::location::Location;

/// How messages about names start that could lead out of a folder.
const UNSAFE: &str = "unsafe ";

/// Why a data set, or one sample of it, cannot be read.
///
/// The message is one line: the file, the sample where there is one, the byte offset, and what
/// was expected. Names are printed through [`Escaped`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    Io {
        /// The file or folder.
        location: Location,
        /// What it said.
        source: std::io::Error,
    },
    /// The path is something else than a regular file.
    NotAFile {
        /// The path.
        location: Location,
        /// What it is.
        found: FileKind,
    },
    /// The path is something else than a folder.
    NotAFolder {
        /// The path.
        location: Location,
        /// What it is.
        found: FileKind,
    },
    /// The bytes of a TBL file break its format.
    Format {
        /// The file.
        location: Location,
        /// Where the offending structure starts.
        offset: u64,
        /// What is wrong with it.
        source: FormatError,
    },
    /// The bytes of a TAR archive break its format.
    Tar {
        /// The archive.
        location: Location,
        /// Where the offending header or record starts.
        offset: u64,
        /// What is wrong with it.
        source: TarDefect,
    },
    /// A TBL file is not one array of raw images.
    NotRaw {
        /// The file.
        location: Location,
        /// The first sample that does not fit in.
        index: u64,
        /// Why not.
        source: RawDefect,
    },
    /// Stored and computed checksum differ.
    Checksum {
        /// The file.
        location: Location,
        /// Where the checked bytes start.
        offset: u64,
        /// What was checked, such as `sample` or `index table`.
        what: &'static str,
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes as they are.
        computed: u32,
    },
    /// A sample number past the end.
    SampleOutOfRange {
        /// The file or folder.
        location: Location,
        /// The number asked for.
        index: u64,
        /// How many there are.
        sample_count: u64,
    },
    /// Something is larger than this reader is willing to take.
    Limit {
        /// The file.
        location: Location,
        /// What is too large, such as `sample bytes`.
        what: &'static str,
        /// The largest accepted value.
        limit: u64,
        /// The value found.
        need: u64,
    },
    /// A label beyond the class names of its source, where sources with different classes are
    /// brought together by name.
    LabelWithoutClass {
        /// The file.
        location: Location,
        /// The sample.
        index: u64,
        /// Its label.
        label: i64,
        /// How many class names its source has.
        class_count: usize,
    },
    /// A stored label cannot be read.
    Label {
        /// The file or folder.
        location: Location,
        /// The member that holds the label.
        member: Vec<u8>,
        /// The defect.
        source: LabelDefect,
    },
    /// Labels are numbers without class names, and those of another source are classes by name.
    UnnamedLabels {
        /// The source with the numbers.
        location: Location,
        /// Its first sample with a label.
        index: u64,
        /// That label.
        label: i64,
        /// The source with the classes.
        other: Location,
    },
    /// Two sources have class folders at different depths and no class in common.
    ClassFolderDepths {
        /// The source whose class folders lie deeper.
        location: Location,
        /// The folder in it that holds the class folders.
        parent: Vec<u8>,
        /// The other source.
        other: Location,
    },
    /// The file is shorter than it was when it was opened.
    ChangedWhileOpen {
        /// The file.
        location: Location,
        /// Where the read started.
        offset: u64,
        /// How many bytes should have been there.
        expected: u64,
    },
    /// One sample cannot be read; the others may be fine.
    Sample {
        /// The sample's number.
        index: u64,
        /// Its name, when the container stores one.
        key: Option<Vec<u8>>,
        /// Why; names the file.
        source: Box<Self>,
    },
}

/// What a path turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    RegularFile,
    /// A directory.
    Directory,
    /// A FIFO (named pipe).
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A symbolic link or something this system has no name for.
    Unknown,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RegularFile => "a regular file",
            Self::Directory => "a directory",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
            Self::Unknown => "no file",
        })
    }
}

/// Why a sample is not part of one array of raw images.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawDefect {
    /// There is no sample at all.
    #[error("the file has no samples")]
    Empty,
    /// Version 1 has no raw images.
    #[error("TBL version 1 has no raw images")]
    Version1,
    /// The sample is encoded or compressed.
    #[error(
        "expected an uncompressed RAW_U8 sample, found {format}{}",
        if *compressed { " as an LZ4 block" } else { "" }
    )]
    Encoded {
        /// Its format.
        format: SampleFormat,
        /// Whether it is an LZ4 block.
        compressed: bool,
    },
    /// The sample has other dimensions than the first one, or none.
    #[error("expected {expected_width}x{expected_height} pixels, found {width}x{height}")]
    Dimensions {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
        /// The first sample's width.
        expected_width: u16,
        /// The first sample's height.
        expected_height: u16,
    },
    /// The sample's size is not `width * height * 3`.
    #[error("expected {expected} bytes of pixels, found {bytes}")]
    Size {
        /// Its size.
        bytes: u64,
        /// What its dimensions ask for.
        expected: u64,
    },
    /// The sample does not follow the one before it directly.
    #[error("expected its bytes at {expected}, found them at {offset}")]
    Gap {
        /// Where its bytes are.
        offset: u64,
        /// Where the sample before ends.
        expected: u64,
    },
}

/// How a TAR archive breaks its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TarDefect {
    /// The block is neither a header nor the end of the archive.
    #[error("not a TAR header: its checksum is {stored}, the bytes give {computed}")]
    Checksum {
        /// The number in the checksum field.
        stored: u64,
        /// The unsigned sum of the header's bytes.
        computed: u64,
    },
    /// A single block of zeros, which neither ends an archive nor is a header, with bytes behind
    /// it that are no header either.
    #[error("a block of zeros where a header should be")]
    ZeroBlock,
    /// A member behind the two zero blocks that end the archive, with no archive around it.
    #[error("a header behind the end of the archive: members are cut off")]
    BehindEnd,
    /// The archive is compressed as a whole.
    #[error("compressed by {by}, expected a plain TAR archive")]
    Compressed {
        /// The compressor.
        by: &'static str,
    },
    /// A field that should be a number is not one.
    #[error("not a TAR header: field {field} is no number")]
    BadNumber {
        /// The field.
        field: &'static str,
    },
    /// The archive ends before the structure does.
    #[error("{what} needs {need} bytes, {have} are left in the file")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Its size.
        need: u64,
        /// What is left of the file.
        have: u64,
    },
    /// A PAX record is not `LENGTH KEY=VALUE` and a line feed.
    #[error("malformed PAX record")]
    BadPaxRecord,
    /// The value of a PAX record that decides where members lie is not usable.
    #[error("PAX record {keyword} has no usable value")]
    BadPaxValue {
        /// The record's keyword.
        keyword: &'static str,
    },
    /// A PAX header or long name is larger than any real one.
    #[error("{what} of {size} bytes, expected at most {limit}")]
    MetadataTooLarge {
        /// The structure.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The largest accepted size.
        limit: u64,
    },
    /// A name that could lead out of the folder that it is joined to.
    #[error("{}{what}: {defect}, expected a relative path without `..`", UNSAFE)]
    UnsafeName {
        /// The kind of name.
        what: &'static str,
        /// What is wrong with it.
        defect: PathDefect,
    },
    /// A PAX header or long name with no member after it.
    #[error("{what} is not followed by a member")]
    Dangling {
        /// The structure.
        what: &'static str,
    },
}

impl ReadError {
    /// The file or folder the error is about.
    pub fn location(&self) -> &Location {
        match self {
            Self::Io { location, .. }
            | Self::NotAFile { location, .. }
            | Self::NotAFolder { location, .. }
            | Self::Format { location, .. }
            | Self::Tar { location, .. }
            | Self::NotRaw { location, .. }
            | Self::Checksum { location, .. }
            | Self::SampleOutOfRange { location, .. }
            | Self::Limit { location, .. }
            | Self::LabelWithoutClass { location, .. }
            | Self::Label { location, .. }
            | Self::UnnamedLabels { location, .. }
            | Self::ClassFolderDepths { location, .. }
            | Self::ChangedWhileOpen { location, .. } => location,
            Self::Sample { source, .. } => source.location(),
        }
    }

    /// The number of the sample the error is about, if it is about one.
    pub fn sample_index(&self) -> Option<u64> {
        match self {
            Self::Sample { index, .. }
            | Self::SampleOutOfRange { index, .. }
            | Self::LabelWithoutClass { index, .. }
            | Self::NotRaw { index, .. } => Some(*index),
            Self::Io { .. }
            | Self::NotAFile { .. }
            | Self::NotAFolder { .. }
            | Self::Format { .. }
            | Self::Tar { .. }
            | Self::Checksum { .. }
            | Self::Limit { .. }
            | Self::Label { .. }
            | Self::UnnamedLabels { .. }
            | Self::ClassFolderDepths { .. }
            | Self::ChangedWhileOpen { .. } => None,
        }
    }

    /// Whether the data is at fault rather than the system or the caller: damage, truncation,
    /// a broken format or a value beyond a limit.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. }
            | Self::Tar { .. }
            | Self::Checksum { .. }
            | Self::Limit { .. }
            | Self::LabelWithoutClass { .. }
            | Self::Label { .. }
            | Self::ChangedWhileOpen { .. } => true,
            Self::Io { .. }
            | Self::NotAFile { .. }
            | Self::NotAFolder { .. }
            | Self::NotRaw { .. }
            | Self::UnnamedLabels { .. }
            | Self::ClassFolderDepths { .. }
            | Self::SampleOutOfRange { .. } => false,
            Self::Sample { source, .. } => source.is_damage(),
        }
    }

    /// Says which sample the error is about, unless it already does.
    #[must_use]
    pub fn for_sample(self, index: u64, key: Option<&[u8]>) -> Self {
        if self.sample_index().is_some() {
            return self;
        }
        Self::Sample { index, key: key.map(<[u8]>::to_vec), source: Box::new(self) }
    }

    /// The message without the file and the sample, for where both are said already.
    pub fn detail(&self) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let mut error = self;
            while let Self::Sample { source, .. } = error {
                error = source;
            }
            error.write_detail(f)
        })
    }

    pub(crate) fn io(location: impl Into<Location>, source: std::io::Error) -> Self {
        Self::Io { location: location.into(), source }
    }

    /// The message without the file's name.
    fn write_detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { source, .. } => write!(f, "{source}"),
            Self::NotAFile { found, .. } => write!(f, "is {found}, expected a regular file"),
            Self::NotAFolder { found, .. } => write!(f, "is {found}, expected a folder"),
            Self::Format { offset, source, .. } => write!(f, "at byte {offset}: {source}"),
            Self::Tar { offset, source, .. } => write!(f, "at byte {offset}: {source}"),
            Self::NotRaw { index, source, .. } => write!(f, "sample {index}: {source}"),
            Self::Checksum { offset, what, stored, computed, .. } => write!(
                f,
                "at byte {offset}: {what} checksum is {stored:#x}, the bytes give {computed:#x}"
            ),
            Self::SampleOutOfRange { index, sample_count, .. } => {
                write!(f, "sample {index} does not exist, expected one of {sample_count}")
            }
            Self::Limit { what, limit, need, .. } => {
                write!(f, "{what} is {need}, expected at most {limit}")
            }
            Self::LabelWithoutClass { index, label, class_count, .. } => write!(
                f,
                "sample {index}: label {label} is no class, expected one of {class_count}"
            ),
            Self::Label { member, source, .. } => {
                write!(f, "{}: {source}", Escaped(member))
            }
            Self::UnnamedLabels { index, label, other, .. } => write!(
                f,
                "labels are numbers (sample {index}: {label}), those of {} are classes by name; \
                 load the two apart, or give both class folders",
                other
            ),
            Self::ClassFolderDepths { parent, other, .. } => write!(
                f,
                "classes are folders in {}, those of {} lie elsewhere and none has the same name; \
                 load the two apart, or bring the class folders to one depth",
                Escaped(parent),
                other
            ),
            Self::ChangedWhileOpen { offset, expected, .. } => write!(
                f,
                "at byte {offset}: expected {expected} bytes, but the file became shorter while \
                 it was open"
            ),
            Self::Sample { index, key, source } => {
                write!(f, "sample {index}")?;
                if let Some(key) = key {
                    let shown = &key[..key.len().min(MAX_KEY_BYTES)];
                    let more = if shown.len() < key.len() { "..." } else { "" };
                    write!(f, " ({}{more})", Escaped(shown))?;
                }
                f.write_str(": ")?;
                source.write_detail(f)
            }
        }
    }
}

/// Bytes of a sample's key that a message shows; keys can be as long as a PAX header.
const MAX_KEY_BYTES: usize = 160;

/// An error without the file and the sample that it is about, for where both are said already.
#[derive(Debug)]
pub(crate) struct Detail(pub(crate) ReadError);

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.detail().fmt(f)
    }
}

impl std::error::Error for Detail {}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location())?;
        self.write_detail(f)
    }
}
