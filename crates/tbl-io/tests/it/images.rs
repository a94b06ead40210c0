//! MNIST's and CIFAR's files: pixels as PNG files, labels from the files next to them, damage.

use std::fs;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_format::checksum::header_crc32;
use tbl_io::{
    AsStored, ConvertOptions, ImagesDefect, Labels, Note, ReadError, SampleSource, SampleSourceExt,
    Selection, Source, SourceKind, Target, open, open_source,
};

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// The pixels of all images.
fn pixels(count: usize, bytes: usize) -> Vec<u8> {
    (0..count * bytes).map(|at| (at * 31 % 251) as u8).collect()
}

fn idx_images(count: u32, rows: u32, columns: u32) -> Vec<u8> {
    let pixels = pixels(count as usize, (rows * columns) as usize);
    [numbers(&[0x803, count, rows, columns]), pixels].concat()
}

fn idx_labels(count: u32) -> Vec<u8> {
    [numbers(&[0x801, count]), (0..count).map(|number| (number % 10) as u8).collect()].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Width, height, channels and rows of a PNG file, whose checksums are right.
fn parse_png(file: &[u8]) -> (u32, u32, u8, Vec<u8>) {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk().unwrap();
        let (covered, after) = after.split_at(4 + u32::from_be_bytes(*len) as usize);
        let (checksum, after) = after.split_first_chunk().unwrap();
        assert_eq!(u32::from_be_bytes(*checksum), header_crc32(covered));
        chunks.push(covered);
        rest = after;
    }
    let [header, data, end] = chunks[..] else { panic!("{} chunks", chunks.len()) };
    assert_eq!((&header[..4], end), (&b"IHDR"[..], &b"IEND"[..]));
    let side = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    assert_eq!((header[12], &header[14..]), (8, &[0, 0, 0][..]));
    let channels = if header[13] == 2 { 3 } else { 1 };
    let mut rows = Vec::new();
    ZlibDecoder::new(data.strip_prefix(b"IDAT").unwrap()).read_to_end(&mut rows).unwrap();
    let (width, height) = (side(4), side(8));
    let row_bytes = (width * channels) as usize + 1;
    assert_eq!(rows.len(), row_bytes * height as usize);
    let pixels = rows.chunks(row_bytes).flat_map(|row| row.split_first().unwrap().1).copied();
    (width, height, channels as u8, pixels.collect())
}

fn read_all(source: &dyn SampleSource) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut bytes = Vec::new();
    let read = |index| source.read_into(index, &mut bytes).map(|()| bytes.clone());
    (0..source.sample_count()).map(read).collect()
}

#[test]
fn mnist_is_read_with_its_labels_plain_or_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("train-images-idx3-ubyte", &idx_images(25, 28, 20));
    write("train-labels-idx1-ubyte", &idx_labels(25));
    write("t10k-images.idx3-ubyte.gz", &gzip(&idx_images(25, 28, 20)));
    write("t10k-labels.idx1-ubyte.gz", &gzip(&idx_labels(25)));
    write("a-images-idx3-ubyte.gz", &gzip(&idx_images(25, 28, 20)));
    write("a-labels-idx1-ubyte", &idx_labels(25));
    let expected = pixels(25, 560);
    for name in ["train-images-idx3-ubyte", "t10k-images.idx3-ubyte.gz", "a-images-idx3-ubyte.gz"] {
        let sources = [open(folder.path().join(name)).unwrap()];
        let source = &*sources[0];
        assert_eq!((source.kind(), source.sample_count()), (SourceKind::Images, 25));
        assert_eq!(source.notes(), []);
        let labels = Labels::resolve(&sources).unwrap();
        for (index, file) in (0..).zip(read_all(source).unwrap()) {
            let entry = source.entry(index).unwrap();
            assert_eq!((entry.format, entry.width, entry.height), (SampleFormat::Png, 20, 28));
            assert_eq!((entry.bytes, entry.stored_bytes), (file.len() as u64, 560));
            let at = index as usize * 560;
            assert_eq!(parse_png(&file), (20, 28, 1, expected[at..at + 560].to_vec()));
            assert_eq!(labels.label(0, index), Some(index as i64 % 10));
            let mut stored = Vec::new();
            source.stored(index).unwrap().unwrap().read_into(&mut stored).unwrap();
            source.unpack(index, &mut stored).unwrap();
            assert_eq!(stored, file);
        }
        assert!(source.read_into(25, &mut Vec::new()).is_err());
    }
}

#[test]
fn large_images_have_several_blocks() {
    let source = open_source(Source::from_bytes("x", idx_images(2, 300, 500))).unwrap();
    let files = read_all(&*source).unwrap();
    assert_eq!(parse_png(&files[1]), (500, 300, 1, pixels(2, 150_000)[150_000..].to_vec()));
}

fn cifar(count: usize, label_bytes: usize) -> Vec<u8> {
    let pixels = pixels(count, 3072);
    let record = |number: usize| {
        let labels = [vec![3; label_bytes - 1], vec![(number % 10) as u8]].concat();
        [labels, pixels[number * 3072..][..3072].to_vec()].concat()
    };
    (0..count).flat_map(record).collect()
}

fn write_names(folder: &Path, name: &str, count: usize) {
    let names: String = (0..count).map(|number| format!("class {number}\n")).collect();
    fs::write(folder.join(name), names + "\n").unwrap();
}

#[test]
fn cifar_is_read_with_its_class_names() {
    let folder = tempfile::tempdir().unwrap();
    for (names, classes, label_bytes) in
        [("batches.meta.txt", 10, 1), ("fine_label_names.txt", 100, 2)]
    {
        let folder = folder.path().join(names);
        fs::create_dir(&folder).unwrap();
        write_names(&folder, names, classes);
        let path = folder.join("data_batch_1.bin");
        fs::write(&path, cifar(700, label_bytes)).unwrap();
        let sources = [open(&path).unwrap()];
        let labels = Labels::resolve(&sources).unwrap();
        assert_eq!(labels.class_names().len(), classes);
        assert_eq!(labels.class_names()[7], "class 7");
        let files = read_all(&*sources[0]).unwrap();
        assert_eq!(files.len(), 700);
        let all = pixels(700, 3072);
        for number in [0, 1, 699] {
            assert_eq!(labels.label(0, number as u64), Some(number as i64 % 10));
            let planes = &all[number * 3072..][..3072];
            let mixed = (0..1024).flat_map(|at| [0, 1, 2].map(|plane| planes[plane * 1024 + at]));
            assert_eq!(parse_png(&files[number]), (32, 32, 3, mixed.collect()));
        }
        // Without the names its own name and length decide.
        fs::remove_file(folder.join(names)).unwrap();
        assert!(label_bytes == 1 || matches!(open(&path), Err(ReadError::Tar { .. })));
        let own = folder.join(if label_bytes == 1 { "test_batch.bin" } else { "train.bin" });
        fs::rename(&path, &own).unwrap();
        let unnamed = open(&own).unwrap();
        assert_eq!(read_all(&*unnamed).unwrap(), files);
        assert_eq!(unnamed.notes(), [Note::NoClassNames { names: (&folder.join(names)).into() }]);
        assert_eq!(unnamed.entry(7).unwrap().label, Some(7));
        let mut other = fs::read(&own).unwrap();
        other[label_bytes - 1] = 100;
        fs::write(&own, &other).unwrap();
        assert!(matches!(open(&own), Err(ReadError::Tar { .. })));
        fs::write(&own, &other[1..]).unwrap();
        assert!(matches!(open(&own), Err(ReadError::Tar { .. })));
    }
}

#[test]
fn images_become_members_of_an_archive_with_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("x-images-idx3-ubyte"), idx_images(5, 4, 4)).unwrap();
    fs::write(at("x-labels-idx1-ubyte"), idx_labels(5)).unwrap();
    let sources = [open(at("x-images-idx3-ubyte")).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut options = ConvertOptions::new(Target::Tar);
    options.sync = false;
    tbl_io::convert(&selection, &at("x.tar"), &options, AsStored::default, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let archive = open(at("x.tar")).unwrap();
    assert_eq!(read_all(&*archive).unwrap(), read_all(&*sources[0]).unwrap());
    let entry = archive.entry(3).unwrap();
    assert_eq!((entry.key.as_deref(), entry.label), (Some(&b"00000003.png"[..]), Some(3)));
}

fn defect(opened: Result<Box<dyn SampleSource>, ReadError>) -> (u64, ImagesDefect) {
    match opened {
        Err(ReadError::Images { offset, source, .. }) => (offset, source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_files_are_refused_with_offset_and_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let images = idx_images(3, 4, 5);
    let path = at("x-images-idx3-ubyte");
    let opened = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        open(&path)
    };
    let length = |what, need, have| ImagesDefect::Length { what, need, have };
    assert_eq!(defect(opened(&images[..9])), (9, length("header", 16, 9)));
    assert_eq!(defect(opened(&images[..75])), (75, length("images", 76, 75)));
    let longer = [&images[..], b"x"].concat();
    assert_eq!(defect(opened(&longer)), (76, length("images", 76, 77)));
    let sized = |rows, columns| numbers(&[0x803, u32::MAX, rows, columns]);
    let size = ImagesDefect::Size { width: 0, height: 4 };
    assert_eq!(defect(opened(&sized(4, 0))), (8, size));
    assert!(matches!(defect(opened(&sized(65_536, 1))), (8, ImagesDefect::Size { .. })));
    let large = opened(&sized(65_535, 65_535));
    assert!(matches!(large, Err(ReadError::Limit { .. })), "{large:?}");
    let need = 16 + u64::from(u32::MAX) * 9;
    assert_eq!(defect(opened(&sized(3, 3))), (16, length("images", need, 16)));
    assert_eq!(defect(opened(&idx_labels(3))), (0, ImagesDefect::Labels));
    assert_eq!(defect(opened(&gzip(&idx_labels(3)))), (0, ImagesDefect::Labels));

    let labels = at("x-labels-idx1-ubyte");
    let [note] = &opened(&images).unwrap().notes()[..] else { panic!("no note") };
    assert_eq!(*note, Note::NoLabelFile { labels: labels.as_path().into() });
    let with_labels = |bytes: &[u8]| {
        fs::write(&labels, bytes).unwrap();
        defect(open(&path))
    };
    let counts = ImagesDefect::LabelCount { labels: 2, images: 3 };
    assert_eq!(with_labels(&idx_labels(2)), (4, counts));
    assert_eq!(with_labels(&idx_labels(3)[..10]), (10, length("labels", 11, 10)));
    assert_eq!(with_labels(b"no labels"), (0, ImagesDefect::NotLabels));
    fs::write(&labels, gzip(&idx_labels(4))).unwrap();
    assert!(matches!(open(&path), Err(ReadError::Limit { limit: 11, .. })));

    write_names(folder.path(), "batches.meta.txt", 10);
    let bin = at("data_batch_1.bin");
    let with_records = |bytes: &[u8]| {
        fs::write(&bin, bytes).unwrap();
        defect(open(&bin))
    };
    let mut records = cifar(4, 1);
    assert_eq!(with_records(&records[..3074]), (3073, length("records", 6146, 3074)));
    records[3073] = 10;
    let label = ImagesDefect::Label { label: 10, class_count: 10 };
    assert_eq!(with_records(&records), (3073, label));
    write_names(folder.path(), "batches.meta.txt", 9);
    assert_eq!(defect(open(&bin)), (0, ImagesDefect::ClassCount { found: 9, expected: 10 }));
}

#[test]
fn labels_are_charged_before_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    // As sparse files, which take no room on the disk.
    let count = 1_u32 << 28;
    let write = |name: &str, front: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, front).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(front.len() as u64 + u64::from(count)).unwrap();
        path
    };
    let images = write("x-images-idx3-ubyte", &numbers(&[0x803, count, 1, 1]));
    let labels = write("x-labels-idx1-ubyte", &numbers(&[0x801, count]));
    match open(&images) {
        Err(ReadError::Limit { location, limit, need, .. }) => {
            assert_eq!(location.as_os_str(), labels.as_os_str());
            assert_eq!((limit, need), (1 << 30, 9 << 28));
        }
        other => panic!("{:?}", other.map(|source| source.sample_count())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn mutated_files_are_refused_or_have_images(
        is_packed: bool,
        position in any::<prop::sample::Index>(),
        mask in 1..=255_u8,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let whole = idx_images(4, 5, 6);
        let mut bytes = if is_packed { gzip(&whole) } else { whole };
        let len = bytes.len();
        bytes[position.index(len)] ^= mask;
        bytes.truncate(cut.map_or(len, |cut| cut.index(len)));
        match open_source(Source::from_bytes("x", bytes)) {
            Ok(source) => read_all(&*source).unwrap().iter().for_each(|file| drop(parse_png(file))),
            Err(error) => prop_assert!(error.is_damage(), "{}", error),
        }
    }
}
