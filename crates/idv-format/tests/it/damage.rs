//! Damaged files: each kind of damage has its own error, and none does harm.

use std::fs;

use idv_format::{FormatError, Header, IdvFile, ReadError, Version};

use crate::data::{all_samples, outcome, read_everything};

/// Where things are in ML.NET's `datatypes.idv`.
const TOC: usize = 527;
const TAIL: usize = 801;
const COLUMN_0_CODEC: usize = TOC + 3;
const COLUMN_0_PARAMETERS: usize = COLUMN_0_CODEC + 7;
const COLUMN_0_COMPRESSION: usize = COLUMN_0_PARAMETERS + 1;
const COLUMN_0_ROWS: usize = COLUMN_0_COMPRESSION + 1;
const COLUMN_0_LOOKUP: usize = COLUMN_0_ROWS + 1;
const COLUMN_0_METADATA: usize = COLUMN_0_LOOKUP + 8;
const LOOKUP_0: usize = 383;

fn version(last: u64) -> u64 {
    0x0001_0001_0001_0000 + last
}

fn put(offset: usize, value: impl Into<i128>, bytes: usize) -> impl Fn(&mut Vec<u8>) {
    let value = value.into().to_le_bytes();
    move |file| file[offset..offset + bytes].copy_from_slice(&value[..bytes])
}

/// What opening a file and reading its first column gives.
fn read(bytes: Vec<u8>) -> Result<usize, ReadError> {
    let file = IdvFile::open(bytes)?;
    let column = file.column(0)?;
    column.read(0..file.row_count()).map(|values| values.len())
}

fn check(what: &str, damage: impl Fn(&mut Vec<u8>), expected: &str) {
    let mut bytes = fs::read(tl_testdata::path!("formats/idv/datatypes.idv")).unwrap();
    damage(&mut bytes);
    let found = read(bytes).map_or_else(|error| error.to_string(), |rows| format!("{rows} rows"));
    assert_eq!(found, expected, "{what}");
}

/// What was tried on ML.NET's own reader, in that order.
#[tl_testdata::needs("formats/idv")]
#[test]
fn what_mlnet_refuses_is_refused_by_name() {
    let opens = "5 rows";
    check("intact", |_| {}, opens);
    let signature = "signature at 0 is 00425644004c4dbc, expected 00425644004c4d43";
    check("signature byte flipped", |file| file[0] ^= 0xff, signature);
    check("version above", put(8, version(7), 8), opens);
    let newer = "reading requires version 1.1.1.7, this reader knows 1.1.1.4 to 1.1.1.6";
    let both = |last| {
        move |file: &mut Vec<u8>| {
            put(8, version(last), 8)(file);
            put(16, version(last), 8)(file);
        }
    };
    check("compatible version above", both(7), newer);
    let order = "compatible version 1.1.1.6 is above the file's version 1.1.1.5";
    check("compatible above version", put(16, version(6), 8), order);
    let older = "reading requires version 1.1.1.3, this reader knows 1.1.1.4 to 1.1.1.6";
    check("compatible version below", put(16, version(3), 8), older);
    check("version below", both(1), "version 1.1.1.1 is older than 1.1.1.2");
    check("version 2.0.0.0", put(8, 0x0002_0000_0000_0000u64, 8), opens);
    let toc = "offset of the table of contents at 24 is 0, expected 256 to 801";
    check("toc offset 0", put(24, 0, 8), toc);
    let tail = "offset of the tail at 32 is 0, expected 256 to 9223372036854775799";
    check("tail offset 0", put(32, 0, 8), tail);
    let beyond = "tail signature at 10000 needs 8 bytes, found 0";
    check("tail offset past end", put(32, 10_000, 8), beyond);
    let tail = "tail signature at 801 is 434d4c00445642ff, expected 434d4c0044564200";
    check("tail signature damaged", |file| file[TAIL] = 0xff, tail);
    let cut = "tail signature at 801 needs 8 bytes, found 0";
    check("file cut before tail", |file| file.truncate(TAIL - 1), cut);
    check("trailing garbage", |file| file.extend(b"garbage"), opens);
    check("rows -1", put(40, -1, 8), "row count at 40 is -1, expected 0 or more");
    check("cols -1", put(48, -1, 4), "column count at 48 is -1, expected 0 or more");
    check("cols 3 of 9", put(48, 3, 4), opens);
    check("header pad", |file| file[52..256].fill(0xee), opens);
}

/// Where ML.NET drops the column or fails later.
#[tl_testdata::needs("formats/idv")]
#[test]
fn damage_to_a_column_is_named() {
    let block = "column \"bl\", block 0 at 256:";
    check("rows 4", put(40, 4, 8), "4 rows");
    check(
        "compression 2",
        put(COLUMN_0_COMPRESSION, 2, 1),
        &format!("{block} zlib data of 6 bytes is damaged after 0 bytes"),
    );
    let dead = "\"bl\" cannot be read: compression 7 is unknown";
    check("compression 7", put(COLUMN_0_COMPRESSION, 7, 1), dead);
    let dead = "\"bl\" cannot be read: codec XvBool is unknown";
    check("codec name", |file| file[COLUMN_0_CODEC + 1] = b'X', dead);
    let rows = "rows per block at 539 are 0 in a file of 5 rows";
    check("rows per block 0", put(COLUMN_0_ROWS, 0, 1), rows);
    let parameters = "codec DvBool at 538 has 1 bytes of parameters and uses 0";
    check("parameters", put(COLUMN_0_PARAMETERS, 1, 1), parameters);
    let lookup = |found| format!("offset of a lookup table at 540 is {found}, expected 256 to 785");
    check("lookup offset 255", put(COLUMN_0_LOOKUP, 255, 8), &lookup(255));
    check("lookup offset beyond", put(COLUMN_0_LOOKUP, 786, 8), &lookup(786));
    let metadata = "offset of a table of metadata at 548 is 5, expected 256 to 801";
    check("metadata offset 5", put(COLUMN_0_METADATA, 5, 8), metadata);
    let offset = "offset of a block at 383 is 10, expected 256 to 795";
    check("block offset 10", put(LOOKUP_0, 10, 8), offset);
    let negative = |what, at| format!("{what} at {at} is -1, expected 0 or more");
    check("stored size", put(LOOKUP_0 + 8, -1, 4), &negative("stored size of a block", 391));
    check("size", put(LOOKUP_0 + 12, -1, 4), &negative("size of a block", 395));
    let size = |found| format!("{block} block has {found} bytes, expected 4");
    check("size too big", put(LOOKUP_0 + 12, 400, 4), &size(400));
    check("size too small", put(LOOKUP_0 + 12, 3, 4), &size(3));
    let cut = format!("{block} DEFLATE data of 3 bytes does not end after 2 bytes");
    check("stored size 3", put(LOOKUP_0 + 8, 3, 4), &cut);
    let damaged = format!("{block} DEFLATE data of 6 bytes is damaged after 0 bytes");
    check("block bytes", |file| file[256..262].fill(0xff), &damaged);
}

/// The same rows with another number in the header.
#[tl_testdata::needs("formats/idv")]
#[test]
fn a_wrong_row_count_is_found_in_every_column() {
    let folder = tl_testdata::path!("formats/idv");
    let intact = fs::read(folder.join("datatypes.idv")).unwrap();
    for rows in [4u8, 6] {
        let mut bytes = intact.clone();
        bytes[40] = rows;
        let columns = outcome(bytes).unwrap();
        // Two bits each, 4, 5 and 6 booleans take the same word; missing ones are zeros.
        let failed = columns.iter().filter(|column| column.is_err()).count();
        let expected = if rows == 4 { columns.len() - 1 } else { columns.len() };
        assert_eq!(failed, expected, "{rows} rows: {columns:?}");
    }
}

/// Rows per block may differ between columns, which ML.NET refuses; but then blocks differ too.
#[tl_testdata::needs("formats/idv")]
#[test]
fn other_rows_per_block_need_other_blocks() {
    let folder = tl_testdata::path!("formats/idv");
    let mut bytes = fs::read(folder.join("datatypes.idv")).unwrap();
    bytes[COLUMN_0_ROWS] = 4;
    let columns = outcome(bytes).unwrap();
    // The second block of column 0 is then the first one of column 1, of another size.
    let error = columns[0].as_ref().unwrap_err();
    assert!(error.contains("block has 5 bytes, expected 4"), "{error}");
    assert!(columns[1..].iter().all(Result::is_ok));
}

/// A file that ends early has no tail signature.
#[test]
fn every_prefix_of_a_file_is_truncated() {
    for sample in all_samples().iter().filter(|sample| sample.bytes.len() < 3000) {
        let end = usize::try_from(sample.expected["tail_offset"].as_u64().unwrap()).unwrap() + 8;
        for len in 0..end {
            let error = IdvFile::open(&sample.bytes[..len]).unwrap_err();
            let truncated = matches!(error, ReadError::Format(FormatError::Truncated { .. }));
            assert!(truncated, "{} bytes of {}: {error}", len, sample.path.display());
        }
    }
}

/// Every byte of small files flipped: an error or values, and no panic.
#[test]
fn flipped_bytes_do_no_harm() {
    for sample in all_samples().iter().filter(|sample| sample.bytes.len() < 1000) {
        for at in 0..sample.bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = sample.bytes.clone();
                bytes[at] ^= flip;
                drop(read_everything(bytes));
            }
        }
    }
}

#[test]
fn a_header_written_is_the_header_read() {
    let header = Header {
        version: Version(0x0002_0003_0004_0005),
        compatible_version: Version::OLDEST_READABLE,
        toc_offset: 1 << 40,
        tail_offset: (1 << 40) + 5,
        row_count: u64::from(u32::MAX),
        column_count: 77,
    };
    assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
    assert_eq!(header.version.to_string(), "2.3.4.5");
}
