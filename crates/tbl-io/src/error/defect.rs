//! Defects of files and archives, which errors carry.

use std::fmt;

use tbl_format::SampleFormat;
use tbl_format::path::PathDefect;

/// The first words of messages about names that could lead out of a folder.
const UNSAFE: &str = "unsafe ";

/// The kind of file that a path turned out to be.
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

/// The reason why a sample is not part of one array of raw images.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum RawDefect {
    /// The data set has no samples.
    #[error("the file has no samples")]
    Empty,
    /// Version 1 has no raw images.
    #[error("TBL version 1 has no raw images")]
    Version1,
    /// The sample is encoded or compressed.
    #[error(
        "expected an uncompressed RAW_U8 sample, found {format}{}",
        if *compressed { " that is compressed" } else { "" }
    )]
    Encoded {
        format: SampleFormat,
        /// Whether it is compressed.
        compressed: bool,
    },
    /// The sample has other dimensions than the first one, or none.
    #[error("expected {expected_width}x{expected_height} pixels, found {width}x{height}")]
    Dimensions {
        width: u16,
        height: u16,
        /// The first sample's width.
        expected_width: u16,
        /// The first sample's height.
        expected_height: u16,
    },
    /// The sample's size is not `width * height * 3`.
    #[error("expected {expected} bytes of pixels, found {bytes}")]
    Size {
        bytes: u64,
        /// The size that its dimensions require.
        expected: u64,
    },
    /// The sample does not follow the one before it directly.
    #[error("expected its bytes at {expected}, found them at {offset}")]
    Gap {
        /// The offset of its bytes.
        offset: u64,
        /// The offset at which the previous sample ends.
        expected: u64,
    },
}

/// A defect of a file of images of one size, or of the labels next to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ImagesDefect {
    /// The file has MNIST's labels.
    #[error("a file of labels, expected the file of images that they belong to")]
    Labels,
    /// The file of labels is something else.
    #[error("not a file of labels of MNIST, expected the bytes 00 00 08 01")]
    NotLabels,
    /// The file is shorter or longer than its header says, or than whole records are.
    #[error("{what} need {need} bytes, the file has {have}")]
    Length { what: &'static str, need: u64, have: u64 },
    /// No image has this size.
    #[error("images of {width}x{height} pixels, expected 1 to 65535 per side")]
    Size { width: u32, height: u32 },
    /// There are not as many labels as images.
    #[error("{labels} labels, expected one for each of {images} images")]
    LabelCount { labels: u64, images: u64 },
    /// A label is beyond the class names.
    #[error("label {label} is not a class: expected a number below {class_count}")]
    Label { label: u8, class_count: usize },
    /// The file of class names has another number of them.
    #[error("{found} class names, expected {expected}")]
    ClassCount { found: usize, expected: usize },
}

/// A violation of the TAR format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum TarDefect {
    /// The block is neither a header nor the end of the archive.
    #[error("not a TAR header: its checksum is {stored}, the bytes give {computed}")]
    Checksum {
        /// The number in the checksum field.
        stored: u64,
        /// The unsigned sum of the header's bytes.
        computed: u64,
    },
    /// A single block of zeros, which neither ends an archive nor is a header, followed by bytes
    /// that are not a header either.
    #[error("a block of zeros where a header should be")]
    ZeroBlock,
    /// A member after the two zero blocks that end the archive, outside any other archive.
    #[error("a header after the end of the archive: members are cut off")]
    BehindEnd,
    /// The archive is compressed as a whole.
    #[error("compressed by {by}, expected a plain TAR archive")]
    Compressed { by: &'static str },
    /// The file is of another kind.
    #[error("{kind}, expected a TAR archive or a TBL file: {advice}")]
    Foreign { kind: &'static str, advice: &'static str },
    /// A field that should be a number is not one.
    #[error("not a TAR header: field {field} is not a number")]
    BadNumber { field: &'static str },
    /// The archive ends before the structure does.
    #[error("{what} needs {need} bytes, {have} are left in the file")]
    Truncated {
        what: &'static str,
        need: u64,
        /// The bytes left in the file.
        have: u64,
    },
    /// A PAX record is not `LENGTH KEY=VALUE` and a line feed.
    #[error("malformed PAX record")]
    BadPaxRecord,
    /// The value of a PAX record that decides where members lie is not usable.
    #[error("PAX record {keyword} has no usable value")]
    BadPaxValue { keyword: &'static str },
    /// A PAX header or long name is larger than any real one.
    #[error("{what} of {size} bytes, expected at most {limit}")]
    MetadataTooLarge {
        what: &'static str,
        size: u64,
        /// The largest accepted size.
        limit: u64,
    },
    /// A name that could lead out of the folder that it is joined to.
    #[error("{}{what}: {defect}, expected a relative path without `..`", UNSAFE)]
    UnsafeName {
        /// The kind of name.
        what: &'static str,
        defect: PathDefect,
    },
    /// A PAX header or long name with no member after it.
    #[error("{what} is not followed by a member")]
    Dangling { what: &'static str },
}

impl TarDefect {
    /// True if a block was expected to be a header and is not one.
    pub(crate) fn is_about_a_header(&self) -> bool {
        matches!(
            self,
            Self::Checksum { .. } | Self::BadNumber { .. } | Self::Truncated { what: "header", .. }
        )
    }
}
