//! Lists of integers as tokens, against the values that `parquet` wrote.

use std::num::NonZeroU32;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use tbl_io::{ReadError, SampleSource, Source, TokensDefect};
use tl_arrow::open_tokens;
use tl_tokens::{
    DocumentRows, Fill, Long, Sequences, TokenFile, TokenOptions, TokenSource, TokenType, Windows,
};

/// A row: null, or numbers, each of which may be null.
type Row = Option<Vec<Option<i64>>>;

/// A file with a column `ids` of lists of `kind`, in row groups of seven rows.
fn written<T: DataType>(
    rows: &[Row],
    kind: &str,
    version: WriterVersion,
    convert: impl Fn(i64) -> T::T,
) -> Vec<u8> {
    let schema = format!(
        "message schema {{ optional group ids (LIST) {{ repeated group list {{ optional {kind}; }} }} }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_writer_version(version)
        .set_data_page_row_count_limit(3)
        .set_write_batch_size(1)
        .build();
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).unwrap();
    for group in rows.chunks(7) {
        let [mut definition, mut repetition] = [Vec::new(), Vec::new()];
        let mut values = Vec::new();
        for row in group {
            let Some(numbers) = row.as_ref().filter(|numbers| !numbers.is_empty()) else {
                definition.push(i16::from(row.is_some()));
                repetition.push(0);
                continue;
            };
            for (place, number) in numbers.iter().enumerate() {
                definition.push(if number.is_some() { 3 } else { 2 });
                repetition.push(i16::from(place > 0));
                values.extend(number.map(&convert));
            }
        }
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<T>();
        typed.write_batch(&values, Some(&definition), Some(&repetition)).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

fn open(file: &[u8], options: &TokenOptions) -> Result<TokenFile, ReadError> {
    let source = Source::from_bytes("a.parquet", file.to_vec());
    open_tokens(&source, options).map(|file| file.unwrap())
}

/// The tokens of every sample as 64-bit numbers.
fn samples(file: TokenFile, sequences: Sequences) -> Vec<Vec<i64>> {
    let number = file.number();
    let source = TokenSource::new(file, sequences).unwrap();
    let mut bytes = Vec::new();
    let mut sample = |index| {
        source.read_into(index, &mut bytes).unwrap();
        let mut out = vec![0; bytes.len() / number.bytes() * 8];
        number.convert(&bytes, TokenType::I64, &mut out).unwrap();
        out.as_chunks().0.iter().map(|token| i64::from_ne_bytes(*token)).collect()
    };
    (0..source.sample_count()).map(&mut sample).collect()
}

fn rows_of(length: u32) -> Sequences {
    let length = NonZeroU32::new(length).unwrap();
    let fill = Fill::default();
    Sequences::Documents(DocumentRows { length, targets: false, long: Long::Error, fill })
}

proptest! {
    #[test]
    fn each_row_is_a_document_and_windows_cross_rows(
        rows in prop::collection::vec(
            prop::option::of(prop::collection::vec(0i64..60_000, 0..9)), 1..40,
        ),
        kind in 0usize..3,
        is_new: bool,
    ) {
        let version = if is_new { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        let nullable: Vec<Row> = rows
            .iter()
            .map(|row| Some(row.as_ref()?.iter().copied().map(Some).collect()))
            .collect();
        let (file, number) = match kind {
            0 => {
                let convert = |token| i32::try_from(token).unwrap();
                (written::<Int32Type>(&nullable, "int32 element", version, convert), TokenType::I32)
            }
            1 => {
                let convert = |token| i32::try_from(token).unwrap();
                let kind = "int32 element (INTEGER(16,false))";
                (written::<Int32Type>(&nullable, kind, version, convert), TokenType::U16)
            }
            _ => {
                let convert = |token| token;
                (written::<Int64Type>(&nullable, "int64 element", version, convert), TokenType::I64)
            }
        };
        let options = TokenOptions::default();
        let expected: Vec<Vec<i64>> = rows.into_iter().map(Option::unwrap_or_default).collect();
        let opened = open(&file, &options).unwrap();
        prop_assert_eq!(opened.number(), number);
        let found = samples(opened, rows_of(9));
        prop_assert_eq!(&found, &expected);
        let windows = Windows::new(NonZeroU32::new(5).unwrap());
        let stream = expected.concat();
        let slices = (0..stream.len()).step_by(5).filter_map(|at| Some(stream.get(at..at + 6)?.to_vec()));
        let slices: Vec<Vec<i64>> = slices.collect();
        prop_assert_eq!(samples(open(&file, &options).unwrap(), windows.into()), slices);
    }
}

#[test]
fn nulls_and_other_columns_are_named() {
    let options = TokenOptions::default();
    let plain = [Some(vec![Some(1), Some(2)]), Some(vec![Some(3), None])];
    let version = WriterVersion::PARQUET_1_0;
    let file = written::<Int64Type>(&plain, "int64 element", version, |token| token);
    let error = open(&file, &options).unwrap_err();
    let is_null = |error: &ReadError| {
        matches!(error, ReadError::Tokens { source: TokensDefect::RecordNull { record: 1 }, .. })
    };
    assert!(is_null(&error), "{error}");
    let file = written::<Int64Type>(&plain[..1], "int64 element", version, |token| token);
    let other = TokenOptions { column: Some("text".to_owned()), ..options.clone() };
    let error = open(&file, &other).unwrap_err().to_string();
    assert!(error.ends_with("no column `text` of tokens; the file has ids"), "{error}");
    let named = TokenOptions { column: Some("ids".to_owned()), ..options.clone() };
    assert_eq!(open(&file, &named).unwrap().len(), 2);
    let decimal = "int64 element (DECIMAL(10,2))";
    let file = written::<Int64Type>(&plain[..1], decimal, version, |token| token);
    let error = open(&file, &options).unwrap_err().to_string();
    assert!(error.contains("expected exactly one column of tokens"), "{error}");
    let source = Source::from_bytes("a.bin", vec![1; 100]);
    assert!(open_tokens(&source, &options).unwrap().is_none());
}

#[test]
fn every_truncation_and_changed_byte_is_an_error_or_leaves_tokens() {
    let rows: Vec<Row> = (0..12).map(|row| Some((0..row % 5).map(Some).collect())).collect();
    let convert = |token| i32::try_from(token).unwrap();
    let whole = written::<Int32Type>(&rows, "int32 element", WriterVersion::PARQUET_2_0, convert);
    let read = |bytes: &[u8]| -> Result<(), ReadError> {
        let source = Source::from_bytes("a.parquet", bytes.to_vec());
        let Some(file) = open_tokens(&source, &TokenOptions::default())? else { return Ok(()) };
        let source = TokenSource::new(file, rows_of(1000))?;
        let mut bytes = Vec::new();
        (0..source.sample_count().min(20)).try_for_each(|row| source.read_into(row, &mut bytes))
    };
    read(&whole).unwrap();
    for kept in 4..whole.len() {
        let error = read(&whole[..kept]).unwrap_err();
        assert!(matches!(error, ReadError::Rows { .. }), "{kept}: {error:?}");
    }
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[place] ^= 1 << bit;
            // Damage of values cannot be noticed; nothing else may happen than a typed error.
            if let Err(error) = read(&changed) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
