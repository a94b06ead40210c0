//! Files and streams that the library of the Arrow project writes, with all kinds of settings.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, GenericByteBuilder};
use arrow_array::types::{GenericBinaryType, GenericStringType, Int16Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, OffsetSizeTrait, RecordBatch, StringViewArray,
    StructArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields, Schema};
use proptest::prelude::*;
use tbl_io::{ListOptions, Location, Manifest, SampleSource, SampleSourceExt, Source, Stores};
use tl_arrow::{RowOptions, RowSource};

use crate::rows::{Row, check_samples, rows};

/// The layout of bytes and texts.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Offsets,
    LargeOffsets,
    Views,
}

#[derive(Clone, Debug)]
struct Settings {
    is_stream: bool,
    codec: Option<CompressionType>,
    layout: Layout,
    has_dictionary: bool,
    batch_rows: usize,
    alignment: usize,
    /// Rows in front of the first of each batch, which the writer leaves out.
    skipped: usize,
}

fn settings() -> impl Strategy<Value = Settings> {
    let codec = prop_oneof![
        2 => Just(None),
        1 => Just(Some(CompressionType::LZ4_FRAME)),
        1 => Just(Some(CompressionType::ZSTD)),
    ];
    let layout =
        prop_oneof![Just(Layout::Offsets), Just(Layout::LargeOffsets), Just(Layout::Views)];
    let alignment = prop_oneof![Just(8), Just(64)];
    let shape = (1_usize..70, 0_usize..4);
    (any::<bool>(), codec, layout, any::<bool>(), shape, alignment).prop_map(
        |(is_stream, codec, layout, has_dictionary, (batch_rows, skipped), alignment)| Settings {
            is_stream,
            codec,
            layout,
            has_dictionary,
            batch_rows,
            alignment,
            skipped,
        },
    )
}

fn offsets_binary<O: OffsetSizeTrait>(values: &[Option<Vec<u8>>]) -> ArrayRef {
    let mut builder = GenericByteBuilder::<GenericBinaryType<O>>::new();
    values.iter().for_each(|value| builder.append_option(value.as_deref()));
    Arc::new(builder.finish())
}

fn offsets_text<O: OffsetSizeTrait>(values: &[Option<String>]) -> ArrayRef {
    let mut builder = GenericByteBuilder::<GenericStringType<O>>::new();
    values.iter().for_each(|value| builder.append_option(value.as_deref()));
    Arc::new(builder.finish())
}

fn bytes(layout: Layout, values: &[Option<Vec<u8>>]) -> ArrayRef {
    match layout {
        Layout::Offsets => offsets_binary::<i32>(values),
        Layout::LargeOffsets => offsets_binary::<i64>(values),
        Layout::Views => {
            // Several buffers.
            let mut builder = BinaryViewBuilder::new().with_fixed_block_size(64);
            values.iter().for_each(|value| builder.append_option(value.as_deref()));
            Arc::new(builder.finish())
        }
    }
}

fn texts(layout: Layout, values: &[Option<String>]) -> ArrayRef {
    match layout {
        Layout::Offsets => offsets_text::<i32>(values),
        Layout::LargeOffsets => offsets_text::<i64>(values),
        Layout::Views => Arc::new(StringViewArray::from_iter(values.iter().map(Option::as_deref))),
    }
}

/// A batch of these rows.
fn batch(rows: &[Row], settings: &Settings) -> RecordBatch {
    let of = |value: fn(&Row) -> Option<String>| -> Vec<_> { rows.iter().map(value).collect() };
    let images: Vec<_> = rows.iter().map(|row| row.image.clone().flatten()).collect();
    let images = bytes(settings.layout, &images);
    let paths = texts(settings.layout, &of(|row| row.path.clone()));
    let fields: Fields = vec![
        Field::new("bytes", images.data_type().clone(), true),
        Field::new("path", paths.data_type().clone(), true),
    ]
    .into();
    let is_there: Vec<bool> = rows.iter().map(|row| row.image.is_some()).collect();
    let image = StructArray::new(fields, vec![images, paths], Some(is_there.into()));
    let label = Int64Array::from_iter(rows.iter().map(|row| row.label));
    let captions = of(|row| row.caption.clone());
    let caption: ArrayRef = if settings.has_dictionary {
        let captions = captions.iter().map(Option::as_deref);
        Arc::new(captions.collect::<DictionaryArray<Int16Type>>())
    } else {
        texts(settings.layout, &captions)
    };
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("image", Arc::new(image), true),
        ("label", Arc::new(label), true),
        ("caption", caption, true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn write(rows: &[Row], settings: &Settings) -> Vec<u8> {
    let options =
        IpcWriteOptions::try_new(settings.alignment, false, arrow_ipc::MetadataVersion::V5)
            .unwrap()
            .try_with_compression(settings.codec)
            .unwrap();
    // Dictionaries of a file cannot change.
    let is_whole = settings.has_dictionary && !settings.is_stream;
    let batch_rows = if is_whole { rows.len() } else { settings.batch_rows };
    let extra: Vec<Row> = rows.iter().take(settings.skipped).cloned().collect();
    let batches = rows.chunks(batch_rows).map(|rows| {
        let all = [&*extra, rows].concat();
        batch(&all, settings).slice(extra.len(), rows.len())
    });
    let batches: Vec<RecordBatch> = batches.collect();
    let schema: &Schema = &batches[0].schema();
    assert!(matches!(schema.field(0).data_type(), DataType::Struct(_)));
    let mut bytes = Vec::new();
    if settings.is_stream {
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(&mut bytes, schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    bytes
}

fn check(rows: &[Row], settings: &Settings) {
    let source = Source::from_bytes("a.arrow", write(rows, settings));
    let samples = RowSource::open(&Stores::new(), source).unwrap();
    check_samples(&samples, rows);
    for (index, row) in (0..).zip(rows) {
        let is_lent = samples.view(index).is_ok_and(|view| view.is_some());
        assert!(is_lent || settings.codec.is_some() || !matches!(row.image, Some(Some(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_are_those_that_were_written(rows in rows(), settings in settings()) {
        check(&rows, &settings);
    }
}

#[test]
fn images_without_bytes_are_files_below_the_folders_of_the_options() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.jpg"), b"\xff\xd8\xff of its own").unwrap();
    let absolute = folder.path().join("a.jpg").to_str().unwrap().to_owned();
    let paths = ["a.jpg".to_owned(), absolute, "../a.jpg".to_owned()];
    let row = |image, path| Row { image: Some(image), path, label: None, caption: None };
    let mut rows: Vec<Row> = paths.into_iter().map(|path| row(None, Some(path))).collect();
    rows.push(row(Some(b"\xff\xd8\xff".to_vec()), None));
    let settings = Settings {
        is_stream: true,
        codec: None,
        layout: Layout::Offsets,
        has_dictionary: false,
        batch_rows: 9,
        alignment: 8,
        skipped: 0,
    };
    let bytes = write(&rows, &settings);
    let read = |given: Option<&Path>, root: Option<&Path>| {
        let location = |path: &Path| Location::new(path);
        let options = RowOptions {
            folder: given.map(location),
            root: root.map(location),
            ..RowOptions::default()
        };
        let source = Source::from_bytes("elsewhere/a", bytes.clone());
        let samples = RowSource::open_with(&Stores::new(), source, &options).unwrap();
        [0, 1, 2].map(|index| samples.read_into(index, &mut Vec::new()).is_ok())
    };
    let here = folder.path();
    assert_eq!(read(None, None), [false; 3]);
    assert_eq!(read(Some(here), None), [true, false, false]);
    assert_eq!(read(None, Some(here)), [false, true, false]);
    assert_eq!(read(None, Some(Path::new("/"))), [false, true, false]);
    assert_eq!(read(Some(here), Some(&here.join("a"))), [true, false, false]);
    // The root of the options for manifests is both.
    let manifest = Manifest { root: Some(Location::new(here)), ..Manifest::default() };
    let options = ListOptions { manifest, ..ListOptions::default() };
    let source = Source::from_bytes("elsewhere/a", bytes.clone());
    let samples = RowSource::open(&Stores::new().with_list_options(options), source).unwrap();
    let entry = samples.entry(1).unwrap();
    assert_eq!((entry.key.as_deref(), entry.bytes), (Some(&b"a.jpg"[..]), 14));
}
