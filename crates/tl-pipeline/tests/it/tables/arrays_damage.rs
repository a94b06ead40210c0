//! Damaged archives and Zarr folders: errors by name, or the same numbers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tbl_io::{Opened, Source, Stores};
use tl_pipeline::{ArrayTable, Content, Table};

use super::array_files::{Random, zip};
use super::arrays::{folder, rows, saved};

/// The error of opening a file with arrays, or the table.
fn open(stores: &Stores, path: &Path) -> Result<ArrayTable, String> {
    let source = match stores.open(path) {
        Ok(Opened::File(source)) => source,
        other => return Err(format!("{other:?}")),
    };
    let table = ArrayTable::open(stores, &source).map_err(|error| error.to_string())?;
    table.ok_or_else(|| "no arrays".to_owned())
}

/// The rows of a column of a file or a folder, unless anything is wrong with it.
fn read(stores: &Stores, path: &Path, name: &str) -> Result<Vec<Vec<u8>>, String> {
    read_table(open(stores, path), name)
}

/// The rows of a column of an `.npz` file.
fn read_npz(bytes: Vec<u8>, name: &str) -> Result<Vec<Vec<u8>>, String> {
    let table = ArrayTable::open(&Stores::new(), &Source::from_bytes("a.npz", bytes));
    read_table(table.map(Option::unwrap).map_err(|error| error.to_string()), name)
}

fn read_table(table: Result<ArrayTable, String>, name: &str) -> Result<Vec<Vec<u8>>, String> {
    let table = table.inspect_err(|error| assert!(!error.contains('\n'), "{error}"))?;
    let place = table.columns().iter().position(|column| column.name == name);
    let place = place.ok_or("no column")?;
    let Content::Numbers { number, shape, .. } = &table.columns()[place].content else {
        return Err(format!("{:?}", table.columns()[place].content));
    };
    // What a damaged shape says may be true for a chunk that does not exist.
    if table.row_count() > 1000 || number.bytes() * shape.iter().product::<usize>() > 1 << 20 {
        return Err("large".to_owned());
    }
    table.verify(place).map_err(|error| error.to_string())?;
    rows(&table, name).map_err(|error| error.to_string())
}

#[test]
fn truncations_and_flips_of_archives_are_errors_or_the_same_numbers() {
    let mut random = Random(3);
    for name in ["stored.npz", "deflated.npz"] {
        let whole = fs::read(folder().join(name)).unwrap();
        let column = "int16";
        let expected = saved(column);
        for length in 0..whole.len() {
            read_npz(whole[..length].to_vec(), column).unwrap_err();
        }
        let directory = whole.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
        for flip in 0..3000 {
            let mut bytes = whole.clone();
            // Every other one in the directory.
            let first = if flip % 2 == 0 { directory } else { 0 };
            let place = first + random.below(bytes.len() - first);
            bytes[place] ^= 1 << random.below(8);
            if let Ok(found) = read_npz(bytes, column) {
                assert_eq!(found, expected, "{name}: byte {place}");
            }
        }
    }
}

/// The message for a file with these bytes.
fn message(bytes: &[u8]) -> String {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.npz");
    fs::write(&path, bytes).unwrap();
    let message = open(&tl_pipeline::stores(), &path).unwrap_err();
    message.rsplit_once("a.npz: ").unwrap().1.to_owned()
}

/// A `.npy` file of so many rows.
fn npy(rows: usize) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows},), }}");
    let header = format!("{header:<117}\n");
    [&b"\x93NUMPY\x01\x00\x76\x00"[..], header.as_bytes(), &vec![7; rows]].concat()
}

#[test]
fn lying_archives_are_errors_by_name() {
    let pair = [("a.npy".to_owned(), npy(3)), ("b.npy".to_owned(), npy(4))];
    let rows = "array `b` has 4 rows, array `a` has 3: expected the same number";
    for deflated in [false, true] {
        assert_eq!(message(&zip(&pair, deflated, deflated)), rows);
    }
    assert_eq!(message(&zip(&[], false, false)), "no arrays");
    assert_eq!(message(b"PK"), "not a .npz file: expected the end of a ZIP directory at byte 2");
    let pair = [pair[0].clone(), ("b.npy".to_owned(), npy(3))];
    let whole = zip(&pair, false, false);
    let entry = whole.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    let changed = |at: usize, with: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        message(&bytes)
    };
    // The second member at the place of the first one.
    let overlap =
        "not a .npz file: expected members of the ZIP archive that do not overlap at byte 0";
    assert_eq!(changed(entry + 42, &[0; 4]), overlap);
    let encrypted = "array `b` is encrypted, which NumPy does not do";
    assert_eq!(changed(entry + 8, &[1]), encrypted);
    let method = "array `b`: ZIP compression method 12, expected 0 (stored) or 8 (deflated)";
    assert_eq!(changed(entry + 10, &[12]), method);
    let end = whole.len() - 22;
    let place =
        format!("not a .npz file: expected a ZIP directory of this place and size at byte {end}");
    assert_eq!(changed(end + 10, &[9]), place);
    assert_eq!(changed(end + 16, &[255; 3]), place);
    let size = "a member of the .npz file needs 131 bytes, found 130";
    assert_eq!(changed(entry + 20, &[130]), size);
    let sizes = "array `b`: array of shape [3] and 1-byte numbers has 2 bytes of data";
    assert_eq!(changed(entry + 20, &[130, 0, 0, 0, 130]), sizes);
}

#[test]
fn damage_in_zarr_folders_is_an_error_by_name_or_is_read() {
    let stores = tl_pipeline::stores();
    let expected = saved("photo");
    let mut random = Random(5);
    for form in ["gzip", "shards_crc", "zstd"] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.zarr");
        copy(&folder().join(format!("photo_{form}.zarr")), &path);
        let metadata = path.join("zarr.json");
        let whole = fs::read(&metadata).unwrap();
        for length in 0..whole.len() {
            fs::write(&metadata, &whole[..length]).unwrap();
            read(&stores, &path, "array").unwrap_err();
        }
        for _ in 0..1000 {
            let mut bytes = whole.clone();
            bytes[random.below(whole.len())] ^= 1 << random.below(8);
            fs::write(&metadata, bytes).unwrap();
            drop(read(&stores, &path, "array"));
        }
        fs::write(&metadata, &whole).unwrap();
        let chunk = path.join(if form == "zstd" { "0/0/0" } else { "c/0/0/0" });
        let whole = fs::read(&chunk).unwrap();
        for length in 0..whole.len() {
            fs::write(&chunk, &whole[..length]).unwrap();
            let error = read(&stores, &path, "array").unwrap_err();
            assert!(error.contains(chunk.to_str().unwrap()), "{error}");
        }
        for _ in 0..1000 {
            let mut bytes = whole.clone();
            bytes[random.below(whole.len())] ^= 1 << random.below(8);
            fs::write(&chunk, bytes).unwrap();
            // Zstandard without a checksum has other numbers.
            match read(&stores, &path, "array") {
                Ok(found) if form != "zstd" => assert_eq!(found, expected),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The reason why the column of an array with changed metadata is not read, or the error.
fn reason(change: impl FnOnce(&mut Value)) -> String {
    let root = tempfile::tempdir().unwrap();
    let metadata = fs::read(folder().join("photo_plain.zarr/zarr.json")).unwrap();
    let mut metadata: Value = serde_json::from_slice(&metadata).unwrap();
    change(&mut metadata);
    fs::write(root.path().join("zarr.json"), metadata.to_string()).unwrap();
    match open(&tl_pipeline::stores(), root.path()) {
        Err(error) => error.rsplit_once("zarr.json: ").unwrap().1.to_owned(),
        Ok(table) => {
            let Content::Unreadable { reason } = &table.columns()[0].content else {
                unreachable!("{table:?}")
            };
            reason.clone()
        }
    }
}

#[test]
fn metadata_that_is_not_read_is_named() {
    let metadata = |text: &str| format!("the metadata of the Zarr array: {text}");
    let version = metadata("zarr_format is 2, expected 3");
    assert_eq!(reason(|array| array["zarr_format"] = json!(2)), version);
    let sides = metadata("shape: expected at most 64 whole numbers");
    assert_eq!(reason(|array| array["shape"] = json!([-1])), sides);
    let chunks = metadata("chunk_shape: expected 3 numbers of at least 1");
    let grid = |array: &mut Value, shape: Value| {
        array["chunk_grid"]["configuration"]["chunk_shape"] = shape;
    };
    assert_eq!(reason(|array| grid(array, json!([4, 0, 2]))), chunks);
    assert_eq!(reason(|array| grid(array, json!([4, 2]))), chunks);
    let large = "rows of chunks of more than 1073741824 bytes";
    assert_eq!(reason(|array| grid(array, json!([4, 1_u64 << 60, 1_u64 << 60]))), large);
    assert_eq!(
        reason(|array| array["data_type"] = json!("complex64")),
        "numbers of type complex64"
    );
    let fill = metadata("fill_value: expected a number of type i16");
    assert_eq!(reason(|array| array["fill_value"] = json!("NaN")), fill);
    let grid = "chunk grid `rectilinear`, expected regular";
    assert_eq!(reason(|array| array["chunk_grid"]["name"] = json!("rectilinear")), grid);
    assert_eq!(reason(|array| array["later"] = json!({})), "extension `later`, expected none");
    let codec = json!({"name": "bytes"});
    let endian = "codec `bytes` without the endian little or big";
    assert_eq!(reason(|array| array["codecs"] = json!([codec])), endian);
    assert_eq!(
        reason(|array| array["shape"] = json!([])),
        metadata("chunk_shape: expected 0 numbers of at least 1")
    );
}

#[test]
fn arrays_of_a_group_have_as_many_rows() {
    let root = tempfile::tempdir().unwrap();
    let group = root.path().join("a.zarr");
    copy(&folder().join("listed.zarr"), &group);
    fs::write(group.join("zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).unwrap();
    let stores = tl_pipeline::stores();
    assert_eq!(open(&stores, &group).unwrap().row_count(), 11);
    let member = group.join("int16/zarr.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&member).unwrap()).unwrap();
    metadata["shape"][0] = json!(12);
    fs::write(&member, metadata.to_string()).unwrap();
    let error = open(&stores, &group).unwrap_err();
    let expected = "array `int16` has 12 rows, array `float32` has 11: expected the same number";
    assert!(error.ends_with(expected), "{error}");
    fs::write(&member, "{").unwrap();
    let error = open(&stores, &group).unwrap_err();
    assert!(error.contains("int16/zarr.json: the metadata of the Zarr array: EOF"), "{error}");
}

/// Metadata of 300 bytes can describe any number of rows, and takes no memory for them.
#[test]
fn numbers_without_chunks_take_no_memory() {
    let root = tempfile::tempdir().unwrap();
    let metadata = fs::read(folder().join("photo_zstd.zarr/zarr.json")).unwrap();
    let mut metadata: Value = serde_json::from_slice(&metadata).unwrap();
    metadata["shape"] = json!([1_u64 << 50, 1, 1]);
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = json!([1 << 20, 1, 1]);
    fs::write(root.path().join("zarr.json"), metadata.to_string()).unwrap();
    let table = open(&tl_pipeline::stores(), root.path()).unwrap();
    let values = table.values(0).unwrap();
    let tl_pipeline::ColumnValues::Blocks { rows, load_bytes } = values else { panic!("whole") };
    assert!((1_u64 << 50).div_ceil(rows) <= 1 << 22 && load_bytes < 3 << 30, "{rows} {load_bytes}");
}
