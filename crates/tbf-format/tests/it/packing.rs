//! Compressed and encrypted segments: by the description, damaged, and without what they take.

use tbf_format::{
    AlignedBytes, BuildOptions, Compression, FormatError, Node, Oddity, Outcome, Region, Relation,
    Segment, SegmentBuilder, UnpackOptions,
};

use crate::data::{crc32c, id};
use crate::model::{ENCRYPTION, KEY, compressions};

pub(crate) const WITH_KEY: UnpackOptions<'static> =
    UnpackOptions { key: Some(&KEY), max_bytes: 1 << 20 };

/// With 400 components, 160 vectors fill a block.
const DIM: usize = if cfg!(miri) { 20 } else { 400 };

/// A segment with every region.
pub(crate) fn segment(compression: Compression, is_encrypted: bool) -> Vec<u8> {
    let rows = if cfg!(miri) { 9 } else { 200 };
    let mut builder = SegmentBuilder::new(BuildOptions {
        dim: u32::try_from(DIM).unwrap(),
        index: true,
        reverse: true,
        compression,
        encryption: is_encrypted.then_some(ENCRYPTION),
        ..BuildOptions::default()
    });
    for row in 0..rows {
        let node = Node {
            id: id(row),
            timestamp: u64::from(row) / 3,
            context_hash: 5,
            confidence: 1.0,
            outcome: Outcome::Failure,
            text: Some("cargo test"),
        };
        builder.push(&node, &[f32::from(row) / 2.0; DIM]).unwrap();
        builder.push_edge(row.into(), u32::from(row) / 2, Relation::Retry, 1.0);
    }
    builder.finish().unwrap().to_bytes()
}

fn packings() -> Vec<(Compression, bool)> {
    let packings = compressions().into_iter().flat_map(|c| [(c, false), (c, true)]);
    packings.filter(|(_, is_encrypted)| cfg!(feature = "encryption") || !is_encrypted).collect()
}

#[test]
fn packed_regions_are_refused_until_they_are_unpacked() {
    let plain = segment(Compression::None, false);
    let plain = Segment::open(&plain).unwrap();
    for (compression, is_encrypted) in packings() {
        let file = segment(compression, is_encrypted);
        let mut segment = Segment::open(&file).unwrap();
        assert_eq!(segment.header().compression(), compression);
        for region in Region::DATA {
            if segment.is_packed(region) {
                assert_eq!(segment.region(region), Err(FormatError::Packed { region }));
                let odd = Oddity::NotUnpacked { region };
                assert!(segment.verify().unwrap().contains(&odd));
            }
            segment.unpack(region, &WITH_KEY).unwrap();
            assert_eq!(segment.region(region), plain.region(region), "{region} {compression:?}");
        }
        assert_eq!(segment.verify(), Ok(vec![]));
        let is_smaller = file.len() < plain_len(&plain) / 2;
        assert_eq!(is_smaller, compression != Compression::None, "{compression:?}");
    }
}

#[test]
fn regions_say_how_they_lie_in_the_segment() {
    for (compression, is_encrypted) in packings() {
        let file = segment(compression, is_encrypted);
        let segment = Segment::open(&file).unwrap();
        let key_id = is_encrypted.then_some(ENCRYPTION.key_id);
        assert_eq!(segment.key_id(), key_id);
        let mut end = 0;
        let all = [Region::Header].into_iter().chain(Region::DATA).chain([Region::Footer]);
        for region in all {
            let stored = segment.stored(region).unwrap();
            assert_eq!(stored.offset, segment.header().offset(region));
            assert!(stored.offset >= end && stored.stored_bytes > 0);
            end = stored.offset + stored.stored_bytes;
            let is_compressed = stored.compression != Compression::None;
            assert_eq!(stored.stored_bytes < stored.bytes, is_compressed, "{region}");
            let is_data = region.code().is_some();
            assert_eq!(stored.is_encrypted, is_encrypted && is_data);
            assert_eq!(segment.is_packed(region), (is_encrypted && is_data) || is_compressed);
        }
        assert_eq!(end, file.len() as u64);
    }
}

#[test]
fn verification_goes_on_behind_damage() {
    let file = segment(Compression::None, false);
    let segment = Segment::open(&file).unwrap();
    assert_eq!(segment.verify_all(), (vec![], vec![]));
    let at = |region| usize::try_from(segment.header().offset(region)).unwrap();
    let mut damaged = file.clone();
    // A vector, a row pointer, and the byte in front of the filter.
    damaged[at(Region::Embeddings)] ^= 1;
    damaged[at(Region::Edges) + 8] ^= 0x80;
    damaged[at(Region::Bloom) - 1] ^= 1;
    let (oddities, damage) = Segment::open(&damaged).unwrap().verify_all();
    assert_eq!(oddities, []);
    let regions: Vec<_> = damage.iter().map(|error| error.region().unwrap()).collect();
    assert_eq!(regions, [Region::Embeddings, Region::Edges, Region::Edges, Region::Edges]);
    let is_checksum = |error: &FormatError| matches!(error, FormatError::RegionChecksum { .. });
    assert!(damage[..2].iter().all(is_checksum), "{damage:?}");
    assert!(matches!(damage[2], FormatError::NotZero { .. }), "{damage:?}");
    assert!(matches!(damage[3], FormatError::RowPointers { .. }), "{damage:?}");
    assert_eq!(Segment::open(&damaged).unwrap().verify().as_ref(), Err(&damage[0]));
}

fn plain_len(plain: &Segment<'_>) -> usize {
    let lens = Region::DATA.map(|region| plain.region(region).unwrap().len());
    lens.iter().sum()
}

pub(crate) fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

/// Unpacks region `code` by the tables of the description alone.
fn unpack_by_hand(file: &[u8], code: u8) -> Vec<u8> {
    let footer = &file[number(file, 96, 8)..];
    assert_eq!(&footer[..4], b"TBFF");
    let mut zeroed = footer.to_vec();
    zeroed[12..16].fill(0);
    assert_eq!(number(footer, 12, 4), crc32c(&zeroed) as usize);
    assert_eq!(number(footer, 16, 8), file.len());
    let (block_bytes, is_encrypted) = (number(footer, 24, 4), footer[28] == 1);
    let entry = footer[64..].chunks(64).find(|entry| entry[0] == code).unwrap();
    let (offset, stored_bytes) = (number(entry, 8, 8), number(entry, 16, 8));
    let mut bytes = file[offset..offset + stored_bytes].to_vec();
    assert_eq!(number(entry, 4, 4), crc32c(&bytes) as usize);
    if is_encrypted {
        assert_eq!(&footer[32..48], b"key of the tests");
        assert_eq!(entry[36..48], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, code]);
        decrypt(&mut bytes, &file[..104], &entry[36..48], &entry[48..64]);
    }
    let raw_bytes = number(entry, 24, 8);
    if entry[1] != 0 {
        let (mut raw, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let length = number(rest, 0, 4);
            let (block, behind) = rest[4..].split_at(length & 0x7fff_ffff);
            let size = block_bytes.min(raw_bytes - raw.len());
            if length >> 31 == 1 {
                raw.extend(block);
            } else {
                raw.extend(decompress(entry[1], block, size));
            }
            rest = behind;
        }
        bytes = raw;
    }
    assert_eq!(bytes.len(), raw_bytes);
    let raw_checksum = if is_encrypted { 0 } else { crc32c(&bytes) };
    assert_eq!(number(entry, 32, 4), raw_checksum as usize);
    bytes
}

#[cfg(feature = "encryption")]
fn decrypt(bytes: &mut [u8], associated: &[u8], nonce: &[u8], tag: &[u8]) {
    use aes_gcm::aead::{AeadInOut, KeyInit};
    let cipher = aes_gcm::Aes256Gcm::new_from_slice(&[0x42; 32]).unwrap();
    let (nonce, tag) = (nonce.try_into().unwrap(), tag.try_into().unwrap());
    cipher.decrypt_inout_detached(&nonce, associated, bytes.into(), &tag).unwrap();
}

#[cfg(not(feature = "encryption"))]
fn decrypt(_: &mut [u8], _: &[u8], _: &[u8], _: &[u8]) {}

fn decompress(code: u8, block: &[u8], size: usize) -> Vec<u8> {
    match code {
        #[cfg(feature = "lz4")]
        1 => lz4::block::decompress(block, Some(i32::try_from(size).unwrap())).unwrap(),
        #[cfg(feature = "zstd")]
        2 => zstd::decode_all(block).unwrap(),
        _ => panic!("compression {code} of {} bytes, once {size}", block.len()),
    }
}

#[test]
fn regions_are_packed_as_described() {
    let plain = segment(Compression::None, false);
    let plain = Segment::open(&plain).unwrap();
    for (compression, is_encrypted) in packings() {
        let file = segment(compression, is_encrypted);
        for region in Region::DATA {
            let unpacked = unpack_by_hand(&file, region.code().unwrap());
            assert!(plain.region(region) == Ok(&unpacked[..]), "{region} {compression:?}");
        }
    }
}

/// Verification finds every change. Who only unpacks gets the right bytes or an error: some changes
/// of an LZ4 block mean nothing.
#[test]
fn every_damaged_byte_of_a_packed_region_is_found() {
    let plain = segment(Compression::None, false);
    let plain = Segment::open(&plain).unwrap();
    for (compression, is_encrypted) in packings().into_iter().skip(1) {
        let file = segment(compression, is_encrypted);
        let end = number(&file, 96, 8);
        let step = (end / if cfg!(miri) { 5 } else { 400 }) | 1;
        for at in (128..end).step_by(step) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            let Ok(mut segment) = Segment::open(&damaged) else { continue };
            assert!(segment.verify().is_err(), "byte {at}");
            for region in Region::DATA {
                if segment.is_packed(region) && segment.unpack(region, &WITH_KEY).is_ok() {
                    assert!(segment.region(region) == plain.region(region), "byte {at}, {region}");
                }
            }
        }
    }
}

#[test]
fn a_limit_is_kept_before_memory_is_taken() {
    for (compression, is_encrypted) in packings().into_iter().skip(1) {
        let file = segment(compression, is_encrypted);
        let mut segment = Segment::open(&file).unwrap();
        let stride = segment.header().embedding_dtype().stride(segment.header().embedding_dim());
        let need = segment.node_count() * stride;
        let options = UnpackOptions { max_bytes: need - 1, ..WITH_KEY };
        let limit = FormatError::Limit { region: Region::Embeddings, need, limit: need - 1 };
        assert_eq!(segment.unpack_all(&options), Err(limit));
        segment.unpack(Region::Embeddings, &UnpackOptions { max_bytes: need, ..WITH_KEY }).unwrap();
    }
}

#[test]
fn what_a_build_lacks_is_named() {
    let missing = [
        (Compression::Lz4, false, cfg!(feature = "lz4"), "lz4"),
        (Compression::Zstd, false, cfg!(feature = "zstd"), "zstd"),
        (Compression::None, true, cfg!(feature = "encryption"), "encryption"),
    ];
    for (compression, is_encrypted, is_there, feature) in missing {
        let options = BuildOptions {
            compression,
            encryption: is_encrypted.then_some(ENCRYPTION),
            ..BuildOptions::default()
        };
        let built = SegmentBuilder::new(options).finish();
        match built {
            Ok(_) => assert!(is_there, "{feature}"),
            Err(error) => {
                assert!(!is_there);
                assert_eq!(error, tbf_format::BuildError::Unsupported { feature });
            }
        }
    }
}

#[test]
fn unpacked_regions_are_aligned() {
    let bytes = AlignedBytes::copy_of(&[1; 100]);
    assert_eq!((bytes.as_bytes().len(), bytes.as_bytes().as_ptr() as usize % 64), (100, 0));
}
