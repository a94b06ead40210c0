//! Containers: whatever the bytes are, opening and reading them ends with values or errors, and
//! what the index promises is what reading delivers.

use tbl_format::checksum::{header_crc32, payload_crc16};
use tbl_format::extension::RowIndexes;
use tbl_io::{
    Damage, NpyArray, ReadError, ReadLimits, ReadOptions, SampleSource, SampleSourceExt, Source,
    SourceKind, Stores, TarArchive, TblFile, Unpack, Verify, npz_member,
};

/// Samples read from one input; an index may claim thousands that all lie in the same bytes.
const MAX_SAMPLES: u64 = 64;

/// Bytes of one sample; LZ4 expands up to 255 times, Zstandard up to 32 768 times.
const MAX_SAMPLE_BYTES: u64 = 1 << 20;

/// Opens `data` as a TAR archive and reads every sample.
pub fn tar(data: &[u8]) {
    let mut limits = ReadLimits::default();
    limits.sample_bytes = MAX_SAMPLE_BYTES;
    if let Ok(archive) = TarArchive::new(Source::from_bytes("fuzz.tar", data.to_vec()), limits) {
        read_samples(&archive);
        assert!(archive.sample_count() <= archive.member_counts().regular);
    }
}

/// Opens `data` as a TAR archive that is compressed as a whole, and reads every sample; and as a
/// Zstandard file with a seek table, whose plain bytes are the same read in other pieces.
pub fn packed_tar(data: &[u8]) {
    seekable(data);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("fuzz.tar.gz");
    std::fs::write(&path, data).expect("there is room for a file");
    let stores = Stores::new().unpacking(Unpack::Discard(folder.path().to_owned()));
    if let Ok(source) = tbl_io::open_in(&stores, &path) {
        read_samples(&*source);
    }
}

fn seekable(data: &[u8]) {
    const LIMIT: u64 = 1 << 20;
    let source = Source::from_bytes("fuzz.zst", data.to_vec());
    let Ok(Some(plain)) = tbl_io::open_seekable(&source) else { return };
    let len = plain.len().min(LIMIT);
    let mut whole = Vec::new();
    let mut parts = Vec::new();
    let half = len / 2;
    if plain.read_range_into(0, len, &mut whole).is_ok() {
        for (offset, len) in [(0, half), (half, len - half)] {
            let mut part = Vec::new();
            plain.read_range_into(offset, len, &mut part).expect("all of it was read");
            parts.extend(part);
        }
        assert_eq!(whole, parts);
    }
}

/// Reads the bytes as an array, and as an archive whose arrays are called `latent`: as many numbers as
/// the shape says, and no more bytes than allowed.
pub fn numpy(bytes: &[u8]) {
    const LIMIT: u64 = 1 << 20;
    let whole = |array: NpyArray<'_>| {
        let numbers: usize = array.shape.iter().product();
        assert_eq!(numbers * array.item_bytes, array.data.len(), "shape {:?}", array.shape);
    };
    if let Ok(array) = NpyArray::parse(bytes) {
        whole(array);
    }
    let mut member = Vec::new();
    if npz_member(bytes, "latent", LIMIT, &mut member).is_ok() {
        assert!(member.len() as u64 <= LIMIT, "{} bytes", member.len());
        if let Ok(array) = NpyArray::parse(&member) {
            whole(array);
        }
    }
}

/// Opens `data` as a file of images of one size and reads every sample, which is an image then.
pub fn images(data: &[u8]) {
    let Ok(source) = tbl_io::open_source(Source::from_bytes("fuzz", data.to_vec())) else { return };
    if source.kind() != SourceKind::Images {
        return;
    }
    let mut bytes = Vec::new();
    for index in 0..source.sample_count().min(MAX_SAMPLES) {
        let facts = source.facts(index).expect("its length was checked");
        if facts.bytes <= MAX_SAMPLE_BYTES {
            source.read_into(index, &mut bytes).expect("its length was checked");
            let info = tl_decode::probe(&bytes).expect("it is an image");
            assert_eq!((info.width, info.height), (facts.width, facts.height));
        }
    }
}

/// Opens `data` as a TBL file of version 1 and reads every sample.
pub fn tbl1(data: &[u8]) {
    if data.starts_with(b"TBL\x01") {
        tbl(data);
    }
}

/// Opens `data` as a TBL file of version 2 and reads every sample.
pub fn tbl2(data: &[u8]) {
    if data.starts_with(b"TBL\x02") {
        tbl(data);
    }
}

fn tbl(data: &[u8]) {
    let mut strict = ReadOptions { verify: Verify::All, ..ReadOptions::default() };
    strict.limits.sample_bytes = MAX_SAMPLE_BYTES;
    let tolerant = ReadOptions { verify: Verify::Nothing, damage: Damage::LeaveOut, ..strict };
    let open =
        |options| TblFile::from_source(Source::from_bytes("fuzz.tbl", data.to_vec()), options);
    let file = open(strict);
    if let Ok(file) = &file {
        read_samples(file);
        read_raw(file);
        answered(file.verify_structure());
        answered(file.row_index_totals());
        for index in 0..file.sample_count().min(MAX_SAMPLES) {
            answered(file.metadata(index));
        }
    }
    if let Ok(salvaged) = open(tolerant) {
        read_samples(&salvaged);
        if let Ok(file) = file {
            assert_eq!(file.sample_count(), salvaged.sample_count());
        }
    } else {
        assert!(file.is_err(), "a file that opens strictly opens tolerantly");
    }
}

/// Reads samples front to back and compares what is said of them with what they are.
pub(crate) fn read_samples(source: &dyn SampleSource) {
    let (mut bytes, mut fields, mut row_index) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..source.sample_count().min(MAX_SAMPLES) {
        source.will_need(index);
        let entry = source.entry(index);
        let read = source.read_into(index, &mut bytes);
        // Damaged metadata has no name for a sample whose bytes can be read all the same.
        if let (Ok(entry), Ok(())) = (entry, read) {
            assert_eq!(entry.bytes, bytes.len() as u64);
        }
        fields.clear();
        answered(source.read_fields(index, &mut fields));
        answered(source.row_index_into(index, &mut row_index));
        assert!(row_index.len() <= RowIndexes::MAX_ROW_INDEX_BYTES);
    }
    let beyond = source.sample_count();
    assert!(source.entry(beyond).is_err() && source.read_into(beyond, &mut bytes).is_err());
}

/// For damaged bytes a value and an error are both right, as long as there is one.
fn answered<T>(_: Result<T, ReadError>) {}

/// The mapped view of raw images holds what reading them one by one gives.
fn read_raw(file: &TblFile) {
    let Ok(view) = file.raw_view() else { return };
    assert_eq!(view.sample_count(), file.sample_count());
    let mut bytes = Vec::new();
    for index in 0..view.sample_count().min(MAX_SAMPLES) {
        if file.read_into(index, &mut bytes).is_ok() {
            let equal = view.with(index, 1, |pixels| pixels == bytes);
            assert!(equal.expect("the image lies inside the mapping"));
        }
    }
}

/// Puts the checksums of a version 2 file right, so that mutations get past them.
///
/// A compressed payload is left alone: its decoder sees the mutated bytes before its checksum is
/// compared.
pub fn fix_tbl2_checksums(file: &mut [u8]) {
    const HEADER_BYTES: usize = 64;
    const ENTRY_BYTES: usize = 24;
    let Some((header, _)) = file.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    header[44..48].fill(0);
    let checksum = header_crc32(header);
    header[44..48].copy_from_slice(&checksum.to_le_bytes());

    let count = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|i| header[i]));
    for i in 0..usize::try_from(count.min(MAX_SAMPLES)).unwrap_or(0) {
        let at = HEADER_BYTES + i * ENTRY_BYTES;
        let Some(entry) = file.get(at..at + ENTRY_BYTES) else { return };
        let offset = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| entry[i]));
        let stored_bytes = u32::from_le_bytes([8, 9, 10, 11].map(|i| entry[i]));
        let compressed = entry[21] & (1 | 8) != 0;
        let payload = usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(stored_bytes as usize)?))
            .and_then(|range| file.get(range));
        if let Some(payload) = payload.filter(|_| !compressed) {
            let checksum = payload_crc16(payload);
            file[at + 22..at + 24].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

/// Puts the checksum of each TAR header right, as far as the sizes in them lead.
pub fn fix_tar_checksums(file: &mut [u8]) {
    const BLOCK_BYTES: usize = 512;
    let mut at = 0;
    for _ in 0..MAX_SAMPLES {
        let Some(header) = file.get_mut(at..at + BLOCK_BYTES) else { return };
        if header.iter().all(|&byte| byte == 0) {
            at += BLOCK_BYTES;
            continue;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136].iter().take_while(|byte| byte.is_ascii_digit());
        let size = digits.fold(0, |size, &digit| (size << 3) | usize::from(digit & 7));
        at += BLOCK_BYTES + (size.min(file.len()).next_multiple_of(BLOCK_BYTES));
    }
}
