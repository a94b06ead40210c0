//! The header at the front of a file and the signature at its end.

use core::fmt;
use core::mem::size_of;
use core::ops::RangeInclusive;

use zerocopy::little_endian::{I32, I64, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::FormatError;

/// Four numbers of 16 bits, such as 1.1.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The oldest version in any file: older ones were never released.
    const OLDEST: Self = Self(0x0001_0001_0001_0002);
    /// The oldest version that can be read: the first with metadata.
    pub const OLDEST_READABLE: Self = Self(0x0001_0001_0001_0004);
    /// The newest version that can be read, and the one that is written.
    pub const NEWEST: Self = Self(0x0001_0001_0001_0006);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32| (self.0 >> shift) & 0xffff;
        write!(f, "{}.{}.{}.{}", part(48), part(32), part(16), part(0))
    }
}

/// The header as it stands in a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    signature: U64,
    version: U64,
    compatible_version: U64,
    toc_offset: I64,
    tail_offset: I64,
    row_count: I64,
    column_count: I32,
    reserved: [u8; 204],
}

const _: () = assert!(size_of::<RawHeader>() == Header::SIZE);

/// The first 256 bytes of a file.
///
/// ```
/// use idv_format::{Header, Version};
///
/// let header = Header { toc_offset: 256, tail_offset: 256, ..Header::default() };
/// let bytes = header.to_bytes();
/// assert_eq!(Header::parse(&bytes)?, header);
/// assert_eq!(header.version.to_string(), "1.1.1.6");
/// # Ok::<(), idv_format::FormatError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version of the writer.
    pub version: Version,
    /// The version that a reader needs to know.
    pub compatible_version: Version,
    /// The offset of the table of contents.
    pub toc_offset: u64,
    /// The offset of the signature at the end.
    pub tail_offset: u64,
    /// Rows of every column.
    pub row_count: u64,
    /// Columns in the table of contents.
    pub column_count: u32,
}

impl Default for Header {
    /// A file of the newest version without columns and rows, and without its offsets.
    fn default() -> Self {
        Self {
            version: Version::NEWEST,
            compatible_version: Version::NEWEST,
            toc_offset: 0,
            tail_offset: 0,
            row_count: 0,
            column_count: 0,
        }
    }
}

impl Header {
    /// The header's size in bytes.
    pub const SIZE: usize = 256;
    /// The first eight bytes of a file.
    pub const MAGIC: [u8; 8] = *b"CML\0DVB\0";
    /// The eight bytes at [`tail_offset`](Self::tail_offset).
    pub const TAIL: [u8; 8] = *b"\0BVD\0LMC";

    /// Reads the header at the front of `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] with the field that breaks a rule. Signature and versions are looked at
    /// first, so that another kind of file and a newer one are named as such.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let (raw, _) = RawHeader::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
            what: "header",
            offset: 0,
            need: Self::SIZE as u64,
            have: bytes.len() as u64,
        })?;
        check_signature("signature", 0, raw.signature.get(), Self::MAGIC)?;
        let version = Version(raw.version.get());
        let compatible_version = Version(raw.compatible_version.get());
        check_versions(version, compatible_version)?;
        let column_count = from_i64("column count", 48, raw.column_count.get().into())?;
        let header = Self {
            version,
            compatible_version,
            toc_offset: from_i64("offset of the table of contents", 24, raw.toc_offset.get())?,
            tail_offset: from_i64("offset of the tail", 32, raw.tail_offset.get())?,
            row_count: from_i64("row count", 40, raw.row_count.get())?,
            // It comes from an `i32`.
            column_count: u32::try_from(column_count).unwrap_or(u32::MAX),
        };
        header.check_offsets()?;
        Ok(header)
    }

    fn check_offsets(&self) -> Result<(), FormatError> {
        let low = Self::SIZE as u64;
        let high = i64::MAX.unsigned_abs() - Self::TAIL.len() as u64;
        check_range("offset of the tail", 32, self.tail_offset, low..=high)?;
        if self.column_count > 0 {
            let expected = low..=self.tail_offset;
            check_range("offset of the table of contents", 24, self.toc_offset, expected)?;
        }
        Ok(())
    }

    /// Checks the eight bytes at [`tail_offset`](Self::tail_offset).
    ///
    /// # Errors
    /// [`FormatError::Signature`].
    pub fn check_tail(&self, bytes: [u8; 8]) -> Result<(), FormatError> {
        let found = u64::from_le_bytes(bytes);
        check_signature("tail signature", self.tail_offset, found, Self::TAIL)
    }

    /// The end of the data set. Bytes after it are not part of it.
    pub fn end(&self) -> u64 {
        self.tail_offset + Self::TAIL.len() as u64
    }

    /// The header as it stands in a file. Numbers of 2^63 and more become that less one.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let raw = RawHeader {
            signature: U64::from_bytes(Self::MAGIC),
            version: self.version.0.into(),
            compatible_version: self.compatible_version.0.into(),
            toc_offset: to_i64(self.toc_offset).into(),
            tail_offset: to_i64(self.tail_offset).into(),
            row_count: to_i64(self.row_count).into(),
            column_count: i32::try_from(self.column_count).unwrap_or(i32::MAX).into(),
            reserved: [0; 204],
        };
        zerocopy::transmute!(raw)
    }
}

/// In the order of the original, so that both name the same reason.
fn check_versions(version: Version, compatible: Version) -> Result<(), FormatError> {
    if compatible > version {
        return Err(FormatError::CompatibleVersion { version, compatible });
    }
    if version < Version::OLDEST {
        return Err(FormatError::OldVersion { version, oldest: Version::OLDEST });
    }
    let oldest = Version::OLDEST_READABLE;
    let newest = Version::NEWEST;
    if (oldest..=newest).contains(&compatible) {
        Ok(())
    } else {
        Err(FormatError::UnknownVersion { compatible, oldest, newest })
    }
}

fn check_signature(
    what: &'static str,
    offset: u64,
    found: u64,
    expected: [u8; 8],
) -> Result<(), FormatError> {
    let expected = u64::from_le_bytes(expected);
    if found == expected {
        Ok(())
    } else {
        Err(FormatError::Signature { what, offset, found, expected })
    }
}

/// Refuses `found`, the number stored at `offset`, unless it is in the `expected` range.
pub(crate) fn check_range(
    what: &'static str,
    offset: u64,
    found: u64,
    expected: RangeInclusive<u64>,
) -> Result<(), FormatError> {
    if expected.contains(&found) {
        Ok(())
    } else {
        let (low, high) = expected.into_inner();
        Err(FormatError::OutOfRange { what, offset, found: to_i64(found), low, high })
    }
}

/// A number of the file that cannot be negative.
pub(crate) fn from_i64(what: &'static str, offset: u64, found: i64) -> Result<u64, FormatError> {
    u64::try_from(found).map_err(|_| FormatError::Negative { what, offset, found })
}

/// Numbers for messages, and for fields that cannot be larger.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
