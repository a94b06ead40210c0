//! Archives of ours, read by the `tar` crate, by Python's `tarfile` and by GNU tar.

use std::io::Read;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tbl_format::path::{PathDefect, check_name};
use tbl_io::{NameDefect, TarOptions, TarWriter, WriteError};

type Members = Vec<(Vec<u8>, Vec<u8>)>;

const QUICK: TarOptions = TarOptions { sync: false, overwrite: true };

fn write(path: &Path, members: &Members) {
    let mut writer = TarWriter::create(path, QUICK).unwrap();
    for (name, bytes) in members {
        writer.append(name, bytes).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.members, members.len() as u64);
    assert_eq!(summary.bytes, path.metadata().unwrap().len());
    assert_eq!(summary.bytes % 10_240, 0);
}

fn read_with_tar_crate(path: &Path) -> Members {
    let mut archive = tar::Archive::new(std::fs::File::open(path).unwrap());
    let entries = archive.entries().unwrap();
    entries
        .map(|entry| {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().entry_type(), tar::EntryType::Regular);
            let name = entry.path_bytes().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (name, bytes)
        })
        .collect()
}

/// Names at each boundary of the header fields, with payloads at those of a block.
fn hard_cases() -> Members {
    let mut members: Members = [0, 1, 511, 512, 513, 10_240]
        .iter()
        .map(|&n| (format!("size/{n}.bin").into_bytes(), vec![b'x'; n]))
        .collect();
    for length in [99, 100, 101, 155, 156, 200, 255, 256, 257, 300, 5000] {
        members.push((vec![b'a'; length], b"no slash".to_vec()));
        let mut name = b"dir/".repeat(length / 4);
        name.extend_from_slice(b"f.jpg");
        members.push((name, b"slashes".to_vec()));
    }
    members.push(("größe/日本.jpg".as_bytes().to_vec(), b"utf-8".to_vec()));
    members.push((b"latin1/gr\xf6\xdfe.jpg".to_vec(), b"latin-1".to_vec()));
    members.push(([&b"long\xff/".repeat(60)[..], b"x.png"].concat(), b"long latin-1".to_vec()));
    members.push((b"with space\nand newline.jpg".to_vec(), b"control".to_vec()));
    members.push((b"..\\up.jpg".to_vec(), b"kept as data".to_vec()));
    members.push((b"twice.jpg".to_vec(), b"first".to_vec()));
    members.push((b"twice.jpg".to_vec(), b"second".to_vec()));
    members
}

#[test]
fn the_tar_crate_reads_every_member_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hard.tar");
    write(&path, &hard_cases());
    assert_eq!(read_with_tar_crate(&path), hard_cases());
}

#[test]
fn python_reads_every_member_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hard.tar");
    write(&path, &hard_cases());
    const SCRIPT: &str = "import os, sys, tarfile\n\
        for m in tarfile.open(sys.argv[1], 'r:'):\n\
        \x20   assert m.isreg() and m.mode == 0o644 and m.mtime == 0\n\
        \x20   b = tarfile.open(sys.argv[1], 'r:').extractfile(m).read()\n\
        \x20   print(os.fsencode(m.name).hex(), b.hex())";
    let run =
        Command::new("python3").env("PYTHONUTF8", "1").args(["-c", SCRIPT]).arg(&path).output();
    let Ok(run) = run else {
        eprintln!("skipped: no python3");
        return;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let expected: String = hard_cases()
        .iter()
        .map(|(name, bytes)| format!("{} {}\n", hex(name), hex(bytes)))
        .collect();
    assert_eq!(String::from_utf8(run.stdout).unwrap(), expected);
}

#[test]
fn gnu_tar_extracts_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.tar");
    // Names GNU tar can create: components up to 255 bytes, nothing above the folder.
    let mut members = hard_cases();
    members.retain(|(name, _)| {
        name.split(|&b| b == b'/').all(|part| part.len() <= 255 && part != b"..")
            && name.len() < 4000
            && !name.starts_with(b"long\xff")
            && name != b"twice.jpg"
    });
    write(&path, &members);
    let Ok(run) = Command::new("tar").arg("-C").arg(folder.path()).arg("-xf").arg(&path).output()
    else {
        eprintln!("skipped: no tar");
        return;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    for (name, bytes) in &members {
        use std::os::unix::ffi::OsStrExt;
        let file = folder.path().join(std::ffi::OsStr::from_bytes(name));
        assert_eq!(&std::fs::read(file).unwrap(), bytes, "{}", name.escape_ascii());
    }
}

#[test]
fn names_tar_cannot_carry_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = TarWriter::create(&folder.path().join("names.tar"), QUICK).unwrap();
    let long = vec![b'n'; (1 << 19) + 1];
    let cases: [(&[u8], NameDefect); 6] = [
        (b"", PathDefect::Empty.into()),
        (b"a\0b", PathDefect::ZeroByte.into()),
        (b"../up.jpg", PathDefect::Parent.into()),
        (b"/abs.jpg", PathDefect::Absolute.into()),
        (b"folder/", NameDefect::Folder),
        (&long, NameDefect::TooLong),
    ];
    for (name, expected) in cases {
        match writer.append(name, b"") {
            Err(WriteError::MemberName { defect, .. }) => assert_eq!(defect, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(writer.finish().unwrap().members, 0);
}

#[test]
fn an_unfinished_archive_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = TarWriter::create(&folder.path().join("half.tar"), QUICK).unwrap();
    writer.append(b"a.jpg", &vec![1; 1 << 20]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_names_and_bytes_come_back(
        members in proptest::collection::vec(
            (
                // The tar crate ends a PAX record at the first line feed of its value.
                proptest::collection::vec(11_u8..=255, 1..320)
                    .prop_filter("a folder", |name| name.last() != Some(&b'/'))
                    .prop_filter("leaves its folder", |name| check_name(name).is_ok()),
                proptest::collection::vec(any::<u8>(), 0..1500),
            ),
            0..8,
        )
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any.tar");
        write(&path, &members);
        prop_assert_eq!(read_with_tar_crate(&path), members);
    }
}
