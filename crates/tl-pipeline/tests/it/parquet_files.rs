//! Parquet files of samples, for tests that compare containers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::memory::sample;

/// A row: all values are bytes, and labels are the names of classes.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) image: Vec<u8>,
    pub(crate) label: String,
    pub(crate) text: String,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Images lie in the file as they are, in small pages.
    Plain,
    /// Pages are compressed, and values are in dictionaries.
    Packed,
    /// Images are literals of compressed pages.
    Snappy,
    /// Pages must be decompressed.
    Gzip,
}

impl Form {
    pub(crate) const ALL: [Self; 4] = [Self::Plain, Self::Packed, Self::Snappy, Self::Gzip];
}

/// The rows of [`write_samples`].
pub(crate) const SAMPLES: u32 = 60;

/// Writes a file of images with labels and captions.
pub(crate) fn write_samples(root: &Path, form: Form) -> PathBuf {
    let path = root.join(format!("{form:?}.parquet"));
    let row = |number| {
        let stored = sample(number, tbl_format::SampleFormat::Bmp);
        let label = stored.label.unwrap().to_string();
        Row { name: stored.key, image: stored.bytes, label, text: format!("caption {number}") }
    };
    let rows: Vec<Row> = (0..SAMPLES).map(row).collect();
    write_parquet(&path, form, &rows);
    path
}

/// The sample after each block of files with these many rows: a page, or a row group if its dictionary
/// has all values.
pub(crate) fn block_ends(form: Form, files: &[usize]) -> Vec<u64> {
    let block = if form == Form::Packed { GROUP_ROWS } else { PAGE_ROWS };
    let mut ends = Vec::new();
    let mut first = 0;
    for &rows in files {
        for group in (0..rows).step_by(GROUP_ROWS) {
            let group_end = rows.min(group + GROUP_ROWS);
            let starts = (group..group_end).step_by(block);
            ends.extend(starts.map(|start| (first + group_end.min(start + block)) as u64));
        }
        first += rows;
    }
    ends
}

/// Rows of a row group.
const GROUP_ROWS: usize = 9;

/// Rows of a page.
const PAGE_ROWS: usize = 4;

pub(crate) fn write_parquet(path: &Path, form: Form, rows: &[Row]) {
    let schema = "message schema {
        optional group image { optional binary bytes; optional binary path (UTF8); }
        optional binary label (UTF8);
        optional binary txt (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(match form {
            Form::Plain => Compression::UNCOMPRESSED,
            Form::Packed | Form::Snappy => Compression::SNAPPY,
            Form::Gzip => Compression::GZIP(Default::default()),
        })
        .set_dictionary_enabled(matches!(form, Form::Packed))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(1)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group().unwrap();
        write_column(&mut group, 2, rows.iter().map(|row| row.image.as_slice()));
        write_column(&mut group, 2, rows.iter().map(|row| row.name.as_bytes()));
        write_column(&mut group, 1, rows.iter().map(|row| row.label.as_bytes()));
        write_column(&mut group, 1, rows.iter().map(|row| row.text.as_bytes()));
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn write_column<'a>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    level: i16,
    values: impl Iterator<Item = &'a [u8]>,
) {
    let values: Vec<ByteArray> = values.map(|value| ByteArray::from(value.to_vec())).collect();
    let levels = vec![level; values.len()];
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
}
