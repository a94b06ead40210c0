//! Columns of numbers and bytes: what pyarrow finds in files of several writers.
#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "listings have known types, and numbers are rounded as pyarrow does"
)]

use std::path::PathBuf;

use serde_json::Value as Json;
use tbl_io::{ReadError, Source};
use tl_arrow::{ColumnContent, Missing, NumberType, RowBlock, RowColumns};

use crate::support::folder;

struct Case {
    name: String,
    /// The extension of the file.
    format: &'static str,
    /// By column, the value of each row.
    expected: serde_json::Map<String, Json>,
}

impl Case {
    fn all() -> Vec<Self> {
        let of_format = |format| {
            let text = std::fs::read(folder(format).join("tables/expected.json")).unwrap();
            let Json::Object(cases) = serde_json::from_slice(&text).unwrap() else { panic!() };
            let case = |(name, expected): (String, Json)| {
                let Json::Object(expected) = expected else { panic!() };
                Self { name, format, expected }
            };
            cases.into_iter().map(case).collect::<Vec<_>>()
        };
        ["parquet", "arrow"].into_iter().flat_map(of_format).collect()
    }

    fn path(&self) -> PathBuf {
        path(self.format, &self.name)
    }

    fn open_bytes(&self, bytes: Vec<u8>) -> Result<RowColumns, ReadError> {
        RowColumns::open(Source::from_bytes(self.path(), bytes))
    }
}

fn path(format: &str, name: &str) -> PathBuf {
    folder(format).join("tables").join(format!("{name}.{format}"))
}

/// The numbers in `bytes`, as Python writes them; `None` for a missing one.
fn numbers(kind: NumberType, missing: Missing, bytes: &[u8]) -> Vec<Option<f64>> {
    let number = |chunk: &[u8]| {
        macro_rules! number {
            ($number:ty) => {{
                let number = <$number>::from_ne_bytes(chunk.try_into().unwrap());
                let is_missing = missing == Missing::Least && number == <$number>::MIN
                    || missing == Missing::Two && number == 2 as $number;
                (!is_missing).then_some(number as f64)
            }};
        }
        match kind {
            NumberType::Bool | NumberType::U8 => number!(u8),
            NumberType::I8 => number!(i8),
            NumberType::U16 => number!(u16),
            NumberType::I16 => number!(i16),
            NumberType::U32 => number!(u32),
            NumberType::I32 => number!(i32),
            NumberType::U64 => number!(u64),
            NumberType::I64 => number!(i64),
            NumberType::F16 => Some(half(u16::from_ne_bytes(chunk.try_into().unwrap()))),
            NumberType::F32 => Some(f32::from_ne_bytes(chunk.try_into().unwrap()).into()),
            NumberType::F64 => Some(f64::from_ne_bytes(chunk.try_into().unwrap())),
        }
    };
    let found = bytes.chunks_exact(kind.bytes()).map(number);
    found.map(|number| number.filter(|number| !number.is_nan())).collect()
}

/// A normal number of 16 bits that is not negative, or NaN.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    match exponent {
        31 => f64::NAN,
        0 => fraction * 2_f64.powi(-14),
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

/// The numbers of a row as the listing has them, in order.
fn listed(value: &Json, count: usize) -> Vec<Option<f64>> {
    match value {
        Json::Null => vec![None; count],
        Json::Array(items) => {
            items.iter().flat_map(|item| listed(item, count / items.len())).collect()
        }
        number => vec![Some(number.as_str().unwrap().parse().unwrap())],
    }
}

fn check_row(content: &ColumnContent, block: &RowBlock, row: usize, expected: &Json, at: &str) {
    let found = block.row(row).unwrap();
    match content {
        ColumnContent::Numbers { number, shape, missing } => {
            let count = shape.iter().product();
            let found = numbers(*number, *missing, found.unwrap());
            let mut expected = listed(expected, count);
            if *number == NumberType::F32 {
                expected
                    .iter_mut()
                    .flatten()
                    .for_each(|number| *number = f64::from(*number as f32));
            }
            assert_eq!(found, expected, "{at}");
        }
        ColumnContent::Bytes { .. } => {
            let expected = match expected {
                Json::Null => None,
                Json::Array(items) => {
                    let items = items.iter().map(|item| item.as_str().unwrap());
                    Some(format!("[{}]", items.collect::<Vec<_>>().join(",")).into_bytes())
                }
                value => Some(serde_json::from_value(value["bytes"].clone()).unwrap()),
            };
            assert_eq!(found.map(<[u8]>::to_vec), expected, "{at}");
        }
        ColumnContent::Unreadable { reason } => panic!("{at}: {reason}"),
    }
}

#[test]
fn values_are_those_that_pyarrow_finds() {
    for case in Case::all() {
        let file = RowColumns::open(Source::open(case.path()).unwrap()).unwrap();
        assert_eq!(file.columns().len(), case.expected.len(), "{}", case.name);
        for (number, column) in file.columns().iter().enumerate() {
            let expected = case.expected[&column.name].as_array().unwrap();
            assert_eq!(file.row_count(), expected.len() as u64);
            // In one block, in blocks of 7, and row by row from the end.
            let all = file.read(number, 0..60).unwrap();
            for (row, expected) in expected.iter().enumerate() {
                let at = format!("{} {} {row}", case.name, column.name);
                check_row(&column.content, &all, row, expected, &at);
                let start = row as u64 / 7 * 7;
                let block = file.read(number, start..(start + 7).min(60)).unwrap();
                check_row(&column.content, &block, row % 7, expected, &at);
            }
            for (row, expected) in expected.iter().enumerate().rev() {
                let block = file.read(number, row as u64..row as u64 + 1).unwrap();
                let at = format!("{} {} {row}", case.name, column.name);
                check_row(&column.content, &block, 0, expected, &at);
            }
            assert!(file.block_rows(number) > 0);
            // Nulls take no bytes.
            assert!(file.load_bytes(number) > 0 || column.name == "nothing");
        }
    }
}

/// The types of columns, in order.
fn types(format: &str, name: &str) -> String {
    let file = RowColumns::open(Source::open(path(format, name)).unwrap()).unwrap();
    let text = |content: &ColumnContent| match content {
        ColumnContent::Numbers { number, shape, missing } => {
            let missing = match missing {
                Missing::None => "",
                Missing::Least => "?",
                Missing::Two => "2",
            };
            let shape: String = shape.iter().map(|size| format!("x{size}")).collect();
            format!("{number:?}{shape}{missing}")
        }
        ColumnContent::Bytes { what } => (*what).to_owned(),
        ColumnContent::Unreadable { reason } => reason.clone(),
    };
    let columns = file.columns().iter().map(|column| text(&column.content));
    columns.collect::<Vec<_>>().join(", ")
}

#[test]
fn numbers_have_the_types_of_their_columns() {
    let bytes = "text, bytes, lists or structures, as JSON";
    let lists = "F32x3, I64x2?, I32x2x3?";
    let whole = format!(
        "I8, U8, I16, U16, I32?, U32, I64?, U64, F16, F32, F64, Bool, I32?, I64?, F64, F64, \
         {bytes}, {lists}"
    );
    let nulls = format!(
        "I32?, I32?, I32?, I32?, I32?, I64?, I64?, F16, F32, F64, U82, I32?, I64?, F64, F64, \
         {bytes}, {lists}"
    );
    assert_eq!(types("parquet", "pyarrow_default"), whole);
    assert_eq!(types("arrow", "pyarrow_file"), format!("{whole}, text"));
    assert_eq!(types("parquet", "pyarrow_nulls"), nulls);
    assert_eq!(types("arrow", "pyarrow_stream"), format!("{nulls}, text"));
    for format in ["parquet", "arrow"] {
        assert_eq!(types(format, "datasets_lists"), "F32x3, I32x2x3?, I64?");
    }
    assert_eq!(
        types("parquet", "spark_nulls"),
        format!("I32?, I32?, I32?, I64?, F32, F64, U82, I32?, I64?, F64, F64, {bytes}")
    );
    let list = "lists or structures, as JSON";
    assert_eq!(types("arrow", "pyarrow_types"), format!("text, text, {list}, {list}, F64, I32?"));
}

#[test]
fn truncated_files_are_errors_and_flips_are_no_panics() {
    for case in Case::all() {
        let bytes = std::fs::read(case.path()).unwrap();
        for end in (0..bytes.len()).step_by(7) {
            match case.open_bytes(bytes[..end].to_vec()) {
                Err(error) => assert!(error.is_damage(), "{error}"),
                // A stream may end after any message.
                Ok(_) => assert!(case.format == "arrow" && !bytes.starts_with(b"ARROW1")),
            }
        }
        let mut errors = 0;
        for flip in 0..600 {
            let mut damaged = bytes.clone();
            let at = flip * bytes.len() / 600;
            damaged[at] ^= 1 << (flip % 8);
            let Ok(file) = case.open_bytes(damaged) else { continue };
            for column in 0..file.columns().len() {
                if matches!(file.columns()[column].content, ColumnContent::Unreadable { .. }) {
                    continue;
                }
                let rows = file.row_count().min(60);
                if let Err(error) = file.read(column, 0..rows) {
                    assert!(error.to_string().contains(&case.name), "{error}");
                    errors += 1;
                }
            }
        }
        // Arrow has no checksums, and other numbers are numbers too.
        assert!(errors > 20 || case.format == "arrow", "{}: {errors}", case.name);
    }
}
