//! Defects of files and archives, which errors carry.

use std::fmt;

use tbl_format::SampleFormat;
use tbl_format::path::PathDefect;

/// How messages about names start that could lead out of a folder.
const UNSAFE: &str = "unsafe ";

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
