//! TAR archives that are compressed as a whole.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tbl_io::{ReadError, SampleSource, SampleSourceExt, Stores, TarOptions, TarWriter, Unpack};

/// An archive with samples and fields, and its bytes.
fn archive(folder: &Path, count: usize) -> Vec<u8> {
    let path = folder.join("plain.tar");
    let mut writer = TarWriter::create(&path, TarOptions { sync: false, overwrite: true }).unwrap();
    for number in 0..count {
        let name = |extension: &str| format!("{number:03}.{extension}").into_bytes();
        let bytes: Vec<u8> = (0..300).map(|at| (at * number % 251) as u8).collect();
        writer.append(&name("jpg"), &bytes).unwrap();
        writer.append(&name("cls"), (number % 7).to_string().as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The archive in one piece, and in several that are compressed one by one.
fn compressed(plain: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let (front, back) = plain.split_at(plain.len() / 3 + 5);
    let padded = [gzip(plain), vec![0; 3000]].concat();
    [
        ("a.tar.gz", gzip(plain)),
        ("b.tgz", [gzip(front), gzip(b""), gzip(back)].concat()),
        ("c.tar.gz", padded),
        ("d.tar.zst", zstd(plain)),
        ("e.tar.zst", [zstd(front), zstd(b""), zstd(back)].concat()),
    ]
}

fn keep(folder: &Path) -> Stores {
    Stores::new().unpacking(Unpack::Keep(folder.join("kept")))
}

fn discard(folder: &Path) -> Stores {
    Stores::new().unpacking(Unpack::Discard(folder.to_owned()))
}

fn samples(source: &dyn SampleSource) -> Vec<(Vec<u8>, Option<i64>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let sample = |index| {
        source.read_into(index, &mut bytes).unwrap();
        let mut fields = Vec::new();
        source.read_fields(index, &mut fields).unwrap();
        assert_eq!(fields.len(), 1);
        let entry = source.entry(index).unwrap();
        (entry.key.unwrap().into_owned(), entry.label, bytes.clone())
    };
    (0..source.sample_count()).map(sample).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |found: fs::DirEntry| found.file_name().into_string().unwrap();
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|found| name(found.unwrap())).collect();
    names.sort();
    names
}

/// Makes a file as old as its data has to be before its times say which version it is.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2100));
}

#[test]
fn compressed_archives_have_the_samples_of_the_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    let plain = archive(folder.path(), 40);
    let expected = samples(&*tbl_io::open(folder.path().join("plain.tar")).unwrap());
    assert_eq!(expected.len(), 40);
    let archives = compressed(&plain);
    for (name, bytes) in &archives {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    settle();
    for (name, _) in archives {
        let path = folder.path().join(name);
        for stores in [discard(folder.path()), keep(folder.path())] {
            let opened = tbl_io::open_in(&stores, &path).unwrap();
            assert_eq!(opened.location().as_os_str(), path.as_os_str());
            assert_eq!(samples(&*opened), expected, "{name}");
        }
    }
    let kept: Vec<_> = names(&folder.path().join("kept"));
    let stems: Vec<_> = kept.iter().map(|name| name.split('.').next().unwrap()).collect();
    assert_eq!(stems, ["a", "b", "c", "d", "e"], "{kept:?}");
    for name in kept {
        assert_eq!(fs::read(folder.path().join("kept").join(name)).unwrap(), plain);
    }
}

#[test]
fn an_archive_is_unpacked_once_until_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.gz");
    fs::write(&path, gzip(&archive(folder.path(), 3))).unwrap();
    settle();
    let stores = keep(folder.path());
    let kept = folder.path().join("kept");
    let inode = || {
        let names = names(&kept);
        names.iter().map(|name| fs::metadata(kept.join(name)).unwrap().ino()).collect::<Vec<_>>()
    };
    assert_eq!(tbl_io::open_in(&stores, &path).unwrap().sample_count(), 3);
    let first = inode();
    assert_eq!(first.len(), 1);
    // Several at once find one copy or make it once.
    let paths = vec![&path; 5];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(tbl_io::open_all_in(&stores, &paths).unwrap().len(), 5));
        }
    });
    assert_eq!(inode(), first);
    fs::write(&path, gzip(&archive(folder.path(), 4))).unwrap();
    settle();
    assert_eq!(tbl_io::open_in(&stores, &path).unwrap().sample_count(), 4);
    assert_eq!(inode().len(), 2);
}

#[test]
fn the_copy_of_an_archive_that_may_still_change_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.gz");
    fs::write(&path, gzip(&archive(folder.path(), 3))).unwrap();
    let expected = samples(&*tbl_io::open(folder.path().join("plain.tar")).unwrap());
    let stores = keep(folder.path());
    let kept = folder.path().join("kept");
    let opened = tbl_io::open_in(&stores, &path).unwrap();
    assert_eq!((samples(&*opened), names(&kept)), (expected.clone(), Vec::new()));
    settle();
    let opened = tbl_io::open_in(&stores, &path).unwrap();
    assert_eq!((samples(&*opened), names(&kept).len()), (expected, 1));
}

#[test]
fn every_truncation_and_flipped_byte_is_named_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plain = archive(folder.path(), 6);
    let expected = samples(&*tbl_io::open(folder.path().join("plain.tar")).unwrap());
    let stores = discard(folder.path());
    let path = folder.path().join("damaged");
    let open = |bytes: &[u8]| -> Result<Box<dyn SampleSource>, ReadError> {
        fs::write(&path, bytes).unwrap();
        tbl_io::open_in(&stores, &path)
    };
    for (name, whole) in compressed(&plain) {
        // Whole members and frames are an archive, if a shorter one, and padding can be cut.
        let is_piece = |len: usize| name.starts_with(['b', 'e']) && len > whole.len() / 4;
        let end = if name.starts_with('c') { whole.len() - 3000 } else { whole.len() };
        for len in (4..end).step_by(11) {
            let Err(error) = open(&whole[..len]) else {
                assert!(is_piece(len), "{name} cut to {len}");
                continue;
            };
            assert!(error.is_damage(), "{name} cut to {len}: {error}");
            if !is_piece(len) {
                let text = error.to_string();
                assert!(
                    text.contains("at byte ") && text.contains(": the data ends early"),
                    "{text}"
                );
            }
        }
        for position in (0..whole.len()).step_by(3) {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x15;
            match open(&bytes) {
                Ok(found) => assert_eq!(samples(&*found), expected, "{name} byte {position}"),
                Err(error) => assert!(error.is_damage(), "{name} byte {position}: {error}"),
            }
        }
    }
    assert_eq!(names(folder.path()), ["damaged", "plain.tar"]);
}

#[test]
fn errors_name_compressor_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let plain = archive(folder.path(), 6);
    let path = folder.path().join("a.tar.gz");
    let check = |bytes: &[u8], stores: &Stores, expected: &str| {
        fs::write(&path, bytes).unwrap();
        let error = tbl_io::open_in(stores, &path).unwrap_err();
        let expected = expected.replace("FILE", path.to_str().unwrap());
        assert_eq!(error.to_string(), expected);
        assert!(error.is_damage());
    };
    let stores = discard(folder.path());
    let whole = gzip(&plain);
    let end = whole.len();
    let mut wrong = whole.clone();
    wrong[end - 8] ^= 1;
    let text = "FILE: at byte END: gzip: corrupt gzip stream does not have a matching checksum";
    check(&wrong, &stores, &text.replace("END", &end.to_string()));
    let text = "FILE: at byte END: gzip: invalid gzip header";
    let longer = [&whole[..], b"text after it"].concat();
    check(&longer, &stores, &text.replace("END", &(end + 10).to_string()));
    let text = "FILE: at byte END: gzip: bytes after the padding at the end";
    let padded = [&whole[..], &[0; 512], b"text"].concat();
    check(&padded, &stores, &text.replace("END", &(end + 512).to_string()));
    // Four bytes of magic, a frame with a window of 256 MiB, an empty block.
    let window = b"\x28\xb5\x2f\xfd\0\x90\x01\0\0";
    check(window, &stores, "FILE: at byte 0: zstd: Frame requires too much memory for decoding");
    check(
        &gzip(&[b'x'; 600]),
        &stores,
        "FILE: at byte 0: a text file, expected a TAR archive or a TBL file: tables (CSV) become \
         IDV files by `tl convert`",
    );
    check(
        &whole,
        &Stores::new(),
        "FILE: at byte 0: compressed by gzip, expected a plain TAR archive; write one with `tl \
         convert FILE -o PLAIN.tar`, or name a folder for plain copies (--unpack DIR, \
         Store(unpack_to=DIR))",
    );
}
