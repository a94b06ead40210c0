//! The zero-copy view of raw images.

use tbl_format::SampleFormat;
use tbl_io::{
    Compression, NewSample, RawDefect, ReadError, StreamWriter, TblFile, TblVersion, WriteOptions,
    ZstdLevel,
};

struct Image(u32, u32, SampleFormat);

fn file_of(images: &[Image], options: WriteOptions) -> (tempfile::TempDir, TblFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for (number, &Image(width, height, format)) in images.iter().enumerate() {
        let bytes = vec![number as u8; (width * height * 3) as usize];
        let sample = NewSample { format, width, height, ..NewSample::new(&bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let file = TblFile::open(path).unwrap();
    (folder, file)
}

const RAW: SampleFormat = SampleFormat::RawU8;

#[test]
fn equal_raw_images_are_one_array() {
    for sample_count in [None, Some(3), Some(8)] {
        let options = WriteOptions { sample_count, ..Default::default() };
        let images = [Image(4, 2, RAW), Image(4, 2, RAW), Image(4, 2, RAW)];
        let (_folder, file) = file_of(&images, options);
        let view = file.raw_view().unwrap();
        assert_eq!((view.sample_count(), view.width(), view.height()), (3, 4, 2));
        let expected: Vec<u8> = (0..3).flat_map(|number| [number; 24]).collect();
        assert_eq!(view.with(0, 3, <[u8]>::to_vec).unwrap(), expected);
        assert_eq!(view.with(1, 1, <[u8]>::to_vec).unwrap(), [1; 24]);
        assert!(view.with(3, 0, <[u8]>::is_empty).unwrap());
        let past = view.with(2, 2, |_| ()).unwrap_err();
        assert!(matches!(past, ReadError::SampleOutOfRange { index: 3, sample_count: 3, .. }));
        assert!(view.with(u64::MAX, u64::MAX, |_| ()).is_err());
    }
}

#[test]
fn anything_else_is_refused_with_the_sample_and_the_reason() {
    let check = |images: &[Image], options, index: u64, expected: RawDefect| {
        let (_folder, file) = file_of(images, options);
        match file.raw_view().unwrap_err() {
            ReadError::NotRaw { index: found, source, .. } => {
                assert_eq!((found, source), (index, expected));
            }
            other => panic!("{other}"),
        }
    };
    let plain = WriteOptions::default();
    let v1 = WriteOptions { version: TblVersion::V1, ..plain };
    let lz4 = WriteOptions { compression: Compression::Lz4, ..plain };
    let zstd = WriteOptions { compression: Compression::Zstd(ZstdLevel::DEFAULT), ..plain };
    check(&[], plain, 0, RawDefect::Empty);
    check(&[Image(1, 1, SampleFormat::Bmp)], v1, 0, RawDefect::Version1);
    let encoded = |format, compressed| RawDefect::Encoded { format, compressed };
    let png = SampleFormat::Png;
    check(&[Image(4, 2, RAW), Image(4, 2, png)], plain, 1, encoded(png, false));
    check(&[Image(40, 20, RAW)], lz4, 0, encoded(RAW, true));
    check(&[Image(40, 20, RAW)], zstd, 0, encoded(RAW, true));
    let (width, height, expected_width, expected_height) = (2, 4, 4, 2);
    let other = RawDefect::Dimensions { width, height, expected_width, expected_height };
    check(&[Image(4, 2, RAW), Image(2, 4, RAW)], plain, 1, other);
}
