//! Arrow files of samples, for tests that compare containers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, LargeBinaryArray, RecordBatch, StringArray, StructArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::Field;

use crate::parquet_files::{Form, Row};

/// Rows of a record batch.
const BATCH_ROWS: usize = 5;

/// The sample after each record batch of a file with this many rows.
pub(crate) fn batch_ends(rows: usize) -> Vec<u64> {
    (0..rows).step_by(BATCH_ROWS).map(|start| rows.min(start + BATCH_ROWS) as u64).collect()
}

/// Writes a file whose images are in it as they are, or a stream of compressed views.
pub(crate) fn write_arrow(path: &Path, form: Form, rows: &[Row]) {
    let batches: Vec<RecordBatch> = rows.chunks(BATCH_ROWS).map(|rows| batch(form, rows)).collect();
    let schema = batches[0].schema();
    let file = File::create(path).unwrap();
    match form {
        Form::Plain => {
            let mut writer = FileWriter::try_new(file, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Form::Packed | Form::Snappy | Form::Gzip => {
            let options = IpcWriteOptions::default();
            let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
            let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
}

fn batch(form: Form, rows: &[Row]) -> RecordBatch {
    let images = rows.iter().map(|row| &*row.image);
    let images: ArrayRef = match form {
        Form::Plain => Arc::new(LargeBinaryArray::from_iter_values(images)),
        Form::Packed | Form::Snappy | Form::Gzip => {
            Arc::new(BinaryViewArray::from_iter_values(images))
        }
    };
    let names = StringArray::from_iter_values(rows.iter().map(|row| &row.name));
    let names: ArrayRef = Arc::new(names);
    let field =
        |name, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let image =
        StructArray::from(vec![(field("bytes", &images), images), (field("path", &names), names)]);
    let label = StringArray::from_iter_values(rows.iter().map(|row| &row.label));
    let text = StringArray::from_iter_values(rows.iter().map(|row| &row.text));
    let columns: [(&str, ArrayRef); 3] =
        [("image", Arc::new(image)), ("label", Arc::new(label)), ("txt", Arc::new(text))];
    RecordBatch::try_from_iter(columns).unwrap()
}
