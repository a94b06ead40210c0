//! TBF segments: whatever the bytes are, opening, unpacking and reading them ends with values or
//! errors, and what verification passes, reading finds whole.

use tbf_format::{
    AlignedBytes, FormatError, Key, OpenOptions, Recovery, Region, Segment, UnpackOptions,
};

/// Rows read from one input.
const MAX_ROWS: usize = 64;

/// Of the encrypted seeds.
const KEY: Key = Key::new([0x42; 32]);

/// Bytes of one unpacked region.
const MAX_REGION_BYTES: u64 = 1 << 20;

/// Opens `data` as a TBF segment and reads it.
pub fn tbf_open(data: &[u8]) {
    let opened = Segment::open(data);
    let strict = Segment::open_with(data, OpenOptions { strict: true });
    assert!(opened.is_ok() || strict.is_err(), "what opens strictly opens tolerantly");
    assert_eq!(opened.is_ok(), Recovery::of(data) == Recovery::Keep);
    let Ok(segment) = opened else { return };
    let found = read(segment);

    // The same at an address that is aligned for nothing.
    let mut shifted = AlignedBytes::zeroed(data.len() + 1);
    shifted.as_mut_bytes()[1..].copy_from_slice(data);
    let segment = Segment::open(&shifted.as_bytes()[1..]).expect("the bytes are the same");
    assert_eq!(read(segment), found);
}

/// Unpacks and reads everything, and returns what verification says.
fn read(mut segment: Segment<'_>) -> Result<usize, FormatError> {
    let options = UnpackOptions { key: Some(&KEY), max_bytes: MAX_REGION_BYTES };
    for region in Region::DATA {
        if segment.unpack(region, &options).is_err() {
            assert!(!segment.has(region) || segment.is_packed(region), "{region}");
        }
    }
    let verified = segment.verify();
    let is_packed = Region::DATA.into_iter().any(|region| segment.is_packed(region));
    let is_whole = verified.is_ok() && !is_packed;
    let rows = usize::try_from(segment.node_count()).unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let mut components = Vec::new();
    for row in 0..rows {
        let edges = segment.edges(row).map(<[_]>::len);
        let text = segment.strings().map(|strings| strings.row(row).map(str::len));
        let id = segment.columns().map(|columns| columns.ids().get(row));
        if is_whole {
            assert!(edges.is_ok(), "edges of row {row}: {edges:?}");
            assert!(!matches!(text, Ok(Err(_))), "text of row {row}: {text:?}");
            let id = id.expect("columns are whole").expect("the row is there");
            let found = segment.find(&id).expect("what finds it is whole");
            let first = found.expect("the id is there");
            assert!(first <= row);
        }
        if let Ok(embeddings) = segment.embeddings() {
            // A vector may have more components than anyone wants to see.
            components.resize(embeddings.dim(), 0.0);
            embeddings.read_into(row, &mut components).expect("the row is there");
        }
        if let Ok(incoming) = segment.incoming() {
            assert!(incoming.row(row).is_ok() || !is_whole);
        }
    }
    if let Ok(index) = segment.index() {
        let places = index.timestamps().range(1..u64::MAX / 2);
        assert!(index.timestamps().rows_at(places.clone()).len() <= places.len());
    }
    assert!(segment.edges(usize::MAX).is_err());
    verified.map(|oddities| oddities.len())
}

/// Puts the checksums of a segment right, so that mutations get past them.
pub fn fix_tbf_checksums(file: &mut [u8]) {
    const HEADER_BYTES: usize = 128;
    let Some((header, _)) = file.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let footer = number(header, 96);
    let checksum = crc32c(&header[..104]);
    if header[4] == 1 {
        header[104..108].copy_from_slice(&checksum.to_le_bytes());
    }
    let Some(footer_len) = file.len().checked_sub(footer).filter(|&len| footer > 0 && len >= 64)
    else {
        return;
    };
    for entry in (footer + 64..footer + footer_len).step_by(64) {
        let Some(fields) = file.get(entry..entry + 64) else { break };
        let (offset, len) = (number(fields, 8), number(fields, 16));
        let is_plain = fields[1] == 0 && fields[2] == 0;
        let stored = offset.checked_add(len).and_then(|end| file.get(offset..end));
        let Some(checksum) = stored.map(crc32c) else { continue };
        file[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        if is_plain {
            file[entry + 32..entry + 36].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    file[footer + 12..footer + 16].fill(0);
    let checksum = crc32c(&file[footer..]);
    file[footer + 12..footer + 16].copy_from_slice(&checksum.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    usize::try_from(u64::from_le_bytes(bytes.unwrap_or_default())).unwrap_or(usize::MAX)
}

fn crc32c(bytes: &[u8]) -> u32 {
    tbl_format::checksum::crc32c(bytes)
}
