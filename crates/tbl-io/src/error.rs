//! Errors of reading.

mod defect;
mod rows;
mod tokens;

use std::fmt;

use tbl_format::FormatError;
use tbl_format::path::PathDefect;

use crate::escape::Escaped;
use crate::kind::ErrorKind;
use crate::label::LabelDefect;
use crate::list_error::{ListDefect, ListPlace};
use crate::location::Location;
use crate::ranges::{Pin, RangeFault};

pub use defect::{FileKind, ImagesDefect, RawDefect, TarDefect};
pub use rows::RowsDefect;
pub use tokens::TokensDefect;

/// An error that prevents reading a data set or one of its samples.
///
/// The message is one line: the file, the sample where there is one, the byte offset, and what
/// was expected. Names are printed through [`Escaped`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ReadError {
    /// The operating system refused.
    Io {
        /// The file or folder.
        location: Location,
        source: std::io::Error,
    },
    /// The path is something else than a regular file.
    NotAFile { location: Location, found: FileKind },
    /// The path is something else than a folder.
    NotAFolder { location: Location, found: FileKind },
    /// The bytes of a TBL file break its format.
    Format { location: Location, offset: u64, source: FormatError },
    /// The bytes of a TAR archive break its format.
    Tar { location: Location, offset: u64, source: TarDefect },
    /// A file that is compressed as a whole is damaged, or more than this reader is willing to
    /// unpack.
    Compressed {
        location: Location,
        /// The offset in the compressed file up to which it was unpacked.
        offset: u64,
        /// The program that compresses so.
        by: &'static str,
        source: std::io::Error,
    },
    /// A file of images of one size is damaged, or a file next to it.
    Images { location: Location, offset: u64, source: ImagesDefect },
    /// The bytes of a Parquet or an Arrow file break its format, or none of its columns can be samples.
    Rows { location: Location, offset: u64, source: RowsDefect },
    /// Two files declare different classes for the same numbers.
    OtherClasses {
        location: Location,
        /// The file with the other classes.
        other: Location,
        /// The first number whose classes differ.
        label: usize,
        classes: Box<ClassPair>,
    },
    /// A file of tokens is damaged, or is not what the caller says.
    Tokens { location: Location, offset: u64, source: TokensDefect },
    /// A TBL file is not one array of raw images.
    NotRaw {
        location: Location,
        /// The first sample that does not fit in.
        index: u64,
        source: RawDefect,
    },
    /// Stored and computed checksum differ.
    Checksum {
        location: Location,
        offset: u64,
        what: &'static str,
        /// The checksum in the file.
        stored: u32,
        /// The checksum of the bytes as they are.
        computed: u32,
    },
    /// A list of samples, such as a manifest, breaks its format, or names what does not exist.
    List { location: Location, place: Box<ListPlace>, source: ListDefect },
    /// A sample number past the end.
    SampleOutOfRange {
        /// The file or folder.
        location: Location,
        /// The number asked for.
        index: u64,
        sample_count: u64,
    },
    /// Something is larger than this reader is willing to take.
    Limit {
        location: Location,
        what: &'static str,
        /// The largest accepted value.
        limit: u64,
        need: u64,
    },
    /// A label beyond the class names of its source, where sources with different classes are
    /// brought together by name.
    LabelWithoutClass { location: Location, index: u64, label: i64, class_count: usize },
    /// A stored label cannot be read.
    Label {
        /// The file or folder.
        location: Location,
        /// The member that holds the label.
        member: Vec<u8>,
        source: LabelDefect,
    },
    /// Labels are numbers without class names, and those of another source are classes by name.
    UnnamedLabels {
        /// The source with the numbers.
        location: Location,
        /// Its first sample with a label.
        index: u64,
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
        other: Location,
    },
    /// The file is shorter than it was when it was opened.
    ChangedWhileOpen { location: Location, offset: u64, expected: u64 },
    /// An object was replaced in its store since it was opened, or a file or an object since it was
    /// indexed.
    ObjectChanged {
        location: Location,
        /// The version that was opened or indexed.
        expected: Pin,
        /// The current version.
        found: Pin,
        /// The shard index that it was opened by.
        index: Option<Location>,
    },
    /// A store did not deliver a range of an object.
    Remote { location: Location, offset: u64, expected: u64, source: RangeFault },
    /// A store did not open or list an object.
    Store { location: Location, source: RangeFault },
    /// A URL whose store is not known here.
    NoStore {
        location: Location,
        /// The schemes of the known stores.
        schemes: Vec<String>,
    },
    /// A store lists a name that could lead out of the folder.
    UnsafeObject { location: Location, name: Vec<u8>, source: PathDefect },
    /// An object of a store is asked for as a mapping, and no local file has its bytes.
    NotMapped { location: Location },
    /// One sample cannot be read; the others may be fine.
    Sample {
        index: u64,
        /// Its name, when the container stores one.
        key: Option<Vec<u8>>,
        source: Box<Self>,
    },
}

/// The classes that two files have for the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPair {
    /// The class in the file that the error is about; `None` if the number is not a class.
    pub found: Option<String>,
    /// The class in the other file.
    pub expected: Option<String>,
}

impl ClassPair {
    fn write(&self, f: &mut fmt::Formatter<'_>, other: &Location, label: usize) -> fmt::Result {
        let name = |name: &Option<String>| match name {
            Some(name) => format!("class {}", Escaped(name.as_bytes())),
            None => "not a class".to_owned(),
        };
        write!(
            f,
            "label {label} is {}, in {other} it is {}; files that declare their classes must \
             declare the same ones",
            name(&self.found),
            name(&self.expected)
        )
    }
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
            | Self::Compressed { location, .. }
            | Self::Images { location, .. }
            | Self::Rows { location, .. }
            | Self::OtherClasses { location, .. }
            | Self::Tokens { location, .. }
            | Self::NotRaw { location, .. }
            | Self::List { location, .. }
            | Self::Checksum { location, .. }
            | Self::SampleOutOfRange { location, .. }
            | Self::Limit { location, .. }
            | Self::LabelWithoutClass { location, .. }
            | Self::Label { location, .. }
            | Self::UnnamedLabels { location, .. }
            | Self::ClassFolderDepths { location, .. }
            | Self::ObjectChanged { location, .. }
            | Self::Remote { location, .. }
            | Self::Store { location, .. }
            | Self::NoStore { location, .. }
            | Self::UnsafeObject { location, .. }
            | Self::NotMapped { location }
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
            | Self::Compressed { .. }
            | Self::Images { .. }
            | Self::Rows { .. }
            | Self::OtherClasses { .. }
            | Self::Tokens { .. }
            | Self::Checksum { .. }
            | Self::List { .. }
            | Self::Limit { .. }
            | Self::Label { .. }
            | Self::UnnamedLabels { .. }
            | Self::ClassFolderDepths { .. }
            | Self::ObjectChanged { .. }
            | Self::Remote { .. }
            | Self::Store { .. }
            | Self::NoStore { .. }
            | Self::UnsafeObject { .. }
            | Self::NotMapped { .. }
            | Self::ChangedWhileOpen { .. } => None,
        }
    }

    /// Whether the error describes the data set, as damage and a missing file do, rather than a
    /// fault that may be gone at the next attempt.
    pub fn is_lasting(&self) -> bool {
        if let Self::Sample { source, .. } = self {
            return source.is_lasting();
        }
        let gone = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        self.is_damage() || matches!(self, Self::Io { source, .. } if gone(source))
    }

    /// Whether the data is at fault rather than the system or the caller: damage, truncation,
    /// a broken format or a value beyond a limit.
    pub fn is_damage(&self) -> bool {
        self.kind() == ErrorKind::Data
    }

    /// Whether a store is at fault: it did not deliver, or its object was replaced or is gone. Other
    /// samples will not fare better, and none of them is bad.
    pub fn is_of_store(&self) -> bool {
        if let Self::Sample { source, .. } = self {
            return source.is_of_store();
        }
        let is_object = |location: &Location| location.url().is_some();
        matches!(self, Self::ObjectChanged { .. } | Self::Remote { .. } | Self::Store { .. })
            || matches!(self, Self::Io { location, .. } if is_object(location))
    }

    /// Whether [`detail`](Self::detail) begins with the byte that the error is about.
    pub fn names_byte(&self) -> bool {
        if let Self::Sample { source, .. } = self {
            return source.names_byte();
        }
        if let Self::List { place, .. } = self {
            return place.offset.is_some();
        }
        if let Self::Rows { source, .. } = self {
            return source.has_offset();
        }
        matches!(
            self,
            Self::Format { .. }
                | Self::Tar { .. }
                | Self::Compressed { .. }
                | Self::Images { .. }
                | Self::Tokens { .. }
                | Self::Checksum { .. }
                | Self::ChangedWhileOpen { .. }
                | Self::Remote { .. }
        )
    }

    /// Says which sample the error is about, unless it already does.
    #[must_use]
    pub fn for_sample(self, index: u64, key: Option<&[u8]>) -> Self {
        if self.sample_index().is_some() {
            return self;
        }
        Self::Sample { index, key: key.map(<[u8]>::to_vec), source: Box::new(self) }
    }

    /// The same error with the number that its sample has in a data set of several sources.
    #[must_use]
    pub fn in_data_set(self, index: u64) -> Self {
        if let Self::Sample { key, source, .. } = self {
            return Self::Sample { index, key, source };
        }
        self.for_sample(index, None)
    }

    /// The message without the file and the sample, for callers that have already named both.
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

    pub(crate) fn too_many_names(location: &Location) -> Self {
        let limit = u64::from(u32::MAX);
        let what = "bytes of file names";
        Self::Limit { location: location.clone(), what, limit, need: limit + 1 }
    }

    /// The message without the file's name.
    fn write_detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { source, .. } => write!(f, "{source}"),
            Self::NotAFile { found, .. } => write!(f, "is {found}, expected a regular file"),
            Self::NotAFolder { found, .. } => write!(f, "is {found}, expected a folder"),
            Self::Format { offset, source, .. } => write!(f, "at byte {offset}: {source}"),
            Self::Tar { location, offset, source } => write_tar(f, location, *offset, source),
            Self::Compressed { offset, by, source, .. } => {
                write!(f, "at byte {offset}: {by}: {source}")
            }
            Self::Images { offset, source, .. } => write!(f, "at byte {offset}: {source}"),
            Self::Rows { offset, source, .. } => source.write(f, *offset),
            Self::OtherClasses { other, label, classes, .. } => classes.write(f, other, *label),
            Self::Tokens { offset, source, .. } => write!(f, "at byte {offset}: {source}"),
            Self::NotRaw { index, source, .. } => write!(f, "sample {index}: {source}"),
            Self::Checksum { offset, what, stored, computed, .. } => write!(
                f,
                "at byte {offset}: {what} checksum is {stored:#x}, the bytes give {computed:#x}"
            ),
            Self::List { place, source, .. } => write!(f, "{place}{source}"),
            Self::SampleOutOfRange { index, sample_count, .. } => {
                write!(f, "sample {index} does not exist, expected one of {sample_count}")
            }
            Self::Limit { what, limit, need, .. } => {
                write!(f, "{what} is {need}, expected at most {limit}")
            }
            Self::LabelWithoutClass { index, label, class_count, .. } => write!(
                f,
                "sample {index}: label {label} is not a class: expected a number below {class_count}"
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
            Self::ObjectChanged { expected, found, index, .. } => {
                write_changed(f, expected, found, index.as_ref())
            }
            Self::Remote { offset, expected, source, .. } => {
                write!(f, "at byte {offset}: expected {expected} bytes: {source}")
            }
            Self::Store { source, .. } => write!(f, "{source}"),
            Self::NoStore { schemes, .. } => {
                f.write_str("unknown URL scheme, expected a path")?;
                schemes.iter().try_for_each(|scheme| write!(f, " or {scheme}://"))
            }
            Self::UnsafeObject { name, source, .. } => write!(
                f,
                "unsafe name {}: {source}, expected a relative path without `..`",
                Escaped(name)
            ),
            Self::NotMapped { .. } => {
                f.write_str("the object is in a store, expected a local file, which can be mapped")
            }
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

fn write_tar(
    f: &mut fmt::Formatter<'_>,
    location: &Location,
    offset: u64,
    source: &TarDefect,
) -> fmt::Result {
    write!(f, "at byte {offset}: {source}")?;
    // The first header decides whether a file is an archive at all.
    if offset == 0 && source.is_about_a_header() {
        f.write_str("; expected a TAR archive or a TBL file")?;
    }
    if let TarDefect::Compressed { by: "gzip" | "zstd" } = source {
        write!(
            f,
            "; write one with `tl convert {location} -o PLAIN.tar`, or name a folder for plain \
             copies (--unpack DIR, Store(unpack_to=DIR))"
        )?;
    }
    Ok(())
}

fn write_changed(
    f: &mut fmt::Formatter<'_>,
    expected: &Pin,
    found: &Pin,
    index: Option<&Location>,
) -> fmt::Result {
    let when = if index.is_some() { "changed since it was indexed" } else { REPLACED };
    f.write_str(when)?;
    if found != expected {
        write!(f, ": expected version {expected}, found {found}")?;
    } else if *found != Pin::Unknown {
        write!(f, ", and has version {found} again")?;
    }
    index.map_or(Ok(()), |index| write!(f, "; make {index} anew with tl index"))
}

const REPLACED: &str = "the object was replaced while it was open";

/// Bytes of a sample's key that a message shows; keys can be as long as a PAX header.
const MAX_KEY_BYTES: usize = 160;

/// An error displayed without its file and sample, for callers that have already named both.
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

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn an_object_that_is_gone_is_a_fault_of_its_store() {
        let gone = |location: &str| ReadError::Io {
            location: location.into(),
            source: ErrorKind::NotFound.into(),
        };
        assert!(gone("s3://b/k").is_of_store());
        assert!(gone("s3://b/k").for_sample(1, None).is_of_store());
        assert!(!gone("b/k").is_of_store());
    }

    #[test]
    fn a_version_that_is_the_same_is_named_once() {
        let message = |expected: Pin, found: Pin| {
            let index = Some("s3://b/i.tlidx".into());
            let location = "s3://b/k".into();
            ReadError::ObjectChanged { location, expected, found, index }.to_string()
        };
        let version = |name: &str| Pin::Version(name.into());
        for (message, expected) in [
            (message(version("a"), version("a")), ", and has version `a` again"),
            (message(version("a"), version("b")), ": expected version `a`, found `b`"),
            (message(Pin::Unknown, Pin::Unknown), ""),
        ] {
            let expected = format!(
                "s3://b/k: changed since it was indexed{expected}; make s3://b/i.tlidx anew with \
                 tl index"
            );
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_fault_of_the_moment_does_not_last() {
        let io = |kind: ErrorKind| ReadError::Io { location: "a".into(), source: kind.into() };
        assert!(!io(ErrorKind::TimedOut).is_lasting());
        assert!(!io(ErrorKind::TimedOut).for_sample(1, None).is_lasting());
        assert!(io(ErrorKind::NotFound).for_sample(1, None).is_lasting());
        let cut = ReadError::ChangedWhileOpen { location: "a".into(), offset: 0, expected: 1 };
        assert!(cut.for_sample(1, None).is_lasting());
    }
}
