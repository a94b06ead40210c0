#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod checksum;
mod error;
pub mod extension;
pub mod metadata;
pub mod path;
mod sample_format;
pub mod shard_index;
pub mod v1;
pub mod v2;

pub use error::FormatError;
pub use sample_format::SampleFormat;

/// The version that the first four bytes of a file announce, if they are a TBL magic.
///
/// ```
/// assert_eq!(tbl_format::sniff(b"TBL\x02 and more"), Some(2));
/// assert_eq!(tbl_format::sniff(b"TBL"), None);
/// ```
pub fn sniff(bytes: &[u8]) -> Option<u8> {
    match *bytes.first_chunk()? {
        v1::FileHeader::MAGIC => Some(1),
        v2::FileHeader::MAGIC => Some(2),
        _ => None,
    }
}
