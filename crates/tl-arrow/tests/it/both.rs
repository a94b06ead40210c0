//! The same tables as Parquet and as Arrow files: columns and tokens are equal.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::wildcard_enum_match_arm,
    reason = "any numbers will do"
)]

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Float32Builder, Int32Builder, Int64Builder, LargeListBuilder, ListBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTime, IntervalDayTimeType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray,
    FixedSizeBinaryArray, Int32Array, LargeBinaryArray, LargeStringArray, ListArray, NullArray,
    PrimitiveArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::Field;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;
use tbl_io::Source;
use tl_arrow::{ColumnContent, RowColumns, RowOptions, open_tokens};
use tl_tokens::TokenOptions;

/// Random numbers from a seed, with nulls among them.
struct Random {
    state: u64,
    has_nulls: bool,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let mixed = self.state ^ self.state >> 29;
        mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed >> 32
    }

    fn is_null(&mut self) -> bool {
        self.next().is_multiple_of(4) && self.has_nulls
    }

    fn option<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.is_null()).then(|| make(self))
    }

    fn options<T>(&mut self, rows: usize, make: impl Fn(&mut Self) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| self.option(&make)).collect()
    }

    fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        rows: usize,
        make: impl Fn(u64) -> T::Native,
    ) -> PrimitiveArray<T> {
        self.options(rows, |random| make(random.next())).into_iter().collect()
    }

    fn texts(&mut self, rows: usize) -> Vec<Option<String>> {
        self.options(rows, |random| {
            let len = random.next() % 20;
            (0..len).map(|_| char::from(b'a' + (random.next() % 26) as u8)).collect()
        })
    }
}

fn lists_of_three(random: &mut Random, rows: usize) -> ArrayRef {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), 3);
    for _ in 0..rows {
        (0..3).for_each(|_| builder.values().append_value(random.next() as i16 as f32 / 7.0));
        builder.append(!random.is_null());
    }
    Arc::new(builder.finish())
}

/// Lists of two lists of two numbers, which may be null; of the lists only the outer ones.
fn nested_lists(random: &mut Random, rows: usize) -> ArrayRef {
    let inner = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut builder = FixedSizeListBuilder::new(inner, 2);
    for _ in 0..rows {
        for _ in 0..2 {
            let numbers = random.options(2, |random| random.next() as i32);
            numbers.into_iter().for_each(|n| builder.values().values().append_option(n));
            builder.values().append(true);
        }
        builder.append(!random.is_null());
    }
    Arc::new(builder.finish())
}

/// Lists of any length, whose numbers are there.
fn lists(random: &mut Random, rows: usize) -> ArrayRef {
    let mut builder = LargeListBuilder::new(Int64Builder::new());
    for _ in 0..rows {
        let count = random.next() % 5;
        (0..count).for_each(|_| builder.values().append_value(random.next() as i64));
        builder.append(!random.is_null());
    }
    Arc::new(builder.finish())
}

fn token_lists(random: &mut Random, rows: usize) -> ArrayRef {
    let mut builder = ListBuilder::new(Int32Builder::new());
    for _ in 0..rows {
        let is_there = !random.is_null();
        // A null without elements, as writers of Parquet files need it.
        let count = if is_there { random.next() % 9 } else { 0 };
        (0..count).for_each(|_| builder.values().append_value((random.next() % 50_000) as i32));
        builder.append(is_there);
    }
    Arc::new(builder.finish())
}

fn structures(random: &mut Random, rows: usize) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(random.numbers::<Int16Type>(rows, |n| n as i16));
    let texts: ArrayRef = Arc::new(StringArray::from(random.texts(rows)));
    let field = |name, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let fields = vec![field("number", &numbers), field("text", &texts)].into();
    let is_there: Vec<bool> = (0..rows).map(|_| !random.is_null()).collect();
    Arc::new(StructArray::new(fields, vec![numbers, texts], Some(is_there.into())))
}

/// Columns of all types that both formats have.
fn table(random: &mut Random, rows: usize) -> RecordBatch {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let random = &mut *random;
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("boolean", Arc::new(BooleanArray::from(random.options(rows, |r| r.next() % 2 == 0)))),
        ("i8", Arc::new(random.numbers::<Int8Type>(rows, |n| n as i8))),
        ("u8", Arc::new(random.numbers::<UInt8Type>(rows, |n| n as u8))),
        ("i16", Arc::new(random.numbers::<Int16Type>(rows, |n| n as i16))),
        ("u16", Arc::new(random.numbers::<UInt16Type>(rows, |n| n as u16))),
        ("i32", Arc::new(random.numbers::<Int32Type>(rows, |n| n as i32))),
        ("u32", Arc::new(random.numbers::<UInt32Type>(rows, |n| n as u32))),
        ("i64", Arc::new(random.numbers::<Int64Type>(rows, |n| n as i64))),
        ("u64", Arc::new(random.numbers::<UInt64Type>(rows, |n| n))),
        ("f16", Arc::new(random.numbers::<Float16Type>(rows, |n| Half::from_bits(n as u16)))),
        ("f32", Arc::new(random.numbers::<Float32Type>(rows, |n| n as i32 as f32 / 3.0))),
        ("f64", Arc::new(random.numbers::<Float64Type>(rows, |n| n as i64 as f64 / 3.0))),
        ("date", Arc::new(random.numbers::<Date32Type>(rows, |n| n as i32))),
        ("time", Arc::new(random.numbers::<Time64MicrosecondType>(rows, |n| (n >> 24) as i64))),
        ("moment", Arc::new(random.numbers::<TimestampMicrosecondType>(rows, |n| n as i64))),
        ("duration", Arc::new(random.numbers::<DurationSecondType>(rows, |n| n as i64))),
    ];
    let text = StringArray::from(random.texts(rows));
    let large = LargeStringArray::from(random.texts(rows));
    let views: StringViewArray = random.texts(rows).into_iter().collect();
    let bytes = random.texts(rows);
    let binary: BinaryArray =
        bytes.iter().map(|text| text.as_ref().map(String::as_bytes)).collect();
    let wide: LargeBinaryArray = bytes.iter().map(|b| b.as_ref().map(String::as_bytes)).collect();
    let binary_views: BinaryViewArray =
        bytes.iter().map(|b| b.as_ref().map(String::as_bytes)).collect();
    let fixed = random.options(rows, |random| random.next().to_le_bytes()[..5].to_vec());
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 5).unwrap();
    let classes =
        random.options(rows, |random| ["one", "two", "three"][random.next() as usize % 3]);
    let classes: DictionaryArray<Int8Type> = classes.into_iter().collect();
    let decimal = |array: PrimitiveArray<Decimal128Type>, precision, scale| {
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    let small = random.numbers::<Decimal32Type>(rows, |n| (n as i32) / 100);
    let middle = random.numbers::<Decimal64Type>(rows, |n| (n as i64) / 100);
    columns.extend([
        ("text", Arc::new(text) as ArrayRef),
        ("large", Arc::new(large)),
        ("views", Arc::new(views)),
        ("binary", Arc::new(binary)),
        ("wide", Arc::new(wide)),
        ("binary_views", Arc::new(binary_views)),
        ("fixed", Arc::new(fixed)),
        ("classes", Arc::new(classes)),
        ("small", Arc::new(small.with_precision_and_scale(9, 2).unwrap())),
        ("middle", Arc::new(middle.with_precision_and_scale(18, 4).unwrap())),
        ("decimal", decimal(random.numbers(rows, |n| (n as i64).into()), 30, 3)),
        ("nulls", Arc::new(NullArray::new(rows))),
        ("three", lists_of_three(random, rows)),
        ("nested", nested_lists(random, rows)),
        ("lists", lists(random, rows)),
        ("input_ids", token_lists(random, rows)),
        ("structures", structures(random, rows)),
    ]);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .unwrap()
}

#[derive(Clone, Debug)]
struct Settings {
    is_stream: bool,
    codec: Option<CompressionType>,
    batch_rows: usize,
    deltas: bool,
    group_rows: usize,
    page_rows: usize,
    is_packed: bool,
    has_page_index: bool,
}

fn settings() -> impl Strategy<Value = Settings> {
    let codec = prop_oneof![
        2 => Just(None),
        1 => Just(Some(CompressionType::LZ4_FRAME)),
        1 => Just(Some(CompressionType::ZSTD)),
    ];
    let rows = (1_usize..90, 1_usize..90, 1_usize..40);
    (any::<bool>(), codec, rows, any::<[bool; 3]>()).prop_map(
        |(is_stream, codec, (batch_rows, group_rows, page_rows), flags)| Settings {
            is_stream,
            codec,
            batch_rows,
            deltas: flags[0],
            group_rows,
            page_rows,
            is_packed: flags[1],
            has_page_index: flags[2],
        },
    )
}

fn as_arrow(table: &RecordBatch, settings: &Settings) -> Vec<u8> {
    let handling = match settings.deltas {
        true => DictionaryHandling::Delta,
        false => DictionaryHandling::Resend,
    };
    let options = IpcWriteOptions::default().try_with_compression(settings.codec).unwrap();
    let options = options.with_dictionary_handling(handling);
    let starts = (0..table.num_rows()).step_by(settings.batch_rows);
    let rows = |start| settings.batch_rows.min(table.num_rows() - start);
    let batches: Vec<_> = starts.map(|start| table.slice(start, rows(start))).collect();
    let mut bytes = Vec::new();
    let schema = table.schema();
    if settings.is_stream {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    bytes
}

fn as_parquet(table: &RecordBatch, settings: &Settings) -> Vec<u8> {
    let statistics = match settings.has_page_index {
        true => EnabledStatistics::Page,
        false => EnabledStatistics::Chunk,
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(settings.group_rows))
        .set_data_page_row_count_limit(settings.page_rows)
        .set_write_batch_size(settings.page_rows)
        .set_dictionary_enabled(settings.is_packed)
        .set_statistics_enabled(statistics)
        .set_compression(match settings.is_packed {
            true => Compression::SNAPPY,
            false => Compression::UNCOMPRESSED,
        })
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
    bytes
}

/// The bits of a NaN may differ between files.
fn is_same(content: &ColumnContent, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    let is_nan = |bytes: Option<&[u8]>| match (content, bytes) {
        (ColumnContent::Numbers { number, .. }, Some(bytes)) => {
            number.bytes() == 2 && u16::from_ne_bytes(bytes.try_into().unwrap()) & 0x7fff > 0x7c00
        }
        _ => false,
    };
    one == other || is_nan(one) && is_nan(other)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn columns_of_a_table_are_those_of_its_parquet_file(
        seed: u64,
        rows in 1_usize..120,
        has_nulls: bool,
        settings in settings(),
        block in 1_u64..130,
    ) {
        let table = table(&mut Random { state: seed, has_nulls }, rows);
        let open = |bytes, name: &str| RowColumns::open(Source::from_bytes(name, bytes)).unwrap();
        let parquet = open(as_parquet(&table, &settings), "a.parquet");
        let arrow = open(as_arrow(&table, &settings), "a.arrow");
        prop_assert_eq!(arrow.row_count(), parquet.row_count());
        prop_assert_eq!(arrow.columns(), parquet.columns());
        for (number, column) in arrow.columns().iter().enumerate() {
            if let ColumnContent::Unreadable { .. } = column.content {
                continue;
            }
            prop_assert!(arrow.block_rows(number) > 0);
            // Against the order of the file, so that nothing is found because it was read last.
            for start in (0..rows).step_by(block as usize).rev() {
                let start = start as u64;
                let rows = start..(start + block).min(rows as u64);
                let one = arrow.read(number, rows.clone()).unwrap();
                let other = parquet.read(number, rows.clone()).unwrap();
                for row in 0..(rows.end - rows.start) as usize {
                    let found = one.row(row).unwrap();
                    let expected = other.row(row).unwrap();
                    prop_assert!(
                        is_same(&column.content, found, expected),
                        "{} {row}: {found:?}, expected {expected:?}", column.name
                    );
                }
            }
        }
    }

    #[test]
    fn tokens_of_a_table_are_those_of_its_parquet_file(
        seed: u64,
        rows in 1_usize..120,
        has_nulls: bool,
        settings in settings(),
    ) {
        let table = table(&mut Random { state: seed, has_nulls }, rows);
        let open = |bytes, name: &str| {
            let source = Source::from_bytes(name, bytes);
            open_tokens(&source, &TokenOptions::default()).unwrap().unwrap()
        };
        let parquet = open(as_parquet(&table, &settings), "a.parquet");
        let arrow = open(as_arrow(&table, &settings), "a.arrow");
        prop_assert_eq!(arrow.len(), parquet.len());
        prop_assert_eq!(arrow.number(), parquet.number());
        let read = |file: &tl_tokens::TokenFile, first, count| {
            file.read(first, count, &mut Vec::new(), <[u8]>::to_vec).unwrap()
        };
        prop_assert_eq!(read(&arrow, 0, arrow.len()), read(&parquet, 0, parquet.len()));
        for first in (0..arrow.len() as usize).step_by(7).rev() {
            let first = first as u64;
            let count = 11.min(arrow.len() - first);
            prop_assert_eq!(read(&arrow, first, count), read(&parquet, first, count));
        }
    }
}

#[test]
fn types_that_are_not_read_are_named() {
    type Large = <Decimal256Type as ArrowPrimitiveType>::Native;
    let intervals = [Some(IntervalDayTime::new(1, 2))];
    let intervals: PrimitiveArray<IntervalDayTimeType> = intervals.into_iter().collect();
    let decimals: PrimitiveArray<Decimal256Type> =
        [Some(Large::from_i128(7))].into_iter().collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("intervals", Arc::new(intervals)),
        ("decimals", Arc::new(decimals)),
        ("number", Arc::new(Int32Array::from(vec![7]))),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &table.schema()).unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let file = RowColumns::open(Source::from_bytes("a.arrow", bytes)).unwrap();
    let reason = |number: usize| match &file.columns()[number].content {
        ColumnContent::Unreadable { reason } => reason.clone(),
        content => panic!("{content:?}"),
    };
    assert_eq!(reason(0), "intervals, which are not read");
    assert_eq!(reason(1), "decimals of 256 bits, which are not read");
    assert_eq!(file.read(2, 0..1).unwrap().row(0).unwrap(), Some(&7_i32.to_ne_bytes()[..]));
}

/// Of lists that `datasets` says have three numbers, those of other lengths are defects of their rows.
#[test]
fn a_list_of_another_length_leaves_the_other_rows() {
    let rows = [
        Some(vec![Some(1), Some(2), Some(3)]),
        Some(vec![None]),
        Some(vec![]),
        None,
        Some(vec![Some(4), Some(5)]),
        Some(vec![Some(6), None, Some(8)]),
    ];
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
    let features = r#"{"info": {"features": {"v": {"feature":
        {"dtype": "int32", "_type": "Value"}, "length": 3, "_type": "Sequence"}}}}"#;
    let table = RecordBatch::try_from_iter([("v", lists)]).unwrap();
    let options = RowOptions { features: Some(features.to_owned()), ..RowOptions::default() };
    let settings = Settings {
        is_stream: false,
        codec: None,
        batch_rows: 6,
        deltas: false,
        group_rows: 6,
        page_rows: 6,
        is_packed: false,
        has_page_index: true,
    };
    let least = i32::MIN;
    let missing = vec![least; 3];
    for (name, bytes) in
        [("a.parquet", as_parquet(&table, &settings)), ("a.arrow", as_arrow(&table, &settings))]
    {
        let source = Source::from_bytes(name, bytes);
        let file = RowColumns::open_with(source, &options).unwrap();
        let block = file.read(0, 0..6).unwrap();
        let row = |row| match block.row(row) {
            Ok(bytes) => Ok(bytes.unwrap().chunks_exact(4).map(number).collect::<Vec<_>>()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(row(0), Ok(vec![1, 2, 3]), "{name}");
        assert_eq!((row(2), row(3)), (Ok(missing.clone()), Ok(missing.clone())), "{name}");
        assert_eq!(row(5), Ok(vec![6, least, 8]), "{name}");
        for bad in [1, 4] {
            let error = row(bad).unwrap_err();
            assert!(error.starts_with(&format!("{name}: sample {bad}: ")), "{error}");
            assert!(error.contains("list of another length"), "{error}");
        }
    }
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes(bytes.try_into().unwrap())
}
