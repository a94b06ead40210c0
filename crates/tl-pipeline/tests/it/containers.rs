//! The same samples in a folder, in archives and in TBL files make the same batches.

use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{
    Compression, NewSample, StreamWriter, TarOptions, TarWriter, TblVersion, WriteOptions,
    ZstdLevel,
};
use tl_pipeline::{Dataset, LoaderConfig, Shuffle, Work};
use tl_transform::Recipe;

use crate::arrow_files::write_arrow;
use crate::content::{Record, record};
use crate::memory::{bmp, config, loader, pixels, train};
use crate::parquet_files::{Form, Row, write_parquet};

const SAMPLES: u32 = 23;

struct Picture {
    name: String,
    width: u32,
    height: u32,
    pixels: Vec<u8>,
    file: Vec<u8>,
}

/// Every sample, in the order of the names' bytes.
fn samples() -> Vec<Picture> {
    (0..SAMPLES)
        .map(|number| {
            let (width, height, pixels) = pixels(number);
            let class = ["ant", "bee", "cat"][number as usize / 8];
            let file = bmp(width, height, &pixels);
            Picture { name: format!("{class}/{number:04}.bmp"), width, height, pixels, file }
        })
        .collect()
}

fn folder(root: &Path) -> PathBuf {
    let root = root.join("folder");
    for Picture { name, file, .. } in samples() {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file).unwrap();
    }
    root
}

fn tar(root: &Path, name: &str, range: std::ops::Range<usize>) -> PathBuf {
    let path = root.join(name);
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for Picture { name, file, .. } in &samples()[range] {
        writer.append(name.as_bytes(), file).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn tbl(root: &Path, name: &str, options: WriteOptions, format: SampleFormat) -> PathBuf {
    let path = root.join(name);
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for Picture { name, width, height, pixels, file } in &samples() {
        let bytes = if format == SampleFormat::RawU8 { pixels } else { file };
        let key = Some(name.as_bytes());
        let (width, height) = (*width, *height);
        let sample = NewSample { format, width, height, key, ..NewSample::new(bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    path
}

const ZSTD: Compression = Compression::Zstd(ZstdLevel::DEFAULT);

fn compressed(compression: Compression) -> WriteOptions {
    WriteOptions { compression, ..WriteOptions::default() }
}

/// A manifest of the samples, which are in a folder.
fn manifest(root: &Path) -> PathBuf {
    let path = root.join("manifest.csv");
    let folder = folder(root);
    let folder = folder.file_name().unwrap().to_str().unwrap();
    let row = |picture: &Picture| {
        let (class, _) = picture.name.split_once('/').unwrap();
        format!("{class},{folder}/{}\r\n", picture.name)
    };
    let rows: String = samples().iter().map(row).collect();
    std::fs::write(&path, format!("label,path\r\n{rows}")).unwrap();
    path
}

/// A folder with a metadata file.
fn metadata(root: &Path) -> PathBuf {
    let root = root.join("metadata");
    std::fs::create_dir_all(&root).unwrap();
    folder(&root);
    let row = |picture: &Picture| {
        let (class, _) = picture.name.split_once('/').unwrap();
        format!("{{\"file_name\": \"folder/{}\", \"label\": \"{class}\"}}\n", picture.name)
    };
    let rows: String = samples().iter().map(row).collect();
    std::fs::write(root.join("metadata.jsonl"), rows).unwrap();
    root
}

fn parquet(root: &Path, name: &str, form: Form, range: std::ops::Range<usize>) -> PathBuf {
    let path = root.join(name);
    write_parquet(&path, form, &rows(range));
    path
}

fn arrow(root: &Path, name: &str, form: Form, range: std::ops::Range<usize>) -> PathBuf {
    let path = root.join(name);
    write_arrow(&path, form, &rows(range));
    path
}

fn rows(range: std::ops::Range<usize>) -> Vec<Row> {
    let row = |picture: &Picture| {
        let (class, _) = picture.name.split_once('/').unwrap();
        let (name, image) = (picture.name.clone(), picture.file.clone());
        Row { name, image, label: class.to_owned(), text: String::new() }
    };
    samples()[range].iter().map(row).collect()
}

/// The samples as a folder, an archive, a TBL file, two that are compressed, a manifest, two Parquet
/// files, and two Arrow files.
pub(crate) fn containers(root: &Path) -> [PathBuf; 10] {
    [
        folder(root),
        tar(root, "whole.tar", 0..23),
        tbl(root, "v2.tbl", WriteOptions::default(), SampleFormat::Bmp),
        tbl(root, "lz4.tbl", compressed(Compression::Lz4), SampleFormat::Bmp),
        tbl(root, "zstd.tbl", compressed(ZSTD), SampleFormat::Bmp),
        manifest(root),
        parquet(root, "plain.parquet", Form::Plain, 0..23),
        parquet(root, "packed.parquet", Form::Packed, 0..23),
        arrow(root, "plain.arrow", Form::Plain, 0..23),
        arrow(root, "packed.arrow", Form::Packed, 0..23),
    ]
}

fn batches(paths: &[PathBuf], work: Work, workers: usize) -> Vec<Record> {
    let config = LoaderConfig { workers, ..config(work) };
    record(&loader(Dataset::open(paths).unwrap(), config), 1)
}

#[test]
fn containers_and_workers_make_no_difference() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let folder = folder(root);
    let expected = batches(std::slice::from_ref(&folder), train(), 1);
    assert!(expected.iter().any(|batch| batch.labels.contains(&2)));

    let files = samples().into_iter().map(|picture| folder.join(picture.name)).collect();
    let sources = [
        files,
        vec![manifest(root)],
        vec![metadata(root)],
        vec![folder],
        vec![tar(root, "whole.tar", 0..23)],
        vec![tar(root, "a.tar", 0..9), tar(root, "b.tar", 9..23)],
        vec![parquet(root, "plain.parquet", Form::Plain, 0..23)],
        vec![parquet(root, "packed.parquet", Form::Packed, 0..23)],
        vec![
            parquet(root, "a.parquet", Form::Plain, 0..9),
            tar(root, "m.tar", 9..12),
            parquet(root, "c.parquet", Form::Packed, 12..23),
        ],
        vec![arrow(root, "plain.arrow", Form::Plain, 0..23)],
        vec![arrow(root, "packed.arrow", Form::Packed, 0..23)],
        vec![
            arrow(root, "a.arrow", Form::Packed, 0..11),
            parquet(root, "b.parquet", Form::Plain, 11..14),
            arrow(root, "c.arrow", Form::Plain, 14..23),
        ],
        vec![tbl(root, "v2.tbl", WriteOptions::default(), SampleFormat::Bmp)],
        vec![tbl(root, "lz4.tbl", compressed(Compression::Lz4), SampleFormat::Bmp)],
        vec![tbl(root, "zstd.tbl", compressed(ZSTD), SampleFormat::Bmp)],
        vec![tbl(root, "raw_zstd.tbl", compressed(ZSTD), SampleFormat::RawU8)],
        vec![tbl(root, "raw.tbl", WriteOptions::default(), SampleFormat::RawU8)],
    ];
    for paths in &sources {
        for workers in [1, 2, 3, 7] {
            assert!(batches(paths, train(), workers) == expected, "{paths:?}, {workers} workers");
        }
    }
}

#[test]
fn a_folder_of_parquet_files_has_their_samples() {
    let root = tempfile::tempdir().unwrap();
    let expected = batches(&[tar(root.path(), "whole.tar", 0..23)], train(), 2);
    let folder = root.path().join("data");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    parquet(&folder, "train-00000-of-00002.parquet", Form::Plain, 0..9);
    parquet(&folder, "train-00001-of-00002.parquet", Form::Packed, 9..23);
    std::fs::write(folder.join("README.md"), "A data set.").unwrap();
    assert!(batches(std::slice::from_ref(&folder), train(), 2) == expected);
    parquet(&folder, "sub/test-00000-of-00001.parquet", Form::Plain, 0..9);
    let error = Dataset::open(std::slice::from_ref(&folder)).unwrap_err().to_string();
    let splits = "has 2 splits: sub/test-*, train-*; pass the parquet files of one";
    assert_eq!(error, format!("{}: {splits}", folder.display()));
    let train = folder.join("train-{00000..00001}-of-00002.parquet");
    assert_eq!(Dataset::open(&[train]).unwrap().len(), 23);
    // With an image it is a folder of images.
    std::fs::write(folder.join("1.jpg"), [0xff, 0xd8, 0xff]).unwrap();
    assert_eq!(Dataset::open(&[folder]).unwrap().len(), 1);
}

#[test]
fn a_folder_of_arrow_files_has_their_samples() {
    let root = tempfile::tempdir().unwrap();
    let expected = batches(&[tar(root.path(), "whole.tar", 0..23)], train(), 2);
    let folder = root.path().join("data");
    std::fs::create_dir_all(&folder).unwrap();
    arrow(&folder, "data-00000-of-00002.arrow", Form::Plain, 0..9);
    arrow(&folder, "data-00001-of-00002.arrow", Form::Packed, 9..23);
    assert!(batches(std::slice::from_ref(&folder), train(), 2) == expected);
    // A cache of `datasets` is a file of other rows, unless the list names it.
    arrow(&folder, "cache-0.arrow", Form::Plain, 0..3);
    let error = Dataset::open(std::slice::from_ref(&folder)).unwrap_err().to_string();
    assert!(
        error.ends_with("has 2 splits: cache-*, data-*; pass the arrow files of one"),
        "{error}"
    );
    let files = "data-00000-of-00002.arrow data-00001-of-00002.arrow";
    let files = files.split(' ').map(|name| format!("{{\"filename\": \"{name}\"}}"));
    let state = format!("{{\"_data_files\": [{}]}}", files.collect::<Vec<_>>().join(", "));
    std::fs::write(folder.join("state.json"), state).unwrap();
    std::fs::write(folder.join("dataset_info.json"), "{}").unwrap();
    assert!(batches(&[folder], train(), 2) == expected);
}

#[test]
fn version_1_keeps_the_pixels_and_has_no_labels() {
    let root = tempfile::tempdir().unwrap();
    let work = || Work::Images(Recipe::decode());
    let expected = batches(&[tar(root.path(), "whole.tar", 0..23)], work(), 2);
    let options = WriteOptions { version: TblVersion::V1, ..WriteOptions::default() };
    let found = batches(&[tbl(root.path(), "v1.tbl", options, SampleFormat::Bmp)], work(), 3);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!((&found.indices, &found.bytes), (&expected.indices, &expected.bytes));
        assert!(found.labels.iter().all(|&label| label == -1));
    }
}

#[test]
fn a_folder_that_loses_a_file_names_it() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder(root.path());
    let dataset = Dataset::open(std::slice::from_ref(&folder)).unwrap();
    std::fs::remove_file(folder.join("bee/0009.bmp")).unwrap();
    let loader = loader(dataset, LoaderConfig { sampler: Shuffle::None.into(), ..config(train()) });
    let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("sample 9 (bee/0009.bmp)"), "{error}");
}

#[test]
fn given_labels_are_those_of_the_batches() {
    let root = tempfile::tempdir().unwrap();
    let path = tar(root.path(), "whole.tar", 0..23);
    let open = || Dataset::open(std::slice::from_ref(&path)).unwrap();
    let labels = tbl_io::GivenLabels::in_order((100..123).collect());
    let dataset = open().with_labels(&labels).unwrap();
    assert_eq!((dataset.label(7), dataset.class_names().len()), (Some(107), 0));
    let batches = record(&loader(dataset, config(train())), 1);
    for batch in &batches {
        let expected = batch.indices.iter().map(|index| 100 + i64::try_from(*index).unwrap());
        assert_eq!(batch.labels, expected.collect::<Vec<_>>());
    }
    let few = tbl_io::GivenLabels::in_order(vec![1]);
    assert!(open().with_labels(&few).is_err());
}
