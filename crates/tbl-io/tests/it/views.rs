//! Samples lent without copying, and samples whose bytes the caller reads itself, against
//! `read_into`.

use std::fs::File;
use std::path::{Path, PathBuf};

use tbl_io::{
    NewSample, ReadError, SampleSourceExt, StreamWriter, TarOptions, TarWriter, WriteOptions, open,
};

/// Samples of all sizes around a page, the last of zeros.
fn samples() -> Vec<Vec<u8>> {
    let sizes = [0_u32, 1, 100, 4095, 4096, 4097, 20_000];
    let filled = sizes.iter().map(|&len| (0..len).map(|at| (at * 7 + len) as u8).collect());
    filled.chain([vec![0; 5000]]).collect()
}

fn tbl(folder: &Path) -> PathBuf {
    write_tbl(folder.join("samples.tbl"), WriteOptions::default())
}

fn compressed(folder: &Path) -> [PathBuf; 2] {
    let [_, lz4, zstd] = crate::tbl::compressions();
    [("lz4.tbl", lz4), ("zstd.tbl", zstd)].map(|(name, compression)| {
        write_tbl(folder.join(name), WriteOptions { compression, ..WriteOptions::default() })
    })
}

fn write_tbl(path: PathBuf, options: WriteOptions) -> PathBuf {
    let options = WriteOptions { overwrite: true, ..options };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for bytes in samples() {
        writer.write_sample(&NewSample::new(&bytes)).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn tar(folder: &Path) -> PathBuf {
    let path = folder.join("samples.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for (number, bytes) in samples().iter().enumerate() {
        writer.append(format!("{number}.jpg").as_bytes(), bytes).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn files(folder: &Path) -> PathBuf {
    let path = folder.join("files");
    std::fs::create_dir(&path).unwrap();
    for (number, bytes) in samples().iter().enumerate() {
        std::fs::write(path.join(format!("{number}.jpg")), bytes).unwrap();
    }
    path
}

#[test]
fn a_view_has_the_bytes_that_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for path in [tbl(folder.path()), tar(folder.path())] {
        let source = open(&path).unwrap();
        for (index, expected) in samples().iter().enumerate() {
            let view = source.view(index as u64).unwrap();
            assert_eq!(view, Some(expected.as_slice()), "{path:?} {index}");
        }
        assert!(matches!(source.view(8), Err(ReadError::SampleOutOfRange { index: 8, .. })));
    }
    let [lz4, zstd] = compressed(folder.path());
    for path in [lz4, zstd, files(folder.path())] {
        let source = open(&path).unwrap();
        // Few bytes are stored as they are, as LZ4 makes them no smaller.
        assert_eq!(source.view(7).unwrap(), None, "{path:?}");
    }
}

#[test]
fn stored_bytes_unpack_to_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [lz4, zstd] = compressed(folder);
    for path in [tbl(folder), lz4, zstd, tar(folder), files(folder)] {
        let source = open(&path).unwrap();
        let mut bytes = Vec::new();
        for (index, expected) in samples().iter().enumerate() {
            let stored = source.stored(index as u64).unwrap().expect("these containers say");
            stored.read_into(&mut bytes).unwrap();
            source.unpack(index as u64, &mut bytes).unwrap();
            assert_eq!(&bytes, expected, "{path:?} {index}");
        }
    }
}

#[test]
fn unpacking_refuses_what_reading_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let [lz4, zstd] = compressed(folder.path());
    for path in [tbl(folder.path()), lz4, zstd] {
        let source = open(&path).unwrap();
        let stored = source.stored(6).unwrap().expect("a TBL file says");
        let mut bytes = Vec::new();
        stored.read_into(&mut bytes).unwrap();
        let whole = bytes.clone();
        bytes[10] ^= 1;
        let error = source.unpack(6, &mut bytes).unwrap_err();
        assert_eq!(error.sample_index(), Some(6), "{error}");
        for len in [0, 1, whole.len() - 1] {
            let mut short = whole[..len].to_vec();
            let error = source.unpack(6, &mut short).unwrap_err();
            assert_eq!(error.sample_index(), Some(6), "{error}");
        }
        let mut long = [&whole[..], &[0]].concat();
        assert!(source.unpack(6, &mut long).is_err());
    }
}

#[test]
fn a_view_of_a_file_cut_short_stays_readable_and_the_next_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for path in [tbl(folder.path()), tar(folder.path())] {
        let source = open(&path).unwrap();
        let view = source.view(6).unwrap().expect("a view");
        let start = source.facts(6).unwrap().offset;
        // Inside a page, so that no signal tells.
        File::options().write(true).open(&path).unwrap().set_len(start + 19_999).unwrap();
        let refused = |error: ReadError| {
            assert_eq!(error.sample_index(), Some(6), "{error}");
            let text = error.to_string();
            assert!(text.contains("changed") || text.contains("shorter"), "{text}");
        };
        refused(source.view(6).unwrap_err());
        // Whole pages are gone: the bytes are zeros then.
        File::options().write(true).open(&path).unwrap().set_len(start).unwrap();
        assert_eq!(view.len(), 20_000);
        assert_eq!(view[19_999], 0);
        refused(source.view(6).unwrap_err());
    }
}
