//! Columns converted from Arrow arrays, against columns made by hand and the original columns.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::types::{Int8Type, Int32Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Date64Array, DictionaryArray,
    DurationMillisecondArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Int16Array,
    Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
    UInt8Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use idv_format::{
    ArrowError, ArrowOptions, ArrowReader, ArrowWriteError, ArrowWriter, Codec, Column, IdvFile,
    Item, Key, Number, RowId, Values, Vector, WriteOptions,
};

use crate::data::{all_samples, hash, read_all};

type File = IdvFile<Vec<u8>>;

/// The batches of one schema as a file.
fn written(batches: &[RecordBatch]) -> Result<File, ArrowWriteError> {
    let sink = Cursor::new(Vec::new());
    let mut writer = ArrowWriter::new(sink, &batches[0].schema(), WriteOptions::default())?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    Ok(File::open(writer.finish()?.0.into_inner()).unwrap())
}

fn batch(array: ArrayRef) -> RecordBatch {
    // Nulls only where the array has them.
    RecordBatch::try_from_iter([("c", array)]).unwrap()
}

/// The column of one array.
fn column(array: impl Array + 'static) -> (Codec, Values<'static>) {
    let file = written(&[batch(Arc::new(array))]).unwrap();
    let column = file.column(0).unwrap();
    (column.codec().clone(), read_all(&column))
}

fn error(array: impl Array + 'static) -> String {
    written(&[batch(Arc::new(array))]).unwrap_err().to_string()
}

#[track_caller]
fn check(array: impl Array + 'static, item: Item, values: &Values<'_>) {
    let (codec, found) = column(array);
    assert_eq!(codec, Codec::Item(item));
    assert_eq!(hash(&found), hash(values), "{found:?}");
}

#[test]
fn nulls_are_the_missing_value_of_their_codec() {
    let numbers = Item::Number(Number::Single);
    let floats = Values::Single(vec![1.5, f32::NAN].into());
    check(Float32Array::from(vec![Some(1.5), None]), numbers, &floats);
    let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
    check(flags, Item::MissingBoolean, &Values::Boolean(vec![1, 2, 0].into()));
    let texts = || Values::Text([Some("a"), None, Some("é"), Some("")].into_iter().collect());
    let expected = [Some("a"), None, Some("é"), Some("")];
    check(StringArray::from(expected.to_vec()), Item::Text, &texts());
    check(LargeStringArray::from(expected.to_vec()), Item::Text, &texts());
    check(StringViewArray::from(expected.to_vec()), Item::Text, &texts());
    let spans = DurationMillisecondArray::from(vec![Some(-3), None]);
    check(spans, Item::TimeSpan, &Values::Int64(vec![-30_000, i64::MIN].into()));
}

#[test]
fn nulls_without_a_missing_value_are_refused_by_row() {
    let ints = |values: Vec<Option<i32>>| batch(Arc::new(Int32Array::from(values)));
    let batches = [ints(vec![Some(1), Some(2)]), ints(vec![Some(3), None])];
    let schema = Schema::new(vec![Field::new("c", DataType::Int32, true)]);
    let with_schema = |batch: &RecordBatch| {
        RecordBatch::try_new(Arc::new(schema.clone()), batch.columns().to_vec()).unwrap()
    };
    let batches: Vec<RecordBatch> = batches.iter().map(with_schema).collect();
    let found = written(&batches).unwrap_err().to_string();
    assert_eq!(found, "column \"c\", row 3: null, and Int32 has no missing values");

    // In vectors the row is that of the vector.
    let items = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None]));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let vectors = FixedSizeListArray::try_new(item, 2, items, None).unwrap();
    let expected = "column \"c\", row 1: null, and Int32 has no missing values";
    assert_eq!(error(vectors), expected);
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1)]);
    lists.append_value([]);
    lists.append_value([Some(2), None]);
    let expected = "column \"c\", row 2: null, and Int32 has no missing values";
    assert_eq!(error(lists.finish()), expected);
    lists.append_value([Some(1)]);
    lists.append_null();
    let expected = "column \"c\", row 1: null, and VBuffer has no missing values";
    assert_eq!(error(lists.finish()), expected);
}

/// 1970 and 2013-08-05, of which another source says the ticks.
#[test]
fn times_of_every_unit_are_ticks() {
    let ticks = || Values::Int64(vec![621_355_968_000_000_000, 635_112_576_000_000_000].into());
    let second = 1_375_660_800;
    check(TimestampSecondArray::from(vec![0, second]), Item::DateTime, &ticks());
    let nanoseconds = TimestampNanosecondArray::from(vec![0, second * 1_000_000_000]);
    check(nanoseconds, Item::DateTime, &ticks());
    check(Date32Array::from(vec![0, 15_922]), Item::DateTime, &ticks());
    check(Date64Array::from(vec![0, second * 1_000]), Item::DateTime, &ticks());

    let both = |offset_minutes: Vec<i16>, hours: i64| {
        let Values::Int64(ticks) = ticks() else { unreachable!() };
        let ticks = ticks.iter().map(|tick| tick + hours * 36_000_000_000).collect();
        Values::OffsetTime { offset_minutes: offset_minutes.into(), ticks }
    };
    let zoned = TimestampSecondArray::from(vec![0, second]).with_timezone("Europe/Berlin");
    check(zoned, Item::DateTimeOffset, &both(vec![0, 0], 0));
    let utc = TimestampMicrosecondArray::from(vec![0, second * 1_000_000]).with_timezone("UTC");
    let fields = Fields::from(vec![
        Field::new("timestamp", utc.data_type().clone(), false),
        Field::new("offset_minutes", DataType::Int16, false),
    ]);
    let offsets: ArrayRef = Arc::new(Int16Array::from(vec![120, 120]));
    let times = StructArray::try_new(fields, vec![Arc::new(utc), offsets], None).unwrap();
    check(times, Item::DateTimeOffset, &both(vec![120, 120], 2));

    let expected = "column \"c\", row 1: 150 Nanoseconds cannot be stored in ticks of 100 ns";
    assert_eq!(error(TimestampNanosecondArray::from(vec![100, 150])), expected);
    let far = error(TimestampSecondArray::from(vec![i64::MAX]));
    assert!(far.ends_with("9223372036854775807 Seconds cannot be stored in ticks of 100 ns"));
}

#[test]
fn row_ids_have_the_lowest_byte_first() {
    let bytes: Vec<u8> = (1..=16).collect();
    let ids = FixedSizeBinaryArray::try_new(16, bytes.into(), None).unwrap();
    let id = RowId { low: 0x0807_0605_0403_0201, high: 0x100f_0e0d_0c0b_0a09 };
    check(ids, Item::RowId, &Values::RowId(vec![id].into()));
}

fn keys(column: &Column<'_, Vec<u8>>) -> (u64, Values<'static>) {
    let Item::Key(Key { count, .. }) = *column.codec().item() else { panic!("no key") };
    (count, read_all(column))
}

/// Batches number their values as they like; the file has one list.
#[test]
fn dictionaries_of_all_batches_become_one_list_of_key_values() {
    let array = |keys: Vec<Option<i8>>, values: Vec<Option<&str>>| {
        let (keys, values) = (arrow_array::Int8Array::from(keys), StringArray::from(values));
        let array = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(values)).unwrap();
        batch(Arc::new(array))
    };
    let first = array(vec![Some(1), None, Some(0)], vec![Some("red"), Some("green")]);
    let schema = Schema::new(vec![Field::new("c", first.column(0).data_type().clone(), true)]);
    let second = array(vec![Some(0), Some(2), Some(1)], vec![Some("blue"), None, Some("red")]);
    let batches = [first, second].map(|batch| {
        RecordBatch::try_new(Arc::new(schema.clone()), batch.columns().to_vec()).unwrap()
    });
    let file = written(&batches).unwrap();
    let (count, found) = keys(&file.column(0).unwrap());
    assert_eq!((count, hash(&found)), (3, hash(&Values::Byte(vec![2, 0, 1, 3, 1, 0].into()))));
    let metadata = file.metadata(0).unwrap();
    assert_eq!(metadata[0].kind, "KeyValues");
    let Values::Vector(values) = file.metadata_value(&metadata[0]).unwrap() else { panic!() };
    let Values::Text(values) = values.items() else { panic!() };
    assert_eq!(values.iter().collect::<Vec<_>>(), [Some("red"), Some("green"), Some("blue")]);
}

#[test]
fn keys_have_numbers_for_all_their_values() {
    let values: Vec<i64> = (0..256).collect();
    let array = |count: usize| {
        let keys = UInt8Array::from(vec![0, 7]);
        let values = Arc::new(Int64Array::from(values[..count].to_vec()));
        DictionaryArray::<UInt8Type>::try_new(keys, values).unwrap()
    };
    let file = written(&[batch(Arc::new(array(255)))]).unwrap();
    let (count, found) = keys(&file.column(0).unwrap());
    assert_eq!((count, hash(&found)), (255, hash(&Values::Byte(vec![1, 8].into()))));
    // The last value of 256 has no number, but nobody has it until somebody does.
    let keys = UInt8Array::from(vec![0, 255]);
    let all = Arc::new(Int64Array::from(values));
    let array = DictionaryArray::<UInt8Type>::try_new(keys, all).unwrap();
    let expected = "column \"c\", row 1: more than 255 different values, the most that Byte can \
                    number";
    assert_eq!(error(array), expected);
}

/// The reader of Parquet files lets an empty text stand for nulls.
#[test]
fn an_empty_text_that_only_nulls_have_is_no_value() {
    let array = |places: Vec<i32>, is_present: Vec<bool>| {
        let keys = Int32Array::new(places.into(), Some(is_present.into()));
        let values = Arc::new(StringArray::from(vec!["y", "", "x"]));
        batch(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap()))
    };
    let check = |batches: &[RecordBatch], count: u64, expected: Vec<u32>| {
        let file = written(batches).unwrap();
        let (found_count, found) = keys(&file.column(0).unwrap());
        assert_eq!((found_count, hash(&found)), (count, hash(&Values::UInt32(expected.into()))));
    };
    let filled = array(vec![0, 1, 2], vec![true, false, true]);
    check(std::slice::from_ref(&filled), 2, vec![1, 0, 2]);
    // It is one where a row has it, and in a dictionary at which nulls do not point.
    check(&[array(vec![0, 1, 1], vec![true, false, true])], 3, vec![1, 0, 2]);
    check(&[array(vec![0, 0, 2], vec![true, false, true])], 3, vec![1, 0, 3]);
    let used = array(vec![1, 1, 2], vec![true, false, true]);
    check(&[filled, used], 3, vec![1, 0, 2, 3, 0, 2]);
}

/// A slice has other arrays around it, which are not its own.
#[test]
fn slices_are_what_they_show() {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for length in 0..6 {
        lists.append_value((0..length).map(Some));
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let item = Arc::new(Field::new("item", DataType::Int32, false));
    let numbers = Arc::new(Int32Array::from_iter_values(0..12));
    let matrix = FixedSizeListArray::try_new(item, 2, numbers, None).unwrap();
    let text = StringArray::from_iter_values(["ä", "bb", "c", "ddd", "", "f"]);
    let text_keys = DictionaryArray::<Int32Type>::from_iter(["x", "y", "x", "z", "y", "x"]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("lists", lists),
        ("matrix", Arc::new(matrix)),
        ("text", Arc::new(text)),
        ("key", Arc::new(text_keys)),
    ];
    let whole = RecordBatch::try_from_iter(columns).unwrap();
    let parts = [whole.slice(0, 2), whole.slice(2, 3), whole.slice(5, 1)];
    let (once, parts) = (written(&[whole]).unwrap(), written(&parts).unwrap());
    for index in 0..4 {
        let [once, parts] = [&once, &parts].map(|file| read_all(&file.column(index).unwrap()));
        assert_eq!(hash(&once), hash(&parts), "column {index}");
    }
    let Values::Vector(lists) = read_all(&once.column(0).unwrap()) else { panic!() };
    let lengths: Vec<u32> = lists.rows().map(|row| row.length()).collect();
    assert_eq!(lengths, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn types_without_a_codec_are_named() {
    let times = arrow_array::Time32SecondArray::from(vec![1]);
    assert_eq!(error(times), "column \"c\": values of type Time32(s) cannot be stored");
    let file = Schema::new(vec![Field::new("c", DataType::Int32, false)]);
    let sink = Cursor::new(Vec::new());
    let mut writer = ArrowWriter::new(sink, &file, WriteOptions::default()).unwrap();
    let other = batch(Arc::new(Int64Array::from(vec![1])));
    let error = writer.write(&other).unwrap_err().to_string();
    assert_eq!(error, "column \"c\" is Int64, the schema has Int32");
    // And the file can be finished.
    assert_eq!(writer.finish().unwrap().1.rows, 0);
}

/// What goes over as arrays and back: all but the smallest value of old keys.
fn without_min(codec: &Codec) -> Codec {
    let mut codec = codec.clone();
    if let Codec::Item(Item::Key(key)) | Codec::Vector(Vector { item: Item::Key(key), .. }) =
        &mut codec
    {
        key.min = 0;
    }
    if let Codec::Vector(vector) = &mut codec
        && vector.dimensions.is_empty()
    {
        vector.dimensions = vec![0];
    }
    codec
}

#[test]
fn every_file_comes_back_from_arrays() {
    let mut columns = 0;
    for sample in all_samples() {
        let file = File::open(sample.bytes).unwrap();
        let name = sample.path.display();
        for index in 0..file.columns().len() {
            let Ok(column) = file.column(index) else { continue };
            let options = |unit| {
                let mut options = ArrowOptions::default();
                options.time_unit = unit;
                options
            };
            let read = |unit| {
                let reader = ArrowReader::new(&file, &[index], options(unit))?;
                let mut batches = Vec::new();
                // So few slots that vectors come in parts.
                reader.read_parts(0..file.row_count(), 7, |batch| {
                    batches.push(batch);
                    Ok::<_, ArrowError>(())
                })?;
                Ok::<_, ArrowError>(batches)
            };
            let batches = read(TimeUnit::Microsecond).or_else(|_| read(TimeUnit::Nanosecond));
            let Ok(batches) = batches else {
                // No unit has both the years and the ticks.
                assert!(matches!(column.codec().item(), Item::DateTime | Item::DateTimeOffset));
                continue;
            };
            let again = written(&batches).unwrap();
            let again = again.column(0).unwrap();
            let (before, after) = (read_all(&column), read_all(&again));
            if missing_offsets(&before) {
                continue;
            }
            assert_eq!(hash(&before), hash(&after), "{name}: {index}");
            assert_eq!(without_min(column.codec()), *again.codec(), "{name}: {index}");
            columns += 1;
        }
    }
    // The crate's own files have as many.
    assert!(columns >= 50, "{columns}");
}

/// A missing point of time comes back with no distance to UTC, whatever it had.
fn missing_offsets(values: &Values<'_>) -> bool {
    let Values::OffsetTime { offset_minutes, ticks } = values else { return false };
    ticks.iter().zip(offset_minutes.iter()).any(|(&tick, &by)| tick == i64::MIN && by != 0)
}
