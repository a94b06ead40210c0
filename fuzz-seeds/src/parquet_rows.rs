//! Rows of Parquet and Arrow files: whatever the bytes are, a file opens and its rows are read, or
//! there is an error that names the file.

use tbl_io::{ListOptions, Manifest, SampleSource, SampleSourceExt, Source, Stores};
use tl_arrow::RowSource;

/// Rows that are read of a file, which may state any number.
const MAX_ROWS: u64 = 64;

/// Opens `data` as a Parquet file of samples and reads its first rows in every way there is. All ways
/// must agree.
pub fn parquet_rows(data: &[u8]) {
    rows("fuzz.parquet", &Stores::new(), data);
}

/// Opens `data` as an Arrow file or stream, and reads its first rows as [`parquet_rows`] does.
pub fn arrow_ipc(data: &[u8]) {
    let name = "fuzz.arrow";
    rows(name, &Stores::new(), data);
    // Files with two columns of images, and with labels of other types.
    for (image, label) in [("mask", "int8"), ("photo", "bool"), ("image", "caption")] {
        let manifest = Manifest {
            image: Some(image.to_owned()),
            label: Some(label.to_owned()),
            ..Manifest::default()
        };
        let options = ListOptions { manifest, ..ListOptions::default() };
        rows(name, &Stores::new().with_list_options(options), data);
    }
}

fn rows(name: &str, stores: &Stores, data: &[u8]) {
    let source = Source::from_bytes(name, data.to_vec());
    let samples = match RowSource::open(stores, source) {
        Ok(samples) => samples,
        Err(error) => {
            assert!(error.to_string().starts_with(&format!("{name}: ")), "{error}");
            return;
        }
    };
    let labels = samples.stored_labels().expect("labels are read when the file is opened");
    let labels = labels.expect("a file of rows has all labels in one place");
    assert!(labels.is_empty() || labels.len() as u64 == samples.sample_count());
    for index in 0..samples.sample_count().min(MAX_ROWS) {
        read_row(&samples, index, data);
    }
}

fn read_row(samples: &RowSource, index: u64, file: &[u8]) {
    samples.will_need(index);
    let mut bytes = Vec::new();
    let read = samples.read_into(index, &mut bytes);
    let stored = samples.stored(index);
    if let Err(error) = &read {
        assert_eq!(error.sample_index(), Some(index), "{error}");
    }
    if read.is_ok() {
        let facts = samples.facts(index).expect("the row was read");
        assert_eq!(facts.bytes, bytes.len() as u64);
        let view = samples.view(index).expect("the row was read");
        assert!(view.is_none_or(|view| view == bytes));
        if let Ok(Some(stored)) = &stored {
            let start = usize::try_from(stored.offset).expect("it is in memory");
            assert_eq!(file.get(start..).and_then(|file| file.get(..bytes.len())), Some(&*bytes));
        }
    }
    let mut fields = Vec::new();
    if let Err(error) = samples.read_fields(index, &mut fields) {
        assert_eq!(error.sample_index(), Some(index), "{error}");
    }
    if let Ok(entry) = samples.entry(index) {
        assert!(entry.key.is_some_and(|key| !key.is_empty()));
    }
}
