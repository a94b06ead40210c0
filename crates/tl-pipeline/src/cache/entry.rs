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

/// Of the entry of a block: the payload is samples and their table, the width is how many samples,
/// and the checksum is that of the table.
const BLOCK_MAGIC: [u8; 8] = *b"TLCACHE2";

/// A sample in the entry of a block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Slot {
    offset: U64,
    len: U64,
    crc32c: U32,
}

const _: () = assert!(size_of::<Slot>() == Slot::BYTES);

impl Slot {
    pub(crate) const BYTES: usize = 20;

    /// The slot of a sample whose bytes are at `offset` of the file.
    pub(crate) fn new(offset: u64, bytes: &[u8]) -> Self {
        let len = bytes.len() as u64;
        Self { offset: offset.into(), len: len.into(), crc32c: crc32c(bytes).into() }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset.get()
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.get()
    }

    /// True if these are the bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        self.len() == bytes.len() as u64 && self.crc32c.get() == crc32c(bytes)
    }
}

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

    /// The trailer of a block whose samples have `sample_bytes` in all.
    pub(crate) fn of_block(key: Key, sample_bytes: u64, table: &[Slot]) -> Self {
        let table = table.as_bytes();
        let samples = u32::try_from(table.len() / Slot::BYTES).unwrap_or(u32::MAX);
        let mut trailer = Self::new(key, table, (samples, 0));
        trailer.magic = BLOCK_MAGIC;
        trailer.payload_bytes = (sample_bytes + table.len() as u64).into();
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

/// The table of a block of `samples` samples named `key`, of the last bytes of its file, which has
/// `file_bytes`: those of the table and the trailer.
pub(crate) fn check_block(
    end: &[u8],
    file_bytes: u64,
    key: Key,
    samples: usize,
) -> Option<Vec<Slot>> {
    let (table, trailer) = Trailer::ref_from_suffix(end).ok()?;
    let slots = <[Slot]>::ref_from_bytes(table).ok()?;
    let sample_bytes = file_bytes.checked_sub(end.len() as u64)?;
    let mut at = 0;
    let are_in_order = slots.iter().all(|slot| {
        let is_next = slot.offset() == at;
        at = at.saturating_add(slot.len());
        is_next
    });
    let whole = *trailer.as_bytes() == *Trailer::of_block(key, sample_bytes, slots).as_bytes();
    (whole && slots.len() == samples && are_in_order && at == sample_bytes).then(|| slots.to_vec())
}

/// The bytes of the table and the trailer of a block.
pub(crate) fn block_end(samples: usize) -> usize {
    samples * Slot::BYTES + Trailer::BYTES
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

    fn block() -> Vec<u8> {
        let samples = [&b"first"[..], b"", b"the third"];
        let mut at = 0;
        let slots = samples.map(|sample| {
            let slot = Slot::new(at, sample);
            at += sample.len() as u64;
            slot
        });
        let trailer = Trailer::of_block(KEY, at, &slots);
        [&samples.concat(), slots.as_bytes(), trailer.as_bytes()].concat()
    }

    fn table(file: &[u8], key: Key, samples: usize) -> Option<Vec<Slot>> {
        let end = &file[file.len().checked_sub(block_end(samples))?..];
        check_block(end, file.len() as u64, key, samples)
    }

    #[test]
    fn samples_of_a_block_are_found_by_its_table() {
        let file = block();
        let slots = table(&file, KEY, 3).unwrap();
        let at = |number: u64| usize::try_from(number).unwrap();
        let samples: Vec<&[u8]> =
            slots.iter().map(|slot| &file[at(slot.offset())..][..at(slot.len())]).collect();
        assert_eq!(samples, [&b"first"[..], b"", b"the third"]);
        assert!(slots.iter().zip(&samples).all(|(slot, sample)| slot.holds(sample)));
        assert!(!slots[0].holds(b"firsu") && !slots[0].holds(b"firs"));
        assert!(table(&file, Key([8; 32]), 3).is_none());
        assert!(table(&file, KEY, 2).is_none());
        assert!(table(&file, KEY, 4).is_none());
        assert!(check(&file, KEY).is_none(), "it is not an entry of one sample");
        assert!(table(&self::file(b"some payload"), KEY, 3).is_none());
    }

    #[test]
    fn every_cut_and_every_flipped_bit_of_a_table_is_noticed() {
        let whole = block();
        for len in 0..whole.len() {
            assert!(table(&whole[..len], KEY, 3).is_none(), "cut to {len}");
            assert!(table(&whole[len + 1..], KEY, 3).is_none(), "begun at {}", len + 1);
        }
        let samples = whole.len() - block_end(3);
        for bit in samples * 8..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(table(&flipped, KEY, 3).is_none(), "bit {bit}");
        }
        assert!(table(&vec![0; whole.len()], KEY, 3).is_none());
    }
}
