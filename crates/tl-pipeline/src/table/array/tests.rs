//! Files of arrays as their writers make them, and damaged ones.

use tl_handoff::sync::Arc;

use super::*;

/// A `.npy` file with this header, which NumPy pads to 128 bytes.
fn npy_file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(data);
    bytes
}

/// A safetensors file with this header.
fn safetensors_file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

const TENSORS: &str = r#"{"__metadata__": {"format": "pt"},
    "b": {"dtype": "F32", "shape": [2, 1, 2], "data_offsets": [4, 20]},
    "a": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]},
    "c": {"dtype": "U8", "shape": [3], "data_offsets": [20, 23]},
    "d": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [23, 25]}}"#;

fn tensors() -> Vec<u8> {
    let mut data: Vec<u8> = [-1_i16, 300].iter().flat_map(|number| number.to_le_bytes()).collect();
    data.extend([0.5_f32, 1.0, 1.5, 2.0].iter().flat_map(|number| number.to_le_bytes()));
    data.extend([1, 2, 3, 4, 5]);
    safetensors_file(TENSORS, &data)
}

fn open(name: &str, bytes: Vec<u8>) -> Result<ArrayTable, PipelineError> {
    let source = Source::from_bytes(name, bytes);
    ArrayTable::open(&Stores::new(), &source).map(|table| table.expect("the file has arrays"))
}

fn row(table: &ArrayTable, column: usize, row: u64, bytes: usize) -> Vec<u8> {
    let ColumnValues::Whole(values) = table.values(column).unwrap() else { panic!("not whole") };
    let values: Arc<dyn RowValues> = values;
    let mut out = vec![0; bytes];
    values.write(row, &mut out).unwrap();
    assert!(values.write(table.row_count(), &mut out).is_err());
    out
}

fn numbers(number: ColumnType, shape: &[usize]) -> Content {
    Content::Numbers { number, shape: shape.to_vec(), meaning: Meaning::Value }
}

#[test]
fn rows_of_a_npy_file_are_those_of_its_first_dimension() {
    let data: Vec<u8> = (0..12_i16).flat_map(|number| number.to_le_bytes()).collect();
    let table = open("a.npy", npy_file("<i2", "False", "(3, 2, 2)", &data)).unwrap();
    assert_eq!((table.row_count(), table.format()), (3, "npy"));
    assert_eq!(table.columns()[0].name, "array");
    assert_eq!(table.columns()[0].content, numbers(ColumnType::I16, &[2, 2]));
    let expected: Vec<u8> = (4..8_i16).flat_map(|number| number.to_ne_bytes()).collect();
    assert_eq!(row(&table, 0, 1, 8), expected);
    // The most significant byte first, and one dimension in Fortran order, which is also C order.
    let table = open("a.npy", npy_file(">u4", "True", "(2,)", &[0, 0, 1, 0, 0, 0, 0, 7])).unwrap();
    assert_eq!(row(&table, 0, 0, 4), 256_u32.to_ne_bytes());
    let table = open("a.npy", npy_file("<f8", "False", "(0, 5)", &[])).unwrap();
    assert_eq!(table.row_count(), 0);
}

#[test]
fn tensors_are_columns_in_the_order_of_their_bytes() {
    let table = open("a.safetensors", tensors()).unwrap();
    assert_eq!((table.row_count(), table.format()), (2, "safetensors"));
    let names: Vec<_> = table.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(table.columns()[1].content, numbers(ColumnType::F32, &[1, 2]));
    assert_eq!(row(&table, 0, 1, 2), 300_i16.to_ne_bytes());
    assert_eq!(row(&table, 1, 1, 8), [1.5_f32.to_ne_bytes(), 2.0_f32.to_ne_bytes()].concat());
    let unreadable = |reason: &str| Content::Unreadable { reason: reason.to_owned() };
    assert_eq!(table.columns()[2].content, unreadable("3 rows, the first array has 2"));
    assert_eq!(table.columns()[3].content, unreadable("numbers of type F8_E4M3"));
    assert!(table.values(2).is_err());
    // Other files have no arrays.
    let other = Source::from_bytes("a.bin", tensors());
    assert!(ArrayTable::open(&Stores::new(), &other).unwrap().is_none());
}

#[test]
fn defects_are_named() {
    let message = |name: &str, bytes: Vec<u8>| open(name, bytes).unwrap_err().to_string();
    assert_eq!(
        message("a.npy", npy_file("<i2", "True", "(1, 2)", &[0; 4])),
        "a.npy: the array is in Fortran order, expected C order: save numpy.ascontiguousarray(array)"
    );
    assert_eq!(
        message("a.npy", npy_file("<i2", "False", "(3,)", &[0; 4])),
        "a.npy: the array ends at byte 134, the file has 132 bytes"
    );
    assert_eq!(
        message("a.npy", npy_file("<i2", "False", "()", &[0; 2])),
        "a.npy: an array without dimensions has no rows"
    );
    let header = r#"{"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 2]}}"#;
    assert_eq!(
        message("a.safetensors", safetensors_file(header, &[0; 3])),
        "a.safetensors: the array has 2 bytes, expected 3 by its shape"
    );
    let header = r#"{"a": {"dtype": "U8", "shape": [3]}}"#;
    assert_eq!(
        message("a.safetensors", safetensors_file(header, &[0; 3])),
        "a.safetensors: the header of the safetensors file: tensor `a`: expected dtype, shape and \
         data_offsets"
    );
    let long = u64::MAX.to_le_bytes().to_vec();
    assert_eq!(
        message("a.safetensors", long),
        "a.safetensors: the header of the safetensors file: it has 18446744073709551615 bytes, \
         expected at most 100000000"
    );
}

#[test]
fn every_truncation_is_an_error_and_no_flip_panics() {
    let npy = npy_file("<i2", "False", "(3, 2)", &[7; 12]);
    for (name, bytes) in [("a.npy", npy), ("a.safetensors", tensors())] {
        // The first bytes of a `.npy` file are those of no file.
        let first = if name == "a.npy" { NpyArray::MAGIC.len() } else { 0 };
        for end in first..bytes.len() {
            let error = open(name, bytes[..end].to_vec()).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let source = Source::from_bytes(name, damaged);
                let Ok(Some(table)) = ArrayTable::open(&Stores::new(), &source) else { continue };
                for (column, place) in table.places.iter().enumerate() {
                    let row_bytes = place.as_ref().map(|place| place.numbers.row_bytes);
                    let Some(row_bytes) = row_bytes.filter(|&bytes| bytes < 100) else { continue };
                    let mut out = vec![0; usize::try_from(row_bytes).unwrap()];
                    let ColumnValues::Whole(values) = table.values(column).unwrap() else {
                        panic!()
                    };
                    for row in 0..table.row_count().min(4) {
                        values.write(row, &mut out).unwrap();
                    }
                }
            }
        }
    }
}
