//! Structures and lists of any nesting are fields of JSON.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use serde_json::{Value, json};
use tbl_io::{SampleSourceExt, Source, Stores};
use tl_arrow::RowSource;

/// A row: null, or objects with a name and numbers, each of which may be null.
type Objects = Option<Vec<Option<(Option<String>, Option<Vec<Option<i32>>>)>>>;

fn objects() -> impl Strategy<Value = Vec<Objects>> {
    let number = prop::option::of(-3..9_i32);
    let numbers = prop::option::of(prop::collection::vec(number, 0..4));
    let object = prop::option::of((prop::option::of("[a-c]{0,2}"), numbers));
    let row = prop::option::of(prop::collection::vec(object, 0..4));
    prop::collection::vec(row, 1..30)
}

/// Values of one leaf with their levels.
#[derive(Default)]
struct Leaf<T> {
    definition: Vec<i16>,
    repetition: Vec<i16>,
    values: Vec<T>,
}

impl<T> Leaf<T> {
    fn push(&mut self, repetition: i16, definition: i16, value: Option<T>) {
        self.repetition.push(repetition);
        self.definition.push(definition);
        self.values.extend(value);
    }
}

/// The leaves of rows, by the rules of Dremel's paper.
fn leaves(rows: &[Objects]) -> (Leaf<ByteArray>, Leaf<i32>) {
    let mut names = Leaf::default();
    let mut numbers = Leaf::default();
    for row in rows {
        let Some(objects) = row.as_ref().filter(|objects| !objects.is_empty()) else {
            let definition = i16::from(row.is_some());
            names.push(0, definition, None);
            numbers.push(0, definition, None);
            continue;
        };
        for (place, object) in objects.iter().enumerate() {
            let repetition = i16::from(place > 0);
            let Some((name, list)) = object else {
                names.push(repetition, 2, None);
                numbers.push(repetition, 2, None);
                continue;
            };
            let text = name.as_ref().map(|name| ByteArray::from(name.as_str()));
            names.push(repetition, 3 + i16::from(name.is_some()), text);
            match list.as_deref() {
                None => numbers.push(repetition, 3, None),
                Some([]) => numbers.push(repetition, 4, None),
                Some(list) => {
                    for (place, number) in list.iter().enumerate() {
                        let repetition = if place > 0 { 2 } else { repetition };
                        numbers.push(repetition, 5 + i16::from(number.is_some()), *number);
                    }
                }
            }
        }
    }
    (names, numbers)
}

fn write(rows: &[Objects], version: WriterVersion, page_rows: usize, has_index: bool) -> Vec<u8> {
    let schema = "message schema {
        required binary image;
        optional group objects (LIST) { repeated group list { optional group element {
            optional binary name (UTF8);
            optional group numbers (LIST) { repeated group list { optional int32 element; } }
        } } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(1)
        .set_offset_index_disabled(!has_index)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for rows in rows.chunks(11) {
        let mut group = writer.next_row_group().unwrap();
        let image = ByteArray::from(b"\xff\xd8\xff".to_vec());
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&vec![image; rows.len()], None, None).unwrap();
        column.close().unwrap();
        let (names, numbers) = leaves(rows);
        let mut column = group.next_column().unwrap().unwrap();
        let levels = (Some(&*names.definition), Some(&*names.repetition));
        column.typed::<ByteArrayType>().write_batch(&names.values, levels.0, levels.1).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels = (Some(&*numbers.definition), Some(&*numbers.repetition));
        column.typed::<Int32Type>().write_batch(&numbers.values, levels.0, levels.1).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lists_of_structures_come_back(
        rows in objects(),
        version in prop_oneof![Just(WriterVersion::PARQUET_1_0), Just(WriterVersion::PARQUET_2_0)],
        page_rows in 1_usize..9,
        has_index: bool,
    ) {
        let bytes = write(&rows, version, page_rows, has_index);
        let source = Source::from_bytes("a.parquet", bytes);
        let samples = RowSource::open(&Stores::new(), source).unwrap();
        for (index, row) in rows.iter().enumerate().rev() {
            let mut fields = Vec::new();
            samples.read_fields(index as u64, &mut fields).unwrap();
            let expected = row.as_ref().map(|objects| {
                let object = |object: &Option<(_, _)>| match object {
                    None => Value::Null,
                    Some((name, numbers)) => json!({"name": name, "numbers": numbers}),
                };
                Value::Array(objects.iter().map(object).collect())
            });
            let parse = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
            let found: Vec<Value> = fields.iter().map(|field| parse(&field.bytes)).collect();
            prop_assert_eq!(found, Vec::from_iter(expected), "row {}", index);
        }
    }
}
