//! Parquet files without images, and arrays, through the commands that take tables.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{json_lines, tl};

fn file(name: &str) -> String {
    let folder = tl_testdata::shipped!("parquet/tables");
    folder.join(format!("{name}.parquet")).to_str().expect("the path is UTF-8").to_owned()
}

fn expected(name: &str) -> Value {
    let path = PathBuf::from(file(name)).with_file_name("expected.json");
    let text = std::fs::read(path).expect("the listing is readable");
    let all: Value = serde_json::from_slice(&text).expect("the listing is JSON");
    all[name].clone()
}

#[test]
fn rows_are_listed_with_the_values_of_other_readers() {
    for name in ["pyarrow_nulls", "duckdb_flat", "polars_nulls"] {
        let lines =
            json_lines(&tl(["ls", "--json", "--columns", "i64,f64,text", &file(name)]).text());
        assert_eq!(lines.len(), 60);
        let expected = expected(name);
        for (row, line) in lines.iter().enumerate() {
            let values = &line["values"];
            for column in ["i64", "f64"] {
                let listed = expected[column][row].as_str();
                let listed: Option<f64> = listed.map(|text| text.parse().expect("a number"));
                assert_eq!(values[column].as_f64(), listed, "{name} {column} {row}");
            }
            let bytes = expected["text"][row]["bytes"].as_array();
            let text = bytes.map(|bytes| {
                let bytes =
                    bytes.iter().filter_map(Value::as_u64).filter_map(|byte| byte.try_into().ok());
                String::from_utf8(bytes.collect()).expect("a text")
            });
            assert_eq!(values["text"].as_str(), text.as_deref());
            assert_eq!(line["row"], row);
        }
        let cat = tl(["cat", &file(name), "7", "--columns", "i64,text"]).text();
        let row: Value = serde_json::from_str(&cat).expect("a row is JSON");
        assert_eq!(row["i64"], lines[7]["values"]["i64"]);
    }
    let error = tl(["cat", &file("duckdb_flat"), "60"]).error(2);
    assert!(error.ends_with("duckdb_flat.parquet: row 60 does not exist, there are 60"), "{error}");
    let error = tl(["ls", "--columns", "x", &file("duckdb_flat")]).error(2);
    assert!(error.ends_with("duckdb_flat.parquet: no column \"x\""), "{error}");
}

#[test]
fn columns_are_described_checked_and_measured() {
    let path = file("datasets_lists");
    let info = tl(["info", &path]).text();
    let columns =
        "\ncolumns      vector  f32 3\n             matrix  i32 2x3\n             label   i64\n";
    assert!(info.contains("\nkind         parquet\nrows         60\n"), "{info}");
    assert!(info.ends_with(columns), "{info}");
    let facts = json_lines(&tl(["info", "--json", &path]).text());
    assert_eq!(
        facts[0]["columns"][1],
        json!({"name": "matrix", "content": "i32 2x3", "unreadable": null})
    );
    let good = tl(["verify", &path]).text();
    assert!(good.ends_with("good: 60 rows, 3 columns, 3613 bytes\n"), "{good}");
    let digests = tl(["digest", "--columns", &path]).text();
    assert_eq!(digests.lines().count(), 3);
    assert_eq!(tl(["digest", &path]).text().trim().len(), 64);
    let bench = tl(["bench", &path, "--seconds", "0", "--columns", "vector", "--label", "label"]);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    // The rows of a file of images are a table where columns are asked for.
    let images = path.replace("tables/datasets_lists", "datasets_5_2");
    let bench =
        tl(["bench", &images, "--seconds", "0", "--columns", "caption", "--label", "label"]);
    assert_eq!(bench.code, Some(0), "{}", bench.stderr);
}

#[test]
fn arrays_are_tables_of_one_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.npy");
    let header =
        format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.bytes());
    bytes.extend([0.5_f32, 1.0, 1.5, 2.0, 2.5, f32::NAN].iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(&path, &bytes).expect("the folder is writable");
    let path = path.to_str().expect("UTF-8");
    let lines = json_lines(&tl(["ls", "--json", path]).text());
    assert_eq!(lines[0]["values"], json!({"array": [0.5, 1.0]}));
    assert_eq!(lines[2]["values"], json!({"array": [2.5, null]}));
    assert_eq!(tl(["ls", path]).text().lines().nth(1), Some("0\t[0.5,1.0]"));
    let info = tl(["info", path]).text();
    assert!(
        info.ends_with(
            "\nkind         npy\nrows         3\nbytes        152\ncolumns      array  f32 2\n"
        ),
        "{info}"
    );
    std::fs::write(path, &bytes[..140]).expect("the folder is writable");
    let error = tl(["info", path]).error(1);
    assert!(
        error.ends_with("a.npy: the array ends at byte 152, the file has 140 bytes"),
        "{error}"
    );
}

fn array(name: &str) -> String {
    let folder = tl_testdata::shipped!("arrays");
    folder.join(name).to_str().expect("the path is UTF-8").to_owned()
}

#[test]
fn archives_and_zarr_folders_are_tables() {
    let types =
        ["stored.npz", "deflated.npz", "big_endian.npz", "types.zarr", "types.zarr/zarr.json"];
    let digests = |name: &str| {
        let text = tl(["digest", "--columns", &array(name)]).text();
        let lines = text.lines().filter(|line| !line.starts_with("dead "));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expected = digests("stored.npz");
    assert_eq!(expected.len(), 12);
    for name in types {
        assert_eq!(digests(name), expected, "{name}");
        let good = tl(["verify", &array(name), "--json"]).text();
        assert_eq!(json_lines(&good)[0]["good"], true, "{name}");
        let row: Value =
            serde_json::from_str(&tl(["cat", &array(name), "3", "--columns", "uint64"]).text())
                .expect("a row is JSON");
        let listed = json_lines(&tl(["ls", "--json", "--columns", "uint64", &array(name)]).text());
        assert_eq!((listed.len(), &listed[3]["values"]["uint64"]), (11, &row["uint64"]));
        let bench = tl(["bench", &array(name), "--seconds", "0", "--columns", "int8"]);
        assert_eq!(bench.code, Some(0), "{}", bench.stderr);
    }
    let info = tl(["info", &array("photo_gzip.zarr")]).text();
    let facts =
        "\nkind         zarr\nrows         11\nbytes        330\ncolumns      array  i16 5x3\n";
    assert!(info.ends_with(facts), "{info}");
    let info = tl(["info", &array("photo_blosc.zarr")]).text();
    let reason = "array  unreadable: codec `blosc`, expected gzip, zstd or crc32c\n";
    assert!(info.ends_with(reason), "{info}");
    let error = tl(["ls", "--columns", "array", &array("photo_blosc.zarr")]).error(1);
    assert!(
        error.ends_with("column array: codec `blosc`, expected gzip, zstd or crc32c"),
        "{error}"
    );
    let error = tl(["digest", &array("stored.npz")]).error(1);
    assert!(error.ends_with("column version: an array without dimensions has no rows"), "{error}");
}

#[test]
fn a_flipped_byte_of_a_stored_member_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.npz");
    let mut bytes = std::fs::read(array("stored.npz")).expect("the archive is readable");
    // In the numbers of the first member, which begin after headers of 34 and 128 bytes.
    bytes[200] ^= 1;
    std::fs::write(&path, bytes).expect("the folder is writable");
    let error = tl(["verify", path.to_str().expect("UTF-8")]).error(1);
    assert!(error.contains("a.npz: array `bool`: CRC-32 is "), "{error}");
}

#[test]
fn billions_of_rows_without_numbers_take_no_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.npy");
    let header = format!(
        "{:<117}\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (17179869184, 0), }"
    );
    let bytes = [&b"\x93NUMPY\x01\x00\x76\x00"[..], header.as_bytes()].concat();
    std::fs::write(&path, bytes).expect("the folder is writable");
    let path = path.to_str().expect("UTF-8");
    let start = std::time::Instant::now();
    let good = tl(["verify", path]).text();
    assert!(good.ends_with("good: 17179869184 rows, 1 columns, 128 bytes\n"), "{good}");
    assert_eq!(tl(["digest", path]).text().trim().len(), 64);
    assert!(tl(["info", path]).text().contains("\nrows         17179869184\n"));
    assert!(start.elapsed() < std::time::Duration::from_secs(30));
}
