//! A cached entry as a file: the payload, followed by a trailer that identifies it.
//!
//! The trailer comes last so that one read brings both, and the payload starts at the start of the
//! reader's buffer. It detects what a crash or another program leaves of a file: the name, the
//! lengths and two checksums must agree.

use tbl_format::checksum::crc32c;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::cache::key::Key;

const MAGIC: [u8; 8] = *b"TLCACHE1";

/// The last bytes of an entry's file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Trailer {
    magic: [u8; 8],
    key: [u8; 32],
    payload_bytes: U64,
    width: U32,
    height: U32,
    payload_crc32c: U32,
    /// The checksum of the fields above.
    crc32c: U32,
}

const _: () = assert!(size_of::<Trailer>() == Trailer::BYTES);

impl Trailer {
    pub(crate) const BYTES: usize = 64;

    pub(crate) fn new(key: Key, payload: &[u8], size: (u32, u32)) -> Self {
        let (width, height) = size;
        let mut trailer = Self {
            magic: MAGIC,
            key: key.0,
            payload_bytes: (payload.len() as u64).into(),
            width: width.into(),
            height: height.into(),
            payload_crc32c: crc32c(payload).into(),
            crc32c: 0.into(),
        };
        trailer.crc32c = trailer.own_crc32c().into();
        trailer
    }

    fn own_crc32c(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32c(&bytes[..bytes.len() - size_of::<U32>()])
    }
}

/// Splits a file into the length of its payload and the size of its image, if it is whole and the
/// entry named `key`.
pub(crate) fn check(file: &[u8], key: Key) -> Option<(usize, (u32, u32))> {
    let (payload, trailer) = Trailer::ref_from_suffix(file).ok()?;
    let whole = trailer.magic == MAGIC
        && trailer.key == key.0
        && trailer.crc32c.get() == trailer.own_crc32c()
        && trailer.payload_bytes.get() == payload.len() as u64
        && trailer.payload_crc32c.get() == crc32c(payload);
    whole.then(|| (payload.len(), (trailer.width.get(), trailer.height.get())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key([7; 32]);

    fn file(payload: &[u8]) -> Vec<u8> {
        [payload, Trailer::new(KEY, payload, (640, 480)).as_bytes()].concat()
    }

    #[test]
    fn what_was_written_is_found() {
        for payload in [&b""[..], b"x", &[5; 1000]] {
            assert_eq!(check(&file(payload), KEY), Some((payload.len(), (640, 480))));
        }
    }

    #[test]
    fn every_cut_every_extension_and_every_flipped_bit_is_noticed() {
        let whole = file(b"some payload");
        for len in 0..whole.len() {
            assert_eq!(check(&whole[..len], KEY), None, "cut to {len}");
            assert_eq!(check(&whole[len + 1..], KEY), None, "begun at {}", len + 1);
        }
        assert_eq!(check(&[&whole[..], &[0]].concat(), KEY), None);
        assert_eq!(check(&[&whole[..], &whole[..]].concat(), KEY), None);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&flipped, KEY), None, "bit {bit}");
        }
        // A file after a power cut, whose data never reached the disk.
        assert_eq!(check(&vec![0; whole.len()], KEY), None);
    }

    #[test]
    fn an_entry_under_another_name_is_none() {
        assert_eq!(check(&file(b"some payload"), Key([8; 32])), None);
    }
}
