//! Positioned reads of regular files, and of paths that are not regular files.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use tbl_io::{FileKind, ReadError, Source};

fn file_with(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn refused_as(path: &Path, expected: FileKind) {
    match Source::open(path) {
        Err(ReadError::NotAFile { location, found }) => {
            assert_eq!((location.path(), found), (Some(path), expected));
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[test]
fn everything_but_a_regular_file_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    refused_as(folder.path(), FileKind::Directory);
    refused_as(Path::new("/dev/zero"), FileKind::CharacterDevice);
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    refused_as(&fifo, FileKind::Fifo);
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    refused_as(&socket, FileKind::Socket);
    let missing = Source::open(folder.path().join("missing")).unwrap_err();
    assert!(matches!(&missing, ReadError::Io { source, .. } if source.raw_os_error() == Some(2)));
}

#[test]
fn a_symlink_to_a_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_with(b"abc");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    assert_eq!(Source::open(link).unwrap().len(), 3);
}

#[test]
fn file_and_memory_give_the_same_answers_for_every_range() {
    let bytes = b"0123456789";
    let file = file_with(bytes);
    let from_file = Source::open(file.path()).unwrap();
    let from_memory = Source::from_bytes("memory", bytes.to_vec());
    for offset in (0..=11_u64).chain([u64::MAX]) {
        for len in 0..=11_usize {
            let expected =
                usize::try_from(offset).ok().and_then(|start| bytes.get(start..)?.get(..len));
            for source in [&from_file, &from_memory] {
                let mut read = vec![0; len];
                match (source.read_exact_at(offset, &mut read), expected) {
                    (Ok(()), Some(expected)) => assert_eq!(read, expected),
                    (
                        Err(ReadError::ChangedWhileOpen { offset: at, expected: wanted, .. }),
                        None,
                    ) => {
                        assert_eq!((at, wanted), (offset, len as u64));
                    }
                    other => panic!("{offset}+{len}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_huge_range_is_refused_before_memory_is_taken() {
    let source = Source::from_bytes("memory", vec![0; 10]);
    let mut bytes = Vec::new();
    assert!(source.read_range_into(0, u64::MAX, &mut bytes).is_err());
    assert!(source.read_range_into(u64::MAX, 1, &mut bytes).is_err());
    assert_eq!(bytes.capacity(), 0);
}

#[test]
fn a_reused_buffer_holds_exactly_the_range() {
    let source = Source::from_bytes("memory", b"0123456789".to_vec());
    let mut bytes = Vec::new();
    for (offset, len, expected) in [(0, 4, "0123"), (2, 8, "23456789"), (9, 1, "9"), (10, 0, "")] {
        source.read_range_into(offset, len, &mut bytes).unwrap();
        assert_eq!(bytes, expected.as_bytes());
    }
}

#[test]
fn a_file_cut_short_while_open_is_named() {
    let file = file_with(&[7; 1000]);
    let source = Source::open(file.path()).unwrap();
    source.will_need(0, 1000);
    File::options().write(true).open(file.path()).unwrap().set_len(500).unwrap();
    let mut bytes = [0; 100];
    source.read_exact_at(400, &mut bytes).unwrap();
    let error = source.read_exact_at(401, &mut bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: at byte 401: expected 100 bytes, but the file became shorter while it was open",
            file.path().display()
        )
    );
}
