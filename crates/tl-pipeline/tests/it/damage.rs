//! A loader over a TBL file with damaged metadata delivers the content of the whole file, or fails.

use std::path::Path;

use tbl_io::{Field, NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{Dataset, Fields, Loader, LoaderConfig, PipelineError, Shuffle, Work};

const SAMPLES: u8 = 6;

/// Writes a file with class names, labels, names and fields.
fn write(path: &Path) {
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).unwrap();
    writer.set_class_names(&["cat".to_owned(), "dog".to_owned()]);
    for number in 0..SAMPLES {
        let key = format!("{number}.bin");
        let field = |extension: &str| Field {
            extension: extension.as_bytes().to_vec(),
            bytes: vec![b'0' + number; 5],
        };
        let fields = [field("txt"), field("other")];
        let (key, label) = (Some(key.as_bytes()), Some(i64::from(number % 2)));
        let bytes = [number; 9];
        let sample = NewSample { key, label, fields: &fields, ..NewSample::new(&bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    bytes: Vec<u8>,
    label: i64,
    key: Option<Vec<u8>>,
    text: Option<Vec<u8>>,
}

type Rows = Vec<Result<Row, PipelineError>>;

/// The class names and all rows of an epoch, up to the first error.
fn received(path: &Path) -> Result<(Vec<String>, Rows), PipelineError> {
    let dataset = Dataset::open(&[path])?;
    let class_names = dataset.class_names().to_vec();
    let config = LoaderConfig {
        batch_size: 1,
        sampler: Shuffle::None.into(),
        fields: Fields { keys: true, bytes: vec!["txt".to_owned()], ..Fields::default() },
        ..LoaderConfig::new(Work::Bytes)
    };
    let loader = Loader::new(dataset, config)?;
    let rows = loader.epoch(0).map(|batch| {
        let batch = batch?;
        Ok(Row {
            bytes: batch.sample(0).unwrap().bytes.to_vec(),
            label: batch.labels()[0],
            key: batch.key(0).map(<[u8]>::to_vec),
            text: batch.bytes(0, 0).map(<[u8]>::to_vec),
        })
    });
    Ok((class_names, rows.collect()))
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_no_row() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    write(&path);
    let whole = std::fs::read(&path).unwrap();
    let (class_names, rows) = received(&path).unwrap();
    let rows: Vec<Row> = rows.into_iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), usize::from(SAMPLES));
    let metadata = u64::from_le_bytes(*whole[24..].first_chunk().unwrap());
    let metadata = usize::try_from(metadata).unwrap();
    let index_end = 64 + 24 * usize::from(SAMPLES);
    let bits = (64 * 8..index_end * 8).chain(metadata * 8..whole.len() * 8);
    let mut refused = 0;
    for bit in bits.step_by(5) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, bytes).unwrap();
        let Ok((found_names, found)) = received(&path) else {
            refused += 1;
            continue;
        };
        // Without the list of labels each sample is an error, and no label has a class.
        if found.iter().any(Result::is_ok) {
            assert_eq!(found_names, class_names, "bit {bit}");
        }
        for (found, expected) in found.iter().zip(&rows) {
            match found {
                Ok(found) => assert_eq!(found, expected, "bit {bit}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 300, "{refused}");
}
