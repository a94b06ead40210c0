//! Properties that tell the bytes of samples apart, for caches.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tbl_io::{
    Folder, NewSample, ReadOptions, SampleSource, Source, StreamWriter, TarArchive, TarOptions,
    TarWriter, TblFile, Verify, WriteOptions,
};

fn id(source: &dyn SampleSource, index: u64) -> Vec<u8> {
    let mut id = b"before".to_vec();
    assert!(source.content_id(index, &mut id).unwrap());
    id.split_off(6)
}

/// The identity of a file that was just made, once its times are settled.
fn settled_id(source: &dyn SampleSource, index: u64) -> Vec<u8> {
    let mut id = Vec::new();
    while !source.content_id(index, &mut id).unwrap() {
        id.clear();
        std::thread::sleep(Duration::from_millis(20));
    }
    id
}

fn tbl(path: &Path, payloads: &[&[u8]]) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    for payload in payloads {
        writer.write_sample(&NewSample::new(payload)).unwrap();
    }
    writer.finish().unwrap();
}

fn set_time(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn the_same_file_is_the_same_anywhere() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    tbl(&path, &[b"one", b"two"]);
    let folder = root.path().join("mounted elsewhere");
    std::os::unix::fs::symlink(root.path(), &folder).unwrap();
    let (here, there) =
        (TblFile::open(&path).unwrap(), TblFile::open(folder.join("a.tbl")).unwrap());
    assert_eq!(id(&here, 1), id(&there, 1));
    assert_ne!(id(&here, 0), id(&here, 1), "the checksums differ");
}

#[test]
fn equally_long_and_equally_old_files_differ() {
    let root = tempfile::tempdir().unwrap();
    let paths = ["a.tbl", "b.tbl", "other/a.tbl"].map(|name| root.path().join(name));
    fs::create_dir(root.path().join("other")).unwrap();
    for path in &paths {
        tbl(path, &[b"one"]);
        set_time(path);
    }
    let ids = paths.each_ref().map(|path| id(&TblFile::open(path).unwrap(), 0));
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

#[test]
fn a_file_that_changes_is_another_also_under_its_old_time() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cat.jpg");
    fs::write(&path, b"before").unwrap();
    set_time(&path);
    let folder = Folder::open(root.path()).unwrap();
    let before = settled_id(&folder, 0);
    assert_eq!(id(&folder, 0), before);
    fs::write(&path, b"behind").unwrap();
    set_time(&path);
    let mut behind = Vec::new();
    assert!(!folder.content_id(0, &mut behind).unwrap(), "it could be written again in no time");
    assert_ne!(behind, before);
}

#[test]
fn what_is_read_in_another_way_is_another() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    tbl(&path, &[b"one"]);
    let ids = [Verify::Nothing, Verify::Stored, Verify::All].map(|verify| {
        let options = ReadOptions { verify, ..ReadOptions::default() };
        id(&TblFile::from_source(Source::open(&path).unwrap(), options).unwrap(), 0)
    });
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

#[test]
fn archives_have_one_and_bytes_in_memory_none() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    writer.append(b"a.jpg", b"bytes").unwrap();
    writer.finish().unwrap();
    let archive = TarArchive::open(&path).unwrap();
    assert!(!archive.content_id(0, &mut Vec::new()).unwrap(), "it was made just now");
    let settled = settled_id(&archive, 0);
    assert_eq!(settled, id(&TarArchive::open(&path).unwrap(), 0));
    assert!(archive.content_id(1, &mut Vec::new()).is_err());
    let source = Source::from_bytes("a.tar", fs::read(&path).unwrap());
    let in_memory = TarArchive::new(source, tbl_io::ReadLimits::default()).unwrap();
    assert!(!in_memory.content_id(0, &mut Vec::new()).unwrap());
}
