//! Parquet files that only a program with its own writer makes.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray};
use idv_format::{Codec, IdvFile, Item, Key, Number, Values};
use tempfile::TempDir;
use turboloader::{TableConversion, TableConversionError, TableSummary};

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn convert(from: &Path, to: &Path) -> Result<TableSummary, TableConversionError> {
    TableConversion::default().run(from, to, &mut |_| ControlFlow::Continue(()))
}

/// A Parquet file of one batch.
fn parquet_file(columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn categories() -> ArrayRef {
    let texts = [Some("y"), None, Some("x"), Some("y"), None, Some("\u{1f600}")];
    Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>())
}

/// The reader has no dictionary then, and makes one.
#[test]
fn nulls_of_pages_without_a_dictionary_are_no_category() {
    let folder = tempfile::tempdir().unwrap();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let bytes = parquet_file(vec![("c", categories())], plain);
    let source = write(&folder, "in.parquet", &bytes);
    let output = folder.path().join("out.idv");
    convert(&source, &output).unwrap();
    let table = IdvFile::open(File::open(output).unwrap()).unwrap();
    let column = table.column(table.find("c").unwrap()).unwrap();
    let key = Item::Key(Key { number: Number::UInt32, count: 3, min: 0 });
    assert_eq!(*column.codec(), Codec::Item(key));
    let Values::UInt32(keys) = column.read(0..6).unwrap() else { panic!() };
    assert_eq!(*keys, [1, 0, 2, 1, 0, 3]);
    let metadata = table.metadata(0).unwrap();
    let Values::Vector(names) = table.metadata_value(&metadata[0]).unwrap() else { panic!() };
    let Values::Text(names) = &names.items() else { panic!() };
    assert!(names.iter().eq([Some("y"), Some("x"), Some("\u{1f600}")]));
}

/// A footer whose metadata has a list of 2^31 - 1 booleans in a field of a later version.
#[test]
fn metadata_of_a_file_is_checked_before_the_decoder_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = parquet_file(vec![("c", categories())], WriterProperties::default());
    let (rest, footer) = bytes.split_at(bytes.len() - 8);
    let length = u32::from_le_bytes(footer[..4].try_into().unwrap());
    let (data, metadata) = rest.split_at(rest.len() - length as usize);
    // Field 100, a list of booleans, in front of the end of the structure.
    let field: [u8; 10] = [0x09, 0xc8, 0x01, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
    let length = (length + 9).to_le_bytes();
    let end = metadata.len() - 1;
    let bytes = [data, &metadata[..end], &field, &length, b"PAR1"].concat();
    let source = write(&folder, "in.parquet", &bytes);
    let error = convert(&source, &folder.path().join("out.idv")).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("metadata of the file: damaged header: 2147483647 bool"), "{message}");
    assert!(error.is_damage());
}

/// Some damaged files make the decoder panic.
#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = Float64Array::from_iter((0..6).map(|row| (row != 2).then_some(row.into())));
    let text = StringArray::from_iter((0..6).map(|row| (row != 3).then(|| row.to_string())));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("c", categories()), ("x", Arc::new(numbers)), ("t", Arc::new(text))];
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(zstd).build();
    let bytes = parquet_file(columns, properties);
    let mut conversion = TableConversion::default();
    (conversion.overwrite, conversion.sync) = (true, false);
    let output = folder.path().join("out.idv");
    let (mut panics, mut errors) = (0, 0);
    for position in 4..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        let source = write(&folder, "in.parquet", &damaged);
        let Err(error) = conversion.run(&source, &output, &mut |_| ControlFlow::Continue(()))
        else {
            continue;
        };
        let message = error.to_string();
        assert!(message.contains("in.parquet: ") && message.len() < 400, "{message}");
        errors += 1;
        panics += usize::from(message.contains("the Parquet decoder panicked"));
    }
    assert!(errors > bytes.len() / 4 && panics > 0, "{errors} errors, {panics} panics");
}
