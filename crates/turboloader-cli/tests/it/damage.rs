//! Small hostile files: no command calls one good that another refuses, and a repair never hides
//! that everything is lost.

use std::path::Path;

use tbl_format::checksum::payload_crc16;
use tbl_format::{SampleFormat, v1, v2};

use crate::support::{tar, tl, write};

const PAYLOAD: &[u8] = b"four";

/// A version 1 file that claims `count` samples and has one entry.
fn version_1(count: u64, offset: u64, stored_bytes: u32, format: u8) -> Vec<u8> {
    let mut file = v1::FileHeader::new(1).expect("one sample fits").to_bytes().to_vec();
    file[8..16].copy_from_slice(&count.to_le_bytes());
    // The size of header and index, which would say the count again.
    file[16..20].fill(0);
    let format = SampleFormat::from_code(format);
    file.extend(v1::IndexEntry::new(offset, stored_bytes, format).to_bytes());
    file.extend(PAYLOAD);
    file
}

/// A version 2 file of one sample with this entry.
fn version_2(offset: u64, bytes: u32, dimensions: (u16, u16), format: SampleFormat) -> Vec<u8> {
    let flags = v2::FileFlags::HAS_CHECKSUMS;
    let mut file =
        v2::FileHeader::new(1, 0..0, flags).expect("one sample fits").to_bytes().to_vec();
    let checksum = payload_crc16(PAYLOAD);
    let payload = v2::Payload { offset, stored_bytes: bytes, bytes, checksum };
    let flags = v2::EntryFlags::NONE;
    file.extend(v2::IndexEntry::new(payload, dimensions, format, flags).to_bytes());
    file.extend(PAYLOAD);
    file
}

/// The exit codes of the commands that look at the index of every sample.
fn codes(path: &Path) -> [Option<i32>; 4] {
    let converted = path.with_extension("converted.tbl");
    ["verify", "info", "ls", "convert"].map(|command| {
        let mut args = vec![command.as_ref(), path.as_os_str()];
        if command == "convert" {
            args.extend(["-o".as_ref(), converted.as_os_str()]);
        }
        let run = tl(args);
        assert_eq!(run.stderr.lines().count(), 1, "{command}: {}", run.stderr);
        run.code
    })
}

#[test]
fn every_command_refuses_an_index_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let jpeg = SampleFormat::Jpeg;
    let at = v2::index_end(1).unwrap();
    // What a checksum confirms is saved.
    let check = |name: &str, bytes: &[u8], saved: bool| {
        let path = write(folder.path(), name, bytes);
        assert_eq!(codes(&path), [Some(1); 4], "{name}");
        let output = folder.path().join("saved.tbl");
        let run = tl([Path::new("repair"), &path, Path::new("-o"), &output]);
        assert_eq!(run.code, Some(i32::from(!saved)), "{name}: {}", run.stderr);
        assert_eq!(output.exists(), saved, "{name}");
        if saved {
            std::fs::remove_file(output).unwrap();
        }
    };
    check("tbl1-format-255", &version_1(1, 48, 4, 255), false);
    check("tbl1-offset-wraps", &version_1(1, u64::MAX - 1, 4, 1), false);
    check("tbl1-offset-in-header", &version_1(1, 0, 4, 1), false);
    check("tbl1-size-past-end", &version_1(1, 48, u32::MAX, 1), false);
    for count in [2, 1_000_000_000, 1 << 60, u64::MAX] {
        check("tbl1-n", &version_1(count, u64::MAX - 1, 4, 1), false);
    }
    check("tbl2-raw-size-mismatch", &version_2(at, 4, (100, 100), SampleFormat::RawU8), false);
    check("tbl2-raw-without-pixels", &version_2(at, 4, (0, 0), SampleFormat::RawU8), false);
    check("tbl2-offset-wraps", &version_2(u64::MAX - 1, 4, (0, 0), jpeg), true);
    check("tbl2-offset-in-index", &version_2(at - 10, 4, (0, 0), jpeg), true);
    check("tbl2-size-past-end", &version_2(at, u32::MAX, (0, 0), jpeg), true);
}

#[test]
fn a_repair_of_what_is_no_data_set_fails() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("saved");
    let refuse = |path: &Path| {
        let run = tl([Path::new("repair"), path, Path::new("-o"), &output]);
        assert_eq!(run.stdout, b"", "{}", path.display());
        run.error(1);
        assert!(!output.exists(), "{}", path.display());
    };
    let header = version_2(88, 4, (0, 0), SampleFormat::Jpeg);
    for cut in 0..5 {
        refuse(&write(folder.path(), "cut.tbl", &header[..cut]));
    }
    refuse(&write(folder.path(), "a.png", b"\x89PNG\r\n\x1a\n and nothing more"));
    refuse(&write(folder.path(), "b.png", &[b"\x89PNG\r\n\x1a\n".as_slice(), &[3; 4000]].concat()));
    refuse(&write(folder.path(), "c.jpg", &[0xff, 0xd8, 0xff, 0xe0]));
    #[cfg(target_os = "linux")]
    refuse(Path::new("/proc/self/maps"));
}

#[test]
fn a_repair_that_saves_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.tbl", &version_1(1, 0, 4, 1));
    let output = folder.path().join("saved.tbl");
    let run = tl([Path::new("repair"), &path, Path::new("-o"), &output]);
    let listed = String::from_utf8(run.stdout.clone()).unwrap();
    assert!(listed.ends_with("saved.tbl: not written, nothing can be saved\n"), "{listed}");
    assert!(run.error(1).contains("a.tbl: all samples are lost"));
    let run = tl([Path::new("repair"), &path, "-o".as_ref(), &output, "--json".as_ref()]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(
        (&report["kept"], &report["lost"], &report["bytes"]),
        (&0.into(), &1.into(), &0.into())
    );
    let guessed = write(folder.path(), "b.tbl", &version_1(1_000_000_000, 48, 4, 1));
    let run = tl([Path::new("repair"), &guessed, Path::new("-o"), &output]);
    assert!(run.error(1).contains("more may be lost: the sample count is damaged"));
    assert!(output.exists());
}

#[test]
fn names_are_escaped_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = tar(&[(b"a\xff\\.jpg", b"1"), (b"b.jpg", b"2")]);
    archive[100] ^= 1;
    let path = write(folder.path(), "a.tar", &archive);
    let output = folder.path().join("saved.tar");
    let run = tl([Path::new("repair"), &path, Path::new("-o"), &output]);
    let listed = String::from_utf8(run.stdout).unwrap();
    assert!(listed.starts_with("lost 0 (a\\xff\\x5c.jpg) at byte 0: "), "{listed}");
    let run = tl([Path::new("repair"), &path, "-fo".as_ref(), &output, "--json".as_ref()]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["losses"][0]["key"], "a\\xff\\.jpg");
}

#[test]
fn an_archive_or_folder_without_samples_is_not_good() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let archive = write(folder.path(), "empty.tar", &[0; 1024]);
    for path in [&empty, &archive] {
        let run = tl([Path::new("verify"), path]);
        assert_eq!(run.stdout, b"damage: no samples\n");
        assert!(run.error(1).ends_with("the first: damage: no samples"));
    }
    let flags = v2::FileFlags::HAS_CHECKSUMS;
    let header = v2::FileHeader::new(0, 0..0, flags).unwrap().to_bytes();
    tl([Path::new("verify"), &write(folder.path(), "empty.tbl", &header)]).good();
}
