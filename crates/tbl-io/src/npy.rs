//! NumPy's arrays in files: `.npy` headers, and the members of `.npz` archives.
//!
//! The layout is that of NumPy Enhancement Proposal 1 and of `numpy.lib.format` (versions 1 to 3).
//! Numbers stay bytes here; callers convert them.

mod header;
mod npz;
mod zip;

pub use npz::{NpzMember, npz_member, npz_members};

/// The compression methods of ZIP archives that NumPy uses.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// An array in the bytes of a `.npy` file.
///
/// ```
/// use tbl_io::{NpyArray, NpyKind};
///
/// let mut file = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
/// file.extend(b"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }            \n\x01\x00\xff\xff");
/// let array = NpyArray::parse(&file)?;
/// assert_eq!((array.kind, array.item_bytes, &array.shape[..]), (NpyKind::Signed, 2, &[2][..]));
/// assert_eq!(array.data, [1, 0, 255, 255]);
/// # Ok::<(), tbl_io::NpyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyArray<'a> {
    /// The kind of its numbers.
    pub kind: NpyKind,
    /// Bytes of one number.
    pub item_bytes: usize,
    /// True if the most significant byte of a number comes first.
    pub is_big_endian: bool,
    /// True if the first dimension varies fastest, as in Fortran.
    pub is_fortran: bool,
    /// The dimensions; none for a single number.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: &'a [u8],
}

/// The header of a `.npy` file, for callers that read its numbers where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// The kind of the numbers.
    pub kind: NpyKind,
    /// Bytes of one number.
    pub item_bytes: usize,
    /// True if the most significant byte of a number comes first.
    pub is_big_endian: bool,
    /// True if the first dimension varies fastest, as in Fortran.
    pub is_fortran: bool,
    /// The dimensions; none for a single number.
    pub shape: Vec<usize>,
    /// The offset of the numbers in the file.
    pub data_offset: usize,
}

/// The kind of numbers in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NpyKind {
    /// Truth values of one byte, 0 or 1.
    Bool,
    /// Unsigned integers of 1, 2, 4 or 8 bytes.
    Unsigned,
    /// Signed integers of 1, 2, 4 or 8 bytes.
    Signed,
    /// Floating-point numbers of 2, 4 or 8 bytes.
    Float,
}

/// A defect of a `.npy` or `.npz` file, or a kind of array that is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum NpyError {
    /// The file does not begin as a `.npy` file does.
    #[error("not a .npy file: it starts with {}", Hex(start))]
    Magic { start: Vec<u8> },
    /// A version of the format that did not exist.
    #[error(".npy version {major}.{minor}, expected 1.0, 2.0 or 3.0")]
    Version { major: u8, minor: u8 },
    /// The file ends early.
    #[error("{what} needs {need} bytes, found {have}")]
    Truncated { what: &'static str, need: u64, have: u64 },
    /// The header is not the dictionary that it should be.
    #[error(".npy header at byte {offset}: expected {expected}")]
    Header { offset: usize, expected: &'static str },
    /// An array of something else than numbers.
    #[error(
        "array of dtype `{}`, expected bool, integers of up to 64 bits, float16, float32 or float64",
        crate::escape::Escaped(descr.as_bytes())
    )]
    Dtype { descr: String },
    /// There are more or fewer bytes of numbers than the shape says.
    #[error("array of shape {shape:?} and {item_bytes}-byte numbers has {have} bytes of data")]
    Size { shape: Vec<usize>, item_bytes: usize, have: u64 },
    /// The file is not a ZIP archive, or a damaged one.
    #[error("not a .npz file: expected {expected} at byte {offset}")]
    Zip { offset: u64, expected: &'static str },
    /// The archive has no such member.
    #[error("no array `{name}` in the .npz file; it has {}", found.join(", "))]
    NoMember { name: String, found: Vec<String> },
    /// The member is stored in a way that NumPy does not write.
    #[error("array `{name}`: ZIP compression method {method}, expected 0 (stored) or 8 (deflated)")]
    Method { name: String, method: u16 },
    /// The member is encrypted.
    #[error("array `{name}` is encrypted, which NumPy does not do")]
    Encrypted { name: String },
    /// The member is larger than allowed.
    #[error("array `{name}` has {bytes} bytes, the limit is {limit}")]
    Limit { name: String, bytes: u64, limit: u64 },
    /// The compressed member is damaged.
    #[error("array `{name}`: damaged deflate data")]
    Deflate { name: String },
    /// The member's checksum does not match.
    #[error("array `{name}`: CRC-32 is {computed:08x}, the file says {stored:08x}")]
    Checksum { name: String, stored: u32, computed: u32 },
}

/// Bytes in hexadecimal.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")?;
        }
        if self.0.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}
