//! Segments to test with, laid out here by the description, without the crate's own code.

/// CRC-32C, bit by bit.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// The id of node `row` in the segments made here.
pub(crate) fn id(row: u8) -> [u8; 16] {
    (0..16).map(|i| row.wrapping_mul(29).wrapping_add(i)).collect::<Vec<u8>>().try_into().unwrap()
}

/// Three nodes of two components with the edges 0 -> 1, 0 -> 2, 2 -> 0, as the reference's writer
/// lays them out.
pub(crate) fn reference_segment() -> Vec<u8> {
    let mut file = vec![0; 128];
    let pad = |file: &mut Vec<u8>| file.resize(file.len().next_multiple_of(64), 0);
    (0..3).for_each(|row| file.extend(id(row)));
    pad(&mut file);
    (0..3u64).for_each(|row| file.extend((1000 + row).to_le_bytes()));
    pad(&mut file);
    (0..3u64).for_each(|row| file.extend((0xc0de + row).to_le_bytes()));
    pad(&mut file);
    [0.25f32, 0.5, 0.75].iter().for_each(|value| file.extend(value.to_le_bytes()));
    pad(&mut file);
    file.extend([1, 0, 3]);
    pad(&mut file);
    let embeddings = file.len() as u64;
    for row in 0..3u8 {
        [f32::from(row), -1.5].iter().for_each(|value| file.extend(value.to_le_bytes()));
        pad(&mut file);
    }
    let edges = file.len() as u64;
    [0u64, 2, 2, 3].iter().for_each(|pointer| file.extend(pointer.to_le_bytes()));
    for (target, relation) in [(1u32, 0u8), (2, 3), (0, 4)] {
        file.extend(target.to_le_bytes());
        file.push(relation);
        file.extend(0.5f32.to_le_bytes());
        file.extend([0; 3]);
    }
    pad(&mut file);
    let bloom = file.len() as u64;
    file.extend(4u32.to_le_bytes());
    file.extend(64u64.to_le_bytes());
    let bits = (0..3).flat_map(|row| bloom_bits(&id(row), 4, 64)).fold(0u64, |w, bit| w | 1 << bit);
    file.extend(bits.to_le_bytes());

    file[..8].copy_from_slice(b"TALB\0\0\x01\0");
    for (at, value) in [(24, 3), (32, 3), (48, 128), (56, embeddings), (64, edges), (80, bloom)] {
        put(&mut file, at, &u64::to_le_bytes(value));
    }
    put(&mut file, 40, &2u32.to_le_bytes());
    file
}

/// The same in the published form: version, flags and checksum.
pub(crate) fn published_segment() -> Vec<u8> {
    let mut file = reference_segment();
    put(&mut file, 4, &[1, 0, 0, 0]);
    put(&mut file, 8, &77u64.to_le_bytes());
    put(&mut file, 16, &1_700_000_000_000_000_000u64.to_le_bytes());
    put(&mut file, 46, &0b11u16.to_le_bytes());
    seal(&mut file);
    file
}

/// Puts the header's checksum right.
pub(crate) fn seal(file: &mut [u8]) {
    let checksum = crc32c(&file[..104]);
    put(file, 104, &checksum.to_le_bytes());
}

pub(crate) fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The bits of a key, by the definition.
pub(crate) fn bloom_bits(key: &[u8], hashes: u64, bits: u64) -> Vec<u64> {
    let fnv = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let h1 = fnv(key);
    let h2 = fnv(&h1.to_le_bytes()).wrapping_add(1);
    (0..hashes).map(|i| h1.wrapping_add(i.wrapping_mul(h2)) % bits).collect()
}
