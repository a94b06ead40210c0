//! Arrow arrays against the values that they come from.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, Float32Type, Int16Type, TimestampMicrosecondType,
    TimestampNanosecondType, UInt8Type, UInt32Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use idv_format::{
    ArrowError, ArrowOptions, ArrowReader, Codec, ConvertError, IdvFile, Item, Key, NewColumn,
    NewMetadata, Number, Values, Vector, Vectors, WriteOptions, Writer,
};

use crate::data::{all_samples, own_files};

type File = IdvFile<Vec<u8>>;

fn sample(name: &str) -> File {
    File::open(std::fs::read(own_files().join(name)).unwrap()).unwrap()
}

fn read_column(file: &File, name: &str, options: ArrowOptions) -> Result<ArrayRef, ArrowError> {
    let reader = ArrowReader::new(file, &[file.find(name).unwrap()], options)?;
    let batch = reader.read(0..file.row_count())?;
    assert_eq!(batch.schema(), reader.schema());
    Ok(Arc::clone(batch.column(0)))
}

fn nanoseconds() -> ArrowOptions {
    let mut options = ArrowOptions::default();
    options.time_unit = TimeUnit::Nanosecond;
    options
}

fn batch(file: &File, options: ArrowOptions) -> Result<RecordBatch, ArrowError> {
    let columns: Vec<usize> =
        (0..file.columns().len()).filter(|&index| file.column(index).is_ok()).collect();
    ArrowReader::new(file, &columns, options)?.read(0..file.row_count())
}

/// The values of ML.NET's files convert, except for the times that the test names.
#[test]
fn every_file_becomes_a_batch() {
    let (mut batches, mut refused) = (0, 0);
    for sample in all_samples() {
        let file = File::open(sample.bytes).unwrap();
        match batch(&file, ArrowOptions::default()) {
            Ok(batch) => {
                assert_eq!(batch.num_rows() as u64, file.row_count());
                for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
                    array.to_data().validate_full().unwrap();
                    assert!(field.is_nullable() || array.null_count() == 0, "{field}");
                }
                batches += 1;
            }
            Err(ArrowError::Convert { source: ConvertError::Time { .. }, .. }) => refused += 1,
            Err(error) => panic!("{}: {error}", sample.path.display()),
        }
    }
    // Times of the generator are a tick apart.
    assert!(refused >= 2 && batches >= refused, "{batches} batches, {refused} refused");
}

#[test]
fn numbers_are_the_values() {
    let file = sample("blocks.idv");
    let sparse = read_column(&file, "sparse", ArrowOptions::default()).unwrap();
    let item = Field::new("item", DataType::Float32, false);
    assert_eq!(*sparse.data_type(), DataType::FixedSizeList(Arc::new(item), 4));
    // The generator's row 1 is 1, 2, 3, 4; its row 2 is 1 in slot 2 and nothing else.
    let items = sparse.as_fixed_size_list().values().as_primitive::<Float32Type>().values();
    assert_eq!(items[4..12], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 1.0, 0.0]);
    let text = read_column(&file, "text", ArrowOptions::default()).unwrap();
    let text: Vec<Option<&str>> = text.as_string::<i32>().iter().take(5).collect();
    assert_eq!(text, [Some("ab"), Some(""), Some("éè"), Some("世界"), Some("😀")]);
}

/// The array takes over the memory that was read.
#[test]
fn what_is_missing_is_null() {
    let file = sample("legacy.idv");
    let nulls = |name: &str| -> Vec<usize> {
        let array = read_column(&file, name, nanoseconds()).unwrap();
        (0..array.len()).filter(|&index| array.is_null(index)).take(4).collect()
    };
    assert_eq!(nulls("text"), [3, 17, 24, 31]);
    assert_eq!(nulls("flag"), [2, 5, 8, 11]);
    assert_eq!(nulls("span"), [0, 5, 10, 15]);
    assert_eq!(nulls("key"), [0, 6, 12, 18]);
    assert!(nulls("id").is_empty());
    let flags = read_column(&file, "flags", ArrowOptions::default()).unwrap();
    let flags = flags.as_fixed_size_list().value(0);
    let flags: Vec<Option<bool>> = flags.as_boolean().iter().collect();
    assert_eq!(flags, [Some(false), None, Some(false)]);
}

#[test]
fn keys_are_numbers_of_their_values() {
    let file = sample("types.idv");
    let keys = read_column(&file, "key", ArrowOptions::default()).unwrap();
    let keys = keys.as_dictionary::<UInt32Type>().downcast_dict::<arrow_array::StringArray>();
    let keys: Vec<Option<&str>> = keys.unwrap().into_iter().take(5).collect();
    assert_eq!(keys, [None, Some("red"), Some("green"), Some("blue"), None]);
    // Without values they stay what they are.
    let file = sample("legacy.idv");
    let keys = read_column(&file, "key", ArrowOptions::default()).unwrap();
    let keys: Vec<Option<u32>> = keys.as_primitive::<UInt32Type>().iter().take(4).collect();
    assert_eq!(keys, [None, Some(1), Some(2), Some(3)]);
}

/// Times of which another source says what they are.
#[test]
fn times_are_those_of_the_calendar() {
    // 2013-08-05T00:00:00, 1970-01-01T00:00:00, 0001-01-01T00:00:00.
    let ticks = [635_112_576_000_000_000i64, 621_355_968_000_000_000, 0];
    let seconds = [1_375_660_800i64, 0, -62_135_596_800];
    let offsets = vec![120i16, -90, 0];
    let columns = vec![
        NewColumn::new("time", Codec::Item(Item::DateTime)),
        NewColumn::new("offset", Codec::Item(Item::DateTimeOffset)),
        NewColumn::new("span", Codec::Item(Item::TimeSpan)),
    ];
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(sink, columns, WriteOptions::default()).unwrap();
    let both = Values::OffsetTime { offset_minutes: offsets.into(), ticks: ticks.to_vec().into() };
    let spans = Values::Int64(vec![10, -10, i64::MIN].into());
    writer.write(&[Values::Int64(ticks.to_vec().into()), both, spans]).unwrap();
    let file = File::open(writer.finish().unwrap().0.into_inner()).unwrap();

    let time = read_column(&file, "time", ArrowOptions::default()).unwrap();
    let microseconds = seconds.map(|second| second * 1_000_000);
    assert_eq!(time.as_primitive::<TimestampMicrosecondType>().values()[..], microseconds);
    let offset = read_column(&file, "offset", ArrowOptions::default()).unwrap();
    let offset = offset.as_struct();
    let utc = offset.column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(utc.timezone(), Some("UTC"));
    let ahead = [7_200_000_000, -5_400_000_000, 0];
    let expected: Vec<i64> = microseconds.iter().zip(ahead).map(|(time, by)| time - by).collect();
    assert_eq!(utc.values()[..], expected);
    assert_eq!(offset.column(1).as_primitive::<Int16Type>().values()[..], [120, -90, 0]);
    let span = read_column(&file, "span", ArrowOptions::default()).unwrap();
    let span: Vec<Option<i64>> = span.as_primitive::<DurationMicrosecondType>().iter().collect();
    assert_eq!(span, [Some(1), Some(-1), None]);

    // The year 1 is too far away for nanoseconds.
    let error = read_column(&file, "time", nanoseconds()).unwrap_err();
    let expected = "column \"time\": 0 ticks of 100 ns at 2 cannot be stored in Nanoseconds";
    assert_eq!(error.to_string(), expected);
}

/// A tick is a tenth of a microsecond: it is not rounded, but can be asked for.
#[test]
fn ticks_that_fit_no_microsecond_are_refused() {
    let file = sample("types.idv");
    let error = read_column(&file, "time", ArrowOptions::default()).unwrap_err();
    let expected =
        "column \"time\": 638000000000000001 ticks of 100 ns at 1 cannot be stored in Microseconds";
    assert_eq!(error.to_string(), expected);
    let time = read_column(&file, "time", nanoseconds()).unwrap();
    let time = time.as_primitive::<TimestampNanosecondType>().values();
    assert_eq!((time[1] - time[0], time[11] - time[0]), (100, 1100));
}

#[test]
fn a_key_beyond_its_values_is_refused() {
    let codec = Codec::Item(Item::Key(Key { number: Number::Byte, count: 9, min: 0 }));
    let names = Values::Text([Some("a"), Some("b")].into_iter().collect());
    let metadata = NewMetadata {
        kind: "KeyValues".to_owned(),
        codec: Codec::Vector(Vector { item: Item::Text, dimensions: vec![2] }),
        value: Values::Vector(Vectors::dense(2, 1, names)),
    };
    let column = NewColumn { metadata: vec![metadata], ..NewColumn::new("k", codec) };
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(sink, vec![column], WriteOptions::default()).unwrap();
    writer.write(&[Values::Byte(vec![2, 0, 3].into())]).unwrap();
    let file = File::open(writer.finish().unwrap().0.into_inner()).unwrap();
    let error = read_column(&file, "k", ArrowOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "column \"k\": key 3 at 2 is out of range for 2 values");
    let reader = ArrowReader::new(&file, &[0], ArrowOptions::default()).unwrap();
    let batch = reader.read(0..2).unwrap();
    let keys = batch.column(0).as_dictionary::<UInt8Type>();
    assert_eq!(keys.keys().iter().collect::<Vec<_>>(), [Some(1), None]);
}

/// Twelve bytes can say two billion slots.
#[test]
fn vectors_are_not_filled_up_beyond_the_limit() {
    let codec = Codec::Vector(Vector { item: Item::Boolean, dimensions: vec![0] });
    let mut vectors = Vectors::empty(Values::Boolean(vec![].into()));
    let nothing = Values::Boolean(vec![].into());
    vectors.push(i32::MAX.unsigned_abs(), Some(&[]), &nothing).unwrap();
    let sink = std::io::Cursor::new(Vec::new());
    let columns = vec![NewColumn::new("v", codec)];
    let mut writer = Writer::new(sink, columns, WriteOptions::default()).unwrap();
    writer.write(&[Values::Vector(vectors)]).unwrap();
    let file = File::open(writer.finish().unwrap().0.into_inner()).unwrap();
    let error = read_column(&file, "v", ArrowOptions::default()).unwrap_err();
    let expected = "column \"v\": 2147483647 slots of vectors, expected at most 1000000000";
    assert_eq!(error.to_string(), expected);
}
